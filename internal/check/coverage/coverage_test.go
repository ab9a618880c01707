package coverage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/check/coverage"
)

// show formats a profile as "file code/covered" with ranges.
func show(p *coverage.Profile) []string {
	var all []string
	for _, name := range p.Names() {
		f := p.Files[name]
		all = append(all, fmt.Sprintf("%s %v/%v", name, f.Code.Ranges(), f.Covered.Ranges()))
	}
	return all
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		format  coverage.Format
		cfg     coverage.Config
		text    string
		want    []string
		foreign int
		reason  string
	}{
		{
			name: "go", format: coverage.Go,
			cfg: coverage.Config{Root: "/home/dev/shop",
				Modules: []coverage.Module{{Path: "example.com/m"}, {Path: "example.com/m/tools", Dir: "tools2"}}},
			text: "mode: atomic\nexample.com/m/a/a.go:3.20,5.2 1 7\nexample.com/m/a/a.go:7.10,9.3 2 0\n" +
				"example.com/m/a/a.go:9.3,10.2 1 1\n" +
				"example.com/m/a/a.go:20.1,20.9 0 0\nmode: atomic\nexample.com/m/a/a.go:7.10,8.3 2 3\n" +
				"example.com/m/tools/x.go:1.1,1.5 1 0\n" +
				"example.com/mm/x.go:1.1,1.5 1 1\n/home/dev/shop/b.go:2.1,2.2 1 1\n/elsewhere/b.go:2.1,2.2 1 1\n" +
				"example.com/mm/x.go:3.1,4.5 1 1\r\n",
			want:    []string{"a/a.go [{3 5} {7 10}]/[{3 5} {7 10}]", "b.go [{2 2}]/[{2 2}]", "tools2/x.go [{1 1}]/[]"},
			foreign: 2,
		},
		{name: "go, empty", format: coverage.Go, text: "", reason: "the input is empty"},
		{name: "go, nothing covered", format: coverage.Go, text: "mode: set\n"},
		{
			name: "lcov", format: coverage.LCOV, cfg: coverage.Config{Root: "/home/dev/shop/", Dir: "web"},
			text: "TN:\nSF:src/a.ts\nFN:1,main\nFNDA:1,main\nDA:1,1\nDA:2,0,abc\nDA:70,12\nBRDA:1,0,0,-\nLF:3\nLH:2\n" +
				"end_of_record\n" +
				"SF:/home/dev/shop/lib/b.js\nDA:5,=\n",
			want: nil, reason: "error",
		},
		{
			name: "lcov, two files", format: coverage.LCOV, cfg: coverage.Config{Root: "/home/dev/shop/", Dir: "web"},
			text: "TN:\nSF:src/a.ts\nFN:1,main\nDA:1,1\nDA:2,0,abc\nDA:70,12\nLH:2\nend_of_record\nTN:\n" +
				"SF:/home/dev/shop/lib/b.js\nDA:5,-1\nDA:6,1e9\nend_of_record\n" +
				"SF:../../x.js\nDA:1,1\nend_of_record\nSF:web\\c.ts\nend_of_record\n",
			want:    []string{"lib/b.js [{5 6}]/[{6 6}]", "web/src/a.ts [{1 2} {70 70}]/[{1 1} {70 70}]", "web/web/c.ts []/[]"},
			foreign: 1,
		},
		{name: "lcov, cut", format: coverage.LCOV, text: "SF:a.ts\nDA:1,1\n", want: []string{"a.ts [{1 1}]/[{1 1}]"},
			reason: "the last file has no end"},
		{name: "lcov, empty", format: coverage.LCOV, text: "", reason: "the input has no file"},
		{
			name: "cobertura", format: coverage.Cobertura, cfg: coverage.Config{Root: "/home/dev/shop"},
			text: `<?xml version="1.0" ?><!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">
<coverage line-rate="0.5"><sources><source>/usr/lib</source><source>/home/dev/shop/src</source></sources><packages><package name="."><classes>
<class name="a.py" filename="a.py"><methods><method name="f"><lines><line number="2" hits="3"/></lines></method></methods>
<lines><line number="1" hits="1"/><line number="2" hits="0" branch="true" condition-coverage="50% (1/2)"/></lines></class>
<class name="b" filename="/home/dev/shop/b.py"><lines><line number="4" hits="0"/></lines></class>
<class name="c" filename="/usr/c.py"><lines><line number="4" hits="0"/></lines></class>
</classes></package></packages></coverage>`,
			want: []string{"b.py [{4 4}]/[]", "src/a.py [{1 2}]/[{1 2}]"}, foreign: 1,
		},
		{
			name: "cobertura, made in a container", format: coverage.Cobertura, cfg: coverage.Config{Root: "/home/dev/shop"},
			text: `<coverage><sources><source>/app</source></sources><class filename="src\a.cs"><lines><line number="1" ` +
				`hits="1"/></lines></class></coverage>`,
			want: []string{"src/a.cs [{1 1}]/[{1 1}]"},
		},
		{
			name: "cobertura, which source", format: coverage.Cobertura,
			cfg: coverage.Config{Root: "/r", Exists: func(name string) bool { return name == "two/a.py" || name == "top.py" }},
			text: `<coverage><sources><source>/r/one</source><source>/r/two</source></sources><class filename="a.py"/><class ` +
				`filename="none.py"/><class filename="top.py"/></coverage>`,
			want: []string{"top.py []/[]", "two/a.py []/[]"}, foreign: 1,
		},
		{
			name: "clover of PHPUnit and istanbul", format: coverage.Clover, cfg: coverage.Config{Root: "/home/dev/shop"},
			text: `<?xml version="1.0"?><coverage generated="1"><project timestamp="1"><package name="Shop">` +
				`<file name="/home/dev/shop/src/Cart.php"><class name="Cart" namespace="Shop"><metrics/></class>` +
				`<line num="3" type="method" count="2"/><line num="4" type="stmt" count="0"/><metrics/></file></package>` +
				`<file name="calc.js" path="/home/dev/shop/calc.js"><line num="1" count="5" type="stmt"/></file>` +
				`<file name="/usr/lib/x.php"><line num="1" type="stmt" count="1"/></file></project></coverage>`,
			want: []string{"calc.js [{1 1}]/[{1 1}]", "src/Cart.php [{3 4}]/[{3 3}]"}, foreign: 1,
		},
		{
			name: "cobertura, cut", format: coverage.Cobertura,
			text: `<coverage><class filename="a.py"><lines><line number="1" hits="1"/><li`,
			want: []string{"a.py [{1 1}]/[{1 1}]"}, reason: "line 1, column 70: unexpected EOF",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := coverage.Parse(tt.format, iotest.OneByteReader(strings.NewReader(tt.text)), tt.cfg)
			if tt.reason == "error" {
				var syntax *coverage.SyntaxError
				if !errors.As(err, &syntax) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(p)); diff != "" {
				t.Errorf("profile (-want +got):\n%s", diff)
			}
			if p.Foreign != tt.foreign || p.Reason != tt.reason || p.Complete != (tt.reason == "") {
				t.Errorf("foreign %d, complete %v, reason %q", p.Foreign, p.Complete, p.Reason)
			}
			if got := coverage.Detect([]byte(tt.text)); tt.text != "" && got != tt.format {
				t.Errorf("Detect = %q", got)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format coverage.Format
		text   string
		want   string
	}{
		{coverage.Go, "a.go:1.1,2.2 1 1\n", "line 1: "},
		{coverage.Go, "mode: all\n", `line 1: unknown mode "all"`},
		{coverage.Go, "mode: set\nhello\n", "line 2: \"hello\""},
		{coverage.Go, "mode: set\na.go:1.1,2.2 1\n", "line 2:"},
		{coverage.Go, "mode: set\na.go:x.1,2.2 1 1\n", `line 2: "x"`},
		{coverage.Go, "mode: set\na.go:3.1,2.2 1 1\n", "line 2: invalid block from line 3 to 2"},
		{coverage.Go, "mode: set\na.go:1.1,2.2 1 x\n", `line 2: "x"`},
		{coverage.Go, "mode: set\n./a.go:1.1,5000001.2 1 1\n", "line 2: max file lines of 4000000 exceeded"},
		{coverage.LCOV, "DA:1,1\n", "line 1: line of code"},
		{coverage.LCOV, "end_of_record\n", "line 1: end of a file"},
		{coverage.LCOV, "SF:a\nSF:b\n", "line 2: beginning of a file"},
		{coverage.LCOV, "SF:a\nDA:1\n", "line 2: \"1\""},
		{coverage.LCOV, "SF:a\nDA:x,1\n", "line 2: \"x\""},
		{coverage.LCOV, "SF:a\nDA:1,1\nDA:" + strings.Repeat("1", 2000), "line 3: max line of 1000 exceeded"},
		{coverage.LCOV, "SF:a\nend_of_record\nSF:b\nend_of_record\nSF:c\nend_of_record\nSF:d\n",
			"line 7: max files of 3 exceeded"},
		{coverage.LCOV, "SF:a\nDA:1,1\nDA:1000,1\nDA:2000,1\nDA:3000,1\nDA:4000,1\nDA:9000,1\nDA:99000,1\nDA:990000,1\n",
			"max total of 320 exceeded"},
		{coverage.Cobertura, "<html/>", "line 1: root element is <html>"},
		{coverage.Cobertura, "\n<>", "line 2, column 2: expected element name"},
		{coverage.Cobertura, "<coverage>\n<class filename='a'><line number='x' hits='1'/>", `line 2: "x"`},
		{coverage.Cobertura, "<coverage>\n<class filename='a'><line number='1' hits='no'/>",
			`line 2: "no"`},
		{coverage.Cobertura, strings.Repeat("<coverage>", 65), "max depth"},
		{coverage.Cobertura, "<coverage>" + strings.Repeat("x", 2000), "max line"},
		{"", "hello", "unknown format"},
		{"x", "hello", `unknown format "x"`},
	}
	for _, tt := range tests {
		_, err := coverage.Parse(tt.format, strings.NewReader(tt.text),
			coverage.Config{MaxLine: 1000, MaxFiles: 3, MaxTotal: 320})
		if strings.Contains(tt.want, "4000000") {
			_, err = coverage.Parse(tt.format, strings.NewReader(tt.text), coverage.Config{})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %.60q: error %v, want %q", tt.format, tt.text, err, tt.want)
		}
	}
	for _, format := range []coverage.Format{coverage.Go, coverage.LCOV, coverage.Cobertura, ""} {
		if _, err := coverage.Parse(format, iotest.ErrReader(io.ErrClosedPipe), coverage.Config{}); !errors.Is(err,
			io.ErrClosedPipe) {
			t.Errorf("%s: reader's error: %v", format, err)
		}
	}
	if _, err := coverage.Parse(coverage.Go, strings.NewReader(""),
		coverage.Config{MaxFiles: -1, MaxFileLines: 1 << 40}); err == nil ||
		!strings.Contains(err.Error(), "max files -1") || !strings.Contains(err.Error(), "max file lines") {
		t.Errorf("limits: %v", err)
	}
}

// The go command's own profile.
func TestGoRun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	files := map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.24\n",
		"a/a.go": "package a\n\nfunc F(x int) int {\n\tif x > 1 {\n\t\treturn 2\n\t}\n\treturn 3\n}\n\nfunc G() {\n" +
			"\tF(1)\n}\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { F(0) }\n",
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "cover.out")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-coverprofile", out, "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GOPROXY=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test: %v\n%s", err, text)
	}
	p, err := coverage.ParseFiles("", []string{out},
		coverage.Config{Modules: []coverage.Module{{Path: "example.com/m", Dir: "."}}})
	if err != nil {
		t.Fatal(err)
	}
	// The block of the if ends at its brace; the body is another block.
	if diff := cmp.Diff([]string{"a/a.go [{3 7} {10 12}]/[{3 4} {7 7}]"}, show(p)); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	if percent, ok := p.Percent(); !ok || percent != 37.5 {
		t.Errorf("percent %v, %v", percent, ok)
	}
}

func TestMergeAndFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for i, text := range []string{"SF:a\nDA:1,1\nDA:2,0\nend_of_record\n",
		"SF:a\nDA:2,1\nDA:3,0\nend_of_record\nSF:b\nDA:1,0\n"} {
		names = append(names, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.WriteFile(names[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := coverage.ParseFiles("", names, coverage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a [{1 3}]/[{1 2}]", "b [{1 1}]/[]"}, show(p)); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	if p.Complete || !strings.Contains(p.Reason, "the last file has no end") {
		t.Errorf("complete %v, reason %q", p.Complete, p.Reason)
	}
	if percent, ok := p.Percent(); !ok || percent != 50 {
		t.Errorf("percent %v, %v", percent, ok)
	}
	if empty := coverage.Merge(); empty.Complete {
		t.Error("no profile at all is complete")
	}
	if _, ok := coverage.Merge().Percent(); ok {
		t.Error("no line has a percentage")
	}
	if _, err := coverage.ParseFiles("", []string{filepath.Join(dir, "none")}, coverage.Config{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back coverage.Profile
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(show(p), show(&back)); diff != "" || !strings.Contains(string(text), `"covered":[[1,2]]`) {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
	for _, bad := range []string{`[[2,1]]`, `[[0,1]]`, `[[1,3],[3,4]]`, `[[1,99999999999]]`, `[[1,20000000]]`, `[1]`} {
		var l coverage.Lines
		if err := json.Unmarshal([]byte(bad), &l); err == nil {
			t.Errorf("%s is read as %v", bad, l.Ranges())
		}
	}
}

// A set of lines behaves like a map of them.
func TestLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sets [2]coverage.Lines
		want := make(map[int]bool)
		for range rapid.IntRange(0, 20).Draw(t, "operations") {
			i := rapid.IntRange(0, 1).Draw(t, "set")
			first := rapid.IntRange(-3, 400).Draw(t, "first")
			last := first + rapid.IntRange(-1, 150).Draw(t, "length")
			if rapid.Bool().Draw(t, "single") {
				last = first
				sets[i].Add(first)
			} else {
				sets[i].AddRange(first, last)
			}
			for line := max(first, 1); line <= last; line++ {
				want[line] = true
			}
		}
		sets[0].Merge(&sets[1])
		l := &sets[0]
		if l.Len() != len(want) {
			t.Fatalf("%d lines, want %d", l.Len(), len(want))
		}
		all := slices.Collect(l.All())
		if !slices.IsSorted(all) || len(all) != len(want) {
			t.Fatalf("lines %v", all)
		}
		for line := -5; line < 600; line++ {
			if l.Has(line) != want[line] {
				t.Fatalf("line %d: %v, want %v", line, l.Has(line), want[line])
			}
		}
		text, err := json.Marshal(l)
		var back coverage.Lines
		if err != nil || json.Unmarshal(text, &back) != nil || !slices.Equal(slices.Collect(back.All()), all) {
			t.Fatalf("%s, %v: read back as %v", text, err, back.Ranges())
		}
	})
}
