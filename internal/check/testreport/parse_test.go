package testreport_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/testreport"
)

// An input that ends too early is reported with its tests and the reason.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		format testreport.Format
		text   string
		tests  int
		reason string
	}{
		{"go, nothing", testreport.GoTest, "", 0, "no package started"},
		{"go, cut event", testreport.GoTest, `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"pass","Pack`, 0,
			"the last event, in line 2, is cut off"},
		{"go, no end", testreport.GoTest, `{"Action":"start","Package":"p"}` + "\n" +
			`{"Action":"run","Package":"p","Test":"TestA"}` + "\n", 1, `package "p" has no end`},
		{"junit, nothing", testreport.JUnit, " \n", 0, "the document is empty"},
		{"junit, cut", testreport.JUnit, `<testsuites><testsuite name="s"><testcase name="a" classname="c"/>` + "\n" +
			`<testcase na`, 1, "line 2, column 12: unexpected EOF"},
		{"junit, open root", testreport.JUnit, `<testsuites><testsuite name="s"><testcase name="a"/></testsuite>`, 1,
			"line 1, column 64: unexpected EOF"},
		{"junit, fewer tests", testreport.JUnit, `<testsuite name="s" tests="3"><testcase name="a"/></testsuite>`, 1,
			`suite "s" reports 3 tests and has 1`},
		{"junit, lost failures", testreport.JUnit,
			`<testsuite name="s" tests="1" failures="1"><testcase name="a"/></testsuite>`, 1,
			`suite "s" reports 1 failed tests and has none`},
		{"junit, broken inside", testreport.JUnit, `<testsuite><testcase name="a"/>` + "\n</wrong>", 1,
			"line 2, column 8: element <testsuite> closed by </wrong>"},
		{"tap, nothing", testreport.TAP, "", 0, "the input is empty"},
		{"tap, no plan", testreport.TAP, "ok 1 - a\nok 2 - b\n", 2, "the run has no plan"},
		{"tap, cut", testreport.TAP, "1..3\nok 1 - a\nok 2 - b\n", 2, "the run planned 3 tests and has 2"},
		{"tap, bail out", testreport.TAP, "1..2\nok 1 - a\nBail out! no database\n", 1, "the run bailed out:  no database"},
		{"tap, cut in a subtest", testreport.TAP, "1..1\n# Subtest: s\n    ok 1 - a\n", 1, `subtest "s" has no plan`},
		{"tap, open block", testreport.TAP, "1..1\nnot ok 1 - a\n  ---\n  error: x\n", 1,
			"the input ends inside a YAML block"},
		{"jest, nothing", testreport.Jest, "", 0, "the input is empty"},
		{"jest, cut", testreport.Jest,
			`{"numTotalTests":2,"testResults":[{"name":"a.js","assertionResults":[{"title":"x","status":"passed"},`, 1,
			"line 1, column 102: the object has no end"},
		{"jest, interrupted", testreport.Jest, `{"numTotalTests":0,"testResults":[],"wasInterrupted":true}`, 0,
			"the run was interrupted"},
		{"jest, fewer tests", testreport.Jest,
			`{"numTotalTests":2,"testResults":[{"name":"a.js","assertionResults":[{"title":"x","status":"passed"}]}]}`, 1,
			"the run reports 2 tests and lists 1"},
		{"jest, no number", testreport.Jest, `{"testResults":[]}`, 0, "the number of tests is missing"},
		{"rspec, cut", testreport.RSpec, `{"examples":[{"full_description":"a","status":"passed"},`, 1,
			"line 1, column 57: the object has no end"},
		{"rspec, no summary", testreport.RSpec, `{"examples":[]}`, 0, "the summary is missing"},
		{"rspec, fewer examples", testreport.RSpec, `{"examples":[],"summary":{"example_count":2}}`, 0,
			"the summary reports 2 examples, the list has 0"},
		{"cargo, nothing", testreport.Cargo, "   Compiling foo\n", 0, "no test binary started"},
		{"cargo, exit", testreport.Cargo, "     Running tests/a.rs (target/debug/deps/a-0123456789abcdef)\n\n" +
			"running 1 test\n", 0, `binary "a tests/a.rs" has no result`},
		{"cargo, fewer tests", testreport.Cargo, "running 2 tests\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; " +
			"0 ignored; 0 measured\n", 1,
			`binary "" reports 2 tests passed, 0 failed, 0 ignored, and lists 1, 0, 0`},
		{"cargo, stopped", testreport.Cargo, "running 1 test\ntest a ... FAILED\n\n" +
			"test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured\n\nerror: test failed, to rerun pass `--lib`\n", 1,
			"cargo stopped after the first failed binary: use --no-fail-fast"},
		{"trx, no summary", testreport.TRX,
			`<TestRun><Results><UnitTestResult testId="1" testName="a" outcome="Passed"/></Results></TestRun>`, 1,
			"the summary is missing"},
		{"trx, fewer results", testreport.TRX, `<TestRun><ResultSummary><Counters total="1"/></ResultSummary></TestRun>`, 0,
			"the summary reports 1 tests, the list has 0 results"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := testreport.Parse(tt.format, iotest.OneByteReader(strings.NewReader(tt.text)), testreport.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Complete || r.Reason != tt.reason || len(r.Tests) != tt.tests || sound(r) {
				t.Errorf("complete %v, reason %q, %d tests; want %q, %d", r.Complete, r.Reason, len(r.Tests), tt.reason, tt.tests)
			}
			if len(r.Broken) == 0 {
				t.Error("no suite is broken")
			}
		})
	}
}

