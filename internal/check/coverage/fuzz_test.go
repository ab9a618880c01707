package coverage_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/coverage"
)

func fuzz(f *testing.F, format coverage.Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	cfg := coverage.Config{Root: "/home/dev", Modules: []coverage.Module{{Path: "m", Dir: "d"}}, MaxFiles: 20,
		MaxFileLines: 10_000, MaxTotal: 50_000, MaxLine: 1000}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := coverage.Parse(format, bytes.NewReader(text), cfg)
		slow, slowErr := coverage.Parse(format, iotest.OneByteReader(bytes.NewReader(text)), cfg)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("errors %v and %v for the same input", err, slowErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(show(p), show(slow)); diff != "" {
			t.Fatalf("the profile depends on how the input is read:\n%s", diff)
		}
		for name, f := range p.Files {
			if name == "" || name[0] == '/' || f.Covered.Len() > f.Code.Len() {
				t.Errorf("%q: %d of %d lines", name, f.Covered.Len(), f.Code.Len())
			}
			for line := range f.Covered.All() {
				if !f.Code.Has(line) {
					t.Fatalf("%q: line %d is covered and no code", name, line)
				}
			}
		}
		if twice := coverage.Merge(p, p); !slices.Equal(show(twice), show(p)) {
			t.Errorf("merged with itself: %v", show(twice))
		}
		text, err = json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back coverage.Profile
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzGo(f *testing.F) {
	fuzz(f, coverage.Go, "mode: set\nm/a.go:1.2,3.4 1 1\n./b.go:5.1,5.2 2 0\n", "mode: count\n/home/dev/c.go:1.1,9.9 0 0")
}

func FuzzLCOV(f *testing.F) {
	fuzz(f, coverage.LCOV, "TN:\nSF:a.ts\nDA:1,1\nDA:2,0,x\nend_of_record\n", "SF:../x\nDA:9,9\n")
}

func FuzzCobertura(f *testing.F) {
	fuzz(f, coverage.Cobertura, `<coverage><sources><source>/home/dev/src</source></sources><packages><package><classes><class filename="a.py"><lines><line number="1" hits="1"/></lines></class></classes></package></packages></coverage>`, "<coverage><class filename='")
}

func FuzzFollowLines(f *testing.F) {
	f.Add([]byte(text), []byte("package shop\n"))
	f.Add([]byte("a\nb\na\n"), []byte("b\na\nb\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		m := coverage.FollowLines(before, after)
		seen := make(map[int]bool)
		lines := slices.Collect(bytes.Lines(after))
		for i, line := range slices.Collect(bytes.Lines(before)) {
			now, ok := m.To(i + 1)
			if !ok {
				continue
			}
			if seen[now] || !bytes.Equal(bytes.TrimSpace(line), bytes.TrimSpace(lines[now-1])) {
				t.Fatalf("line %d %q became %d", i+1, line, now)
			}
			seen[now] = true
		}
	})
}
