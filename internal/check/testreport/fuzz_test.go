package testreport_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/testreport"
)

// fuzz parses any input and checks the properties of all reports.
func fuzz(f *testing.F, format testreport.Format, pattern string, more ...string) {
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	for _, text := range more {
		f.Add([]byte(text))
	}
	cfg := testreport.Config{Root: "/home/dev/shop", MaxTests: 100, MaxIdentity: 100, MaxLine: 4 << 10, MaxMessage: 50,
		MaxDepth: 10}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := testreport.Parse(format, bytes.NewReader(text), cfg)
		slow, slowErr := testreport.Parse(format, iotest.OneByteReader(bytes.NewReader(text)), cfg)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("errors %v and %v for the same input", err, slowErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(r, slow); diff != "" {
			t.Fatalf("the report depends on how the input is read:\n%s", diff)
		}
		if r.Complete != (r.Reason == "") {
			t.Errorf("complete %v, reason %q", r.Complete, r.Reason)
		}
		seen := make(map[string]bool)
		for _, test := range r.Tests {
			if test.ID == "" && format != testreport.JUnit && format != testreport.TRX && format != testreport.Jest &&
				format != testreport.RSpec || seen[test.ID] || test.Outcome == "" {
				t.Errorf("test %+v", test)
			}
			seen[test.ID] = true
			if len(test.Message) > 50 || !utf8.ValidString(test.Message) || !utf8.ValidString(test.ID) {
				t.Errorf("test %+v", test)
			}
			for _, r := range test.ID {
				if unicode.IsControl(r) {
					t.Errorf("identity %q", test.ID)
				}
			}
		}
		if d := testreport.Compare(r, r); d.Verdict == testreport.Regressed || len(d.Lost)+len(d.New) > 0 {
			t.Errorf("the report differs from itself: %+v", d)
		}
	})
}

func FuzzGo(f *testing.F) {
	fuzz(f, testreport.GoTest, "gotest.json", `{"Action":"build-output","ImportPath":"p","Output":"x"}`,
		"FAIL\tp [build failed]\n{\"Action\":")
}

func FuzzJUnit(f *testing.F) {
	fuzz(f, testreport.JUnit, "*.xml", "<testsuite><!-- - --><![CDATA[]]]></testsuite>",
		"<?xml version='1.0' encoding='latin1'?><testsuite name='\xfc'/>")
}

func FuzzJest(f *testing.F) { fuzz(f, testreport.Jest, "[jv]*.json", `{"numTotalTests":0}`) }

func FuzzTAP(f *testing.F) { fuzz(f, testreport.TAP, "*.tap", "1..1\nok", "Bail out!") }

func FuzzCargo(f *testing.F) {
	fuzz(f, testreport.Cargo, "cargo.txt", "running 1 test\ntest a ... x\nok\n")
}

func FuzzTRX(f *testing.F) { fuzz(f, testreport.TRX, "*.trx", "<TestRun><Counters/></TestRun>") }

func FuzzRSpec(f *testing.F) {
	fuzz(f, testreport.RSpec, "rspec.json",
		`{"messages":["no such file"],"examples":[],"summary":{"example_count":0,"errors_outside_of_examples_count":1}}`)
}

func FuzzDetect(f *testing.F) {
	f.Add("a.tap", []byte("ok 1"))
	f.Add("", []byte("{\"Action\":\"start\",\"Package\":\"p\"}"))
	f.Add("x.xml", []byte("\xef\xbb\xbf<testsuites"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		format := testreport.Detect(name, text)
		if format == "" {
			return
		}
		if _, err := testreport.Parse(format, bytes.NewReader(text), testreport.Config{MaxTests: 100}); err != nil &&
			err.Error() == "read test results: unknown format" {
			t.Error(err)
		}
	})
}