// sound reports whether a run is complete, with nothing broken and no test failing.
func sound(r *testreport.Report) bool {
	return r.Complete && len(r.Broken) == 0 && r.Counts().Failed == 0
}

// Cargo's compile errors come before any test.
func TestCargoBuild(t *testing.T) {
	t.Parallel()
	r, err := testreport.Parse(testreport.Cargo, strings.NewReader("   Compiling foo v0.1.0\n"+
		"error[E0425]: cannot find function "+
		"`nope`\n --> src/lib.rs:3:5\n\nerror: could not compile `foo` (lib test) due to 1 previous error\n"),
		testreport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := []testreport.Broken{{Kind: testreport.Build, Message: "error: could not compile `foo` (lib test) due to 1 " +
		"previous error\nerror[E0425]: cannot find function `nope`\n --> src/lib.rs:3:5"}}
	if diff := cmp.Diff(want, r.Broken); diff != "" || !r.Complete || sound(r) {
		t.Errorf("complete %v; broken (-want +got):\n%s", r.Complete, diff)
	}
}

// A file may fail after its tests.
func TestJestAfterTests(t *testing.T) {
	t.Parallel()
	r := parse(t, `{"numTotalTests":1,"testResults":[{"name":"a.js","status":"failed","message":"afterAll",`+
		`"assertionResults":[{"title":"x","status":"passed"}]}]}`)
	if diff := cmp.Diff([]string{"passed a.js::x", "broken exit a.js"}, rows(r)); diff != "" || !r.Complete || sound(r) {
		t.Errorf("complete %v (-want +got):\n%s", r.Complete, diff)
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format       testreport.Format
		text         string
		line, column int
		want         string
	}{
		{testreport.JUnit, "<html>\n</html>", 1, 6, "root element is <html>"},
		{testreport.JUnit, "\n<>", 2, 2, "expected element name"},
		{testreport.TRX, "<html/>", 1, 7, "root element is <html>"},
		{testreport.TAP, "hello\nworld\n", 1, 1, "no line of TAP"},
		{testreport.Jest, `{"a":1}`, 1, 1, "neither"},
		{testreport.Jest, "{\n\"testResults\": [\n {\"name\": }", 3, 10, "invalid character '}'"},
		{testreport.Jest, "[]", 1, 2, "[ where { should be"},
		{testreport.Jest, `{"numTotalTests":"x"}`, 1, 21, "cannot unmarshal string"},
	}
	for _, tt := range tests {
		_, err := testreport.Parse(tt.format, strings.NewReader(tt.text), testreport.Config{})
		var syntax *testreport.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s %q: error %v", tt.format, tt.text, err)
			continue
		}
		if syntax.Line != tt.line || syntax.Column != tt.column || !strings.Contains(syntax.Msg, tt.want) ||
			!strings.Contains(err.Error(), string(tt.format)) {
			t.Errorf("%s %q: %v, want line %d, column %d: %s", tt.format, tt.text, err, tt.line, tt.column, tt.want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("x", 300)
	tests := []struct {
		format testreport.Format
		text   string
		limit  string
		line   int
	}{
		{testreport.GoTest, strings.Repeat("\n", 2) + `{"Action":"run","Package":"p","Test":"` + many[:50] + `"}`,
			"max identity", 3},
		{testreport.GoTest, `{"Action":"output","Package":"p","Output":"` + many + `"}`, "max line", 1},
		{testreport.JUnit, "<testsuite>\n<testcase name=\"" + many[:50] + `"/></testsuite>`, "max identity", 2},
		{testreport.JUnit, "<testsuite>\n<testcase " + strings.Repeat("a='' ", 90) + `/></testsuite>`, "max line", 2},
		{testreport.JUnit, strings.Repeat("<testsuite>", 9), "max depth", 1},
		{testreport.TAP, "1..1\nok 1 - " + many[:50], "max identity", 2},
		{testreport.TAP, "1..1\nok 1 - " + many, "max line", 2},
		{testreport.TAP, "    ok\n        ok\n            ok\n                ok\n                    ok\n" +
			"                        ok\n                            ok\n" +
			"                                ok\n                                    ok\n", "max depth", 9},
		{testreport.TAP, "# Subtest: " + many[:30] + "\n    ok 1 - " + many[:30] + "\n    1..1\nok 1 - " + many[:30] +
			"\n1..1\n", "max identity", 4},
		{testreport.Jest, `{"x":` + strings.Repeat("[", 9), "max depth", 1},
		{testreport.Jest, `{` + "\n" + `"x":"` + strings.Repeat(many, 10), "max line", 2},
		{testreport.Cargo, "running 1 test\ntest " + many[:50] + " ... ok\n", "max identity", 2},
	}
	for _, tt := range tests {
		cfg := testreport.Config{MaxIdentity: 40, MaxLine: 256, MaxDepth: 8}
		r, err := testreport.Parse(tt.format, strings.NewReader(tt.text), cfg)
		var limit *testreport.LimitError
		if !errors.As(err, &limit) {
			t.Errorf("%s %.60q: error %v, report %+v", tt.format, tt.text, err, r)
			continue
		}
		if limit.Limit != tt.limit || limit.Line != tt.line {
			t.Errorf("%s %.60q: %v, want %s in line %d", tt.format, tt.text, err, tt.limit, tt.line)
		}
	}
	for format, file := range map[testreport.Format]string{
		testreport.JUnit: "vitest.xml", testreport.Jest: "jest.json", testreport.TAP: "node.tap",
		testreport.Cargo: "cargo.txt", testreport.TRX: "dotnet.trx", testreport.RSpec: "rspec.json",
	} {
		_, err := testreport.ParseFiles(format, []string{filepath.Join("testdata", file)}, testreport.Config{MaxTests: 2})
		var limit *testreport.LimitError
		if !errors.As(err, &limit) || limit.Limit != "max tests" {
			t.Errorf("%s: error %v", file, err)
		}
	}
	if _, err := testreport.Parse(testreport.TAP, strings.NewReader("1..0"),
		testreport.Config{MaxTests: -1, MaxLine: -2}); err == nil ||
		!strings.Contains(err.Error(), "max tests -1") || !strings.Contains(err.Error(), "max line -2") {
		t.Errorf("negative limits: %v", err)
	}
}

// Output of tests is not kept in memory: 64 MiB of output pass through a report whose
// values may have a few KiB.
func TestOutputIsNotKept(t *testing.T) {
	t.Parallel()
	const head = `<testsuite name="s" tests="2"><testcase name="a"><system-out>`
	noise := func(unit string) io.Reader { return io.LimitReader(&repeat{unit: unit}, 16<<20) }
	input := io.MultiReader(
		strings.NewReader(head), noise("x &amp; \x1b[31m grün\n"),
		strings.NewReader("]]</system-out><system-err><![CDATA["), noise("]] > </system-err> ü\n"),
		strings.NewReader("]]></system-err><!--"), noise(" - > <b> "),
		strings.NewReader(`--></testcase><testcase name="b"><failure message="no `),
		noise("'more' > "), strings.NewReader(`"/></testcase></testsuite>`),
	)
	r, err := testreport.Parse(testreport.JUnit, input, testreport.Config{MaxLine: 1024, MaxMessage: 20})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete || len(r.Tests) != 2 || r.Tests[1].Message != "no 'more' > 'more' >" {
		t.Errorf("%+v", r)
	}
	line := `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}` + "\n"
	g, err := testreport.Parse(testreport.GoTest, io.MultiReader(
		strings.NewReader(`{"Action":"run","Package":"p","Test":"TestA"}`+"\n"),
		io.LimitReader(&repeat{unit: line}, int64(len(line))*1000),
		strings.NewReader(`{"Action":"fail","Package":"p","Test":"TestA"}`+"\n"+`{"Action":"fail","Package":"p"}`+"\n"),
	), testreport.Config{MaxMessage: 12})
	if err != nil || g.Tests[0].Message != "noise\nnoise" {
		t.Errorf("%+v, error %v", g, err)
	}
}

// repeat reads the same text repeatedly.
type repeat struct {
	unit string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.unit[r.at%len(r.unit)]
		r.at++
	}
	return len(p), nil
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	r := parse(t, "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n"+
		"<testsuite><testcase name=\"gr\xfcn\" classname=\"a\x00b\"/></testsuite>")
	if r.Tests[0].ID != "a?b::grün" {
		t.Errorf("identity %q", r.Tests[0].ID)
	}
	r = parse(t, "1..1\nok 1 - a\x01b\xff\n")
	if r.Tests[0].ID != `a\x01b\xff` {
		t.Errorf("identity %q", r.Tests[0].ID)
	}
}

// Several documents of TAP may follow each other, plan first or last.
func TestTAPDocuments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1..2\nok 1 - a\nok 2 - b\n1..1\nok 1 - a\n",
		"TAP version 13\nok 1 - a\nok 2 - b\n1..2\nTAP version 13\nok 1 - a\n1..1\n"} {
		r := parse(t, text)
		if diff := cmp.Diff([]string{"passed a", "passed b", "passed a#2"}, rows(r)); diff != "" || !r.Complete {
			t.Errorf("%q: complete %v, %s (-want +got):\n%s", text, r.Complete, r.Reason, diff)
		}
	}
	r := parse(t, "1..0 # SKIP no compiler\n")
	if !r.Complete || len(r.Tests) != 0 {
		t.Errorf("skip all: %+v", r)
	}
	r = parse(t, "1..1\nok 1 - a # not a directive\n")
	if r.Tests[0].ID != "a # not a directive" || r.Tests[0].Outcome != testreport.Passed {
		t.Errorf("%+v", r)
	}
}

func TestParseFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for i, text := range []string{
		`<testsuite name="a"><testcase name="x" classname="C"/></testsuite>`,
		`<testsuite name="b" tests="2"><testcase name="x" classname="C"/></testsuite>`,
	} {
		name := filepath.Join(dir, fmt.Sprintf("%d.xml", i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	r, err := testreport.ParseFiles(testreport.JUnit, names, testreport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"passed C::x", "passed C::x#2", "broken incomplete b"}, rows(r)); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if r.Complete || !strings.Contains(r.Reason, "1.xml") {
		t.Errorf("complete %v, reason %q", r.Complete, r.Reason)
	}
	r, err = testreport.ParseFiles(testreport.JUnit, nil, testreport.Config{})
	if err != nil || r.Complete || r.Reason != "no results found" {
		t.Errorf("no files: %+v, error %v", r, err)
	}
	if _, err := testreport.ParseFiles("", []string{filepath.Join(dir, "none")}, testreport.Config{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := testreport.Parse("", strings.NewReader("hello"), testreport.Config{}); err == nil {
		t.Error("text of no format is parsed")
	}
	if _, err := testreport.Parse("", iotest.ErrReader(io.ErrClosedPipe), testreport.Config{}); !errors.Is(err,
		io.ErrClosedPipe) {
		t.Errorf("reader's error: %v", err)
	}
	for _, format := range []testreport.Format{testreport.GoTest, testreport.JUnit, testreport.Jest, testreport.TAP,
		testreport.Cargo, testreport.TRX, testreport.RSpec} {
		if _, err := testreport.Parse(format, iotest.ErrReader(io.ErrClosedPipe), testreport.Config{}); !errors.Is(err,
			io.ErrClosedPipe) {
			t.Errorf("%s: reader's error: %v", format, err)
		}
	}
}

// TestReferencesInXML: references to characters that XML does not allow, as runners write the
// codes of colours, do not end the report.
func TestReferencesInXML(t *testing.T) {
	t.Parallel()
	const text = `<testsuite name="A" tests="3" failures="1"><testcase name="add&#0;" classname="A">` +
		`<failure message="&#27;[31mexpected&#27;[0m &lt; &#233;&#xFFFF;" type="E">&#x1b;[1;32mx&nbsp;&amp;</failure>` +
		`</testcase><testcase name="mul&#x41;" classname="A"/><testcase name="div" classname="A"/></testsuite>`
	r, err := testreport.Parse(testreport.JUnit, strings.NewReader(text), testreport.Config{})
	if err != nil || !r.Complete || len(r.Tests) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := r.Tests[0]; got.ID != "A::add?" || got.Message != "?expected? < é?\n?x?&" || r.Tests[1].ID != "A::mulA" {
		t.Errorf("%q, %q, %q", got.ID, got.Message, r.Tests[1].ID)
	}
	r, err = testreport.ParseFiles(testreport.JUnit, []string{"testdata/11-char-reference.xml"}, testreport.Config{})
	if err != nil || !r.Complete || len(r.Tests) != 2 || !strings.Contains(r.Tests[0].Message, "expected") {
		t.Errorf("%+v, %v", r, err)
	}
}
