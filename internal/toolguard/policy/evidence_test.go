package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/toolguard/policy"
)

func goTest(names ...string) string {
	text := "package a\n\nimport \"testing\"\n"
	for i, name := range names {
		text += fmt.Sprintf("\nfunc %s(t *testing.T) {\n\tif f%d() != %d {\n\t\tt.Error(\"%s\")\n\t}\n}\n", name, i, i, name)
	}
	return text
}

// look makes a call like an agent that asked, and returns what it did.
func look(t *testing.T, p *policy.Policy, c *agent.ToolCall, do func()) *policy.Evidence {
	t.Helper()
	j := p.Judge(c, "")
	before := p.LookBefore(c, "", &j)
	do()
	e, err := before.LookAfter(t.Context(), &detect.Input{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func kinds(e *policy.Evidence) string {
	var list []string
	for _, f := range e.Findings {
		list = append(list, string(f.Type)+" "+f.Subject)
	}
	return strings.Join(list, ", ")
}

// TestEvidence: lost tests are reported; a moved or renamed test is not.
func TestEvidence(t *testing.T) {
	t.Parallel()
	remove := func(t *testing.T, p *policy.Policy, name string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(p.Root, name)); err != nil {
			t.Fatal(err)
		}
	}
	move := func(t *testing.T, p *policy.Policy, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(p.Root, from), filepath.Join(p.Root, to)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name          string
		call          *agent.ToolCall
		do            func(t *testing.T, p *policy.Policy)
		want          string
		before, after int
	}{
		{"a test deleted", edit("a_test.go"),
			func(t *testing.T, p *policy.Policy) { put(t, p, "a_test.go", goTest("TestOne")) }, "test_deletion TestTwo", 2, 1},
		{"a test skipped", edit("a_test.go"), func(t *testing.T, p *policy.Policy) {
			put(t, p, "a_test.go", strings.Replace(goTest("TestOne", "TestTwo"), "{\n\tif f1",
				"{\n\tt.Skip(\"later\")\n\tif f1", 1))
		}, "test_skipping TestTwo", 2, 2},
		{"a test added", edit("a_test.go"), func(t *testing.T, p *policy.Policy) {
			put(t, p, "a_test.go", goTest("TestOne", "TestTwo", "TestThree"))
		}, "", 2, 3},
		{"nothing done", edit("a_test.go"), func(*testing.T, *policy.Policy) {}, "", 0, 0},
		{"a folder deleted", run("rm -rf sub"), func(t *testing.T, p *policy.Policy) { remove(t, p, "sub") },
			"test_deletion sub/b_test.go", 2, 0},
		{"files deleted by a pattern", run("rm *_test.go"),
			func(t *testing.T, p *policy.Policy) { remove(t, p, "a_test.go") }, "test_deletion a_test.go", 2, 0},
		{"a file moved", run("mv a_test.go c_test.go"),
			func(t *testing.T, p *policy.Policy) { move(t, p, "a_test.go", "c_test.go") }, "", 2, 2},
		{"a file moved into a folder", run("cd sub && git mv ../a_test.go ."),
			func(t *testing.T, p *policy.Policy) { move(t, p, "a_test.go", "sub/a_test.go") }, "", 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := place(t, map[string]string{"a_test.go": goTest("TestOne", "TestTwo"),
				"sub/b_test.go": goTest("TestB", "TestC"), "a.go": "package a\n"})
			e := look(t, p, tt.call, func() { tt.do(t, p) })
			if kinds(e) != tt.want || e.TestsBefore != tt.before || e.TestsAfter != tt.after ||
				(e.Text() == "") != (tt.want == "") {
				t.Errorf("%q (want %q), %+v\n%s", kinds(e), tt.want, e, e.Text())
			}
		})
	}
}

// TestEvidenceLimits: files that are too large, binary or known only to the shell are
// listed, and not reported as lost.
func TestEvidenceLimits(t *testing.T) {
	t.Parallel()
	p := place(t, map[string]string{"a_test.go": goTest("TestOne"),
		"big_test.go": goTest("TestBig") + strings.Repeat("//\n", 2<<20), "bin_test.go": "\x00\xff"})
	e := look(t, p, edit("big_test.go"), func() { put(t, p, "big_test.go", "package a") })
	if len(e.Findings) != 0 || !strings.Contains(strings.Join(e.Skipped, " "), "limit") {
		t.Errorf("a large file: %+v", e)
	}
	e = look(t, p, edit("a_test.go"), func() { put(t, p, "a_test.go", goTest("TestOne")+strings.Repeat("//\n", 2<<20)) })
	if len(e.Findings) != 0 || !strings.Contains(strings.Join(e.Skipped, " "), "a_test.go") {
		t.Errorf("a file that grew: %+v", e)
	}
	e = look(t, p, run("rm $X; rm -rf \"$Y\"/z"), func() {})
	if len(e.Findings) != 0 || !strings.Contains(strings.Join(e.Skipped, " "), "shell") {
		t.Errorf("what the shell knows: %+v", e)
	}
	e = look(t, p, edit("bin_test.go"), func() { put(t, p, "bin_test.go", "\x00") })
	if len(e.Findings) != 0 {
		t.Errorf("no text: %+v", e)
	}
	for i := range 600 {
		put(t, p, fmt.Sprintf("many/f%d_test.go", i), goTest("TestOne"))
	}
	e = look(t, p, run("rm -rf many"), func() {})
	if !strings.Contains(strings.Join(e.Skipped, " "), "limit") {
		t.Errorf("many files: %+v", e)
	}
}

// BenchmarkEvidence compares an ordinary test file before and after an edit.
func BenchmarkEvidence(b *testing.B) {
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("TestNumber%d", i)
	}
	p := place(b, map[string]string{"a_test.go": ""})
	was, is := goTest(names...), goTest(names[:39]...)
	var took []time.Duration
	for b.Loop() {
		put(b, p, "a_test.go", was)
		began := time.Now()
		c := edit("a_test.go")
		j := p.Judge(c, "")
		before := p.LookBefore(c, "", &j)
		half := time.Since(began)
		put(b, p, "a_test.go", is)
		began = time.Now()
		e, err := before.LookAfter(b.Context(), &detect.Input{})
		if err != nil || len(e.Findings) != 1 {
			b.Fatalf("%+v, %v", e, err)
		}
		took = append(took, half+time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
