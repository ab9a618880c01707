package testreport_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/testreport"
)

// runGo runs go test -json on a module of these files and returns its output.
func runGo(t *testing.T, files map[string]string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.24\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GOPROXY=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && stdout.Len() == 0 {
		t.Fatalf("go test: %v\n%s", err, stderr.String())
	}
	return stdout.String()
}

func parse(t *testing.T, text string) *testreport.Report {
	t.Helper()
	r, err := testreport.Parse("", strings.NewReader(text), testreport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goPackages are test packages, by name, and the expected report of their run.
var goPackages = map[string]struct {
	text     string
	want     []string
	reason   string
	contains string // in the message of the last test that failed, or the first broken suite
}{
	"ok": {
		text: "import \"fmt\"\nfunc TestP(t *testing.T) { for _, n := range []string{\"a\", \"a\", \"b c\"} { t.Run(n, " +
			"func(t *testing.T) {}) } }\n" +
			"func TestSkip(t *testing.T) { t.Skip(\"later\") }\nfunc Example() { fmt.Println(1)\n// Output: 1\n}\n" +
			"func FuzzF(f *testing.F) { f.Add(1); f.Fuzz(func(*testing.T, int) {}) }\n",
		want: []string{
			"passed ok::TestP", "passed ok::TestP/a", "passed ok::TestP/a#01", "passed ok::TestP/b_c", "skipped ok::TestSkip",
			"passed ok::FuzzF", "passed ok::FuzzF/seed#0", "passed ok::Example",
		},
	},
	"bad": {
		text: "func TestP(t *testing.T) {}\nfunc TestF(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Parallel(); " +
			"t.Errorf(\"got %d\\nwant 2\", 1) }) }\n",
		want: []string{"passed bad::TestP", "failed bad::TestF", "failed bad::TestF/sub"}, contains: "got 1\n        want 2",
	},
	"panics": {
		text: "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Log(\"before\"); panic(\"boom\") }\n" +
			"func TestC(t *testing.T) {}\n",
		want:     []string{"passed panics::TestA", "failed panics::TestB", "broken crash panics"},
		contains: "panic: boom",
	},
	"goroutine": {
		text:     "func TestB(t *testing.T) { go func() { panic(\"behind\") }(); select {} }\nfunc TestC(t *testing.T) {}\n",
		want:     []string{"failed goroutine::TestB", "broken crash goroutine", "broken incomplete goroutine"},
		reason:   `test "example.com/m/goroutine::TestB" has no end`,
		contains: "panic: behind",
	},
	"exits": {
		text: "import \"os\"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { os.Exit(0) }\n" +
			"func TestC(t *testing.T) {}\n",
		want:     []string{"passed exits::TestA", "failed exits::TestB", "broken crash exits"},
		contains: "unexpected call to os.Exit(0)",
	},
	"hard": { // the events say that TestB passed
		text: "import \"syscall\"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { syscall.Exit(0) }\n" +
			"func TestC(t *testing.T) {}\n",
		want:   []string{"passed hard::TestA", "unfinished hard::TestB", "broken incomplete hard"},
		reason: `package "example.com/m/hard" has no end`,
	},
	"build": {
		text:     "func TestA(t *testing.T) { missing() }\n",
		want:     []string{"broken build build"},
		contains: "undefined: missing",
	},
	"main": {
		text: "import \"os\"\nfunc TestMain(m *testing.M) { m.Run(); os.Stdout.WriteString(\"leaked\\n\"); os.Exit(3) " +
			"}\nfunc TestA(t *testing.T) {}\n",
		want:     []string{"passed main::TestA", "broken exit main"},
		contains: "leaked",
	},
	"empty": {text: "var _ testing.TB\n", want: nil},
}

// The runner's own output for all ways in which a package can end.
func TestGoRun(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for name, tt := range goPackages {
		files[name+"/x_test.go"] = "package x\n\nimport \"testing\"\n" + tt.text
	}
	files["none/none.go"] = "package none\n"
	files["setup/x_test.go"] = "package x\n\nimport _ \"example.com/nowhere\"\n"
	output := runGo(t, files, "-vet=off", "./...")

	var whole []string
	for name, tt := range goPackages {
		var part strings.Builder
		for line := range strings.Lines(output) {
			if strings.Contains(line, `"example.com/m/`+name+`"`) || strings.Contains(line, `"example.com/m/`+name+` [`) {
				part.WriteString(line)
			}
		}
		r := parse(t, part.String())
		var got []string
		for _, row := range rows(r) {
			got = append(got, strings.Replace(row, "example.com/m/", "", 1))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if r.Complete != (tt.reason == "") || r.Reason != tt.reason {
			t.Errorf("%s: complete %v, reason %q, want %q", name, r.Complete, r.Reason, tt.reason)
		}
		messages := ""
		for _, test := range r.Tests {
			messages += test.Message + "\n"
		}
		for _, b := range r.Broken {
			messages += b.Message + "\n"
		}
		if !strings.Contains(messages, tt.contains) {
			t.Errorf("%s: messages %q do not contain %q", name, messages, tt.contains)
		}
		whole = append(whole, tt.want...)
	}
	r := parse(t, "go: some remark\n"+output)
	if got := len(r.Tests) + len(r.Broken); got != len(whole)+1 || r.Ignored != 1 || r.Format != testreport.GoTest {
		t.Errorf("all packages: %d tests and broken suites, want %d; %d lines ignored; format %q", got, len(whole)+1,
			r.Ignored, r.Format)
	}
	if !slices.Contains(rows(r), "broken build example.com/m/setup") {
		t.Errorf("a missing import is not among %q", rows(r))
	}
}

// Benchmarks have no end of their own.
func TestGoBenchmark(t *testing.T) {
	t.Parallel()
	output := runGo(t, map[string]string{"x/x_test.go": "package x\n\nimport \"testing\"\n\n" +
		"func BenchmarkA(b *testing.B) {}\nfunc BenchmarkB(b *testing.B) { b.Fatal(1) }\n"},
		"-bench", ".", "-benchtime", "1x", "./...")
	r := parse(t, output)
	want := []string{"passed example.com/m/x::BenchmarkA", "failed example.com/m/x::BenchmarkB"}
	if diff := cmp.Diff(want, rows(r)); diff != "" {
		t.Errorf("tests (-want +got):\n%s\n%s", diff, output)
	}
}

func TestGoTimeout(t *testing.T) {
	t.Parallel()
	output := runGo(t, map[string]string{"x/x_test.go": "package x\n\nimport \"testing\"\n\n" +
		"func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { select {} }\nfunc TestC(t *testing.T) {}\n"},
		"-timeout", "1s", "./...")
	r := parse(t, output)
	want := []string{"passed example.com/m/x::TestA", "failed example.com/m/x::TestB", "broken timeout example.com/m/x",
		"broken incomplete example.com/m/x"}
	if diff := cmp.Diff(want, rows(r)); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if r.Complete || !strings.HasPrefix(r.Tests[1].Message, "panic: test timed out after 1s") {
		t.Errorf("complete %v, message %q", r.Complete, r.Tests[1].Message)
	}
}

// A flaky test shows with -count.
func TestGoCount(t *testing.T) {
	t.Parallel()
	output := runGo(t, map[string]string{"x/x_test.go": "package x\n\nimport \"testing\"\n\nvar n int\n\n" +
		"func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { if n++; n == 1 { t.Fatal(n) } }\n"},
		"-count", "2", "./...")
	r := parse(t, output)
	want := []string{"passed example.com/m/x::TestA", "flaky failed example.com/m/x::TestB"}
	if diff := cmp.Diff(want, rows(r)); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if !r.Complete || sound(r) {
		t.Errorf("complete %v, ok %v", r.Complete, sound(r))
	}
}

// Versions before 1.24 print build failures as plain lines.
func TestGoOlder(t *testing.T) {
	t.Parallel()
	r := parse(t, `# example.com/m/a
./a.go:1:1: broken
FAIL	example.com/m/a [build failed]
{"Action":"start","Package":"example.com/m/b"}
not an event
{"not":"one"}
{"Action":"run","Package":"example.com/m/b","Test":"TestA"}
{"Action":"output","Package":"example.com/m/b","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"example.com/m/b","Test":"TestA","Elapsed":0.5}
{"Action":"output","Package":"example.com/m/b","Output":"ok  \texample.com/m/b\t(cached)\n"}
{"Action":"pass","Package":"example.com/m/b","Elapsed":0}
`)
	want := []string{"passed example.com/m/b::TestA", "broken build example.com/m/a"}
	if diff := cmp.Diff(want, rows(r)); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if !r.Complete || r.Ignored != 5 || r.Tests[0].Duration != 5e8 {
		t.Errorf("%+v", r)
	}
}
