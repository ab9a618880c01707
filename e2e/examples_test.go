package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/testing/effort"
)

// exampleProgram is one of examples/, with its arguments, input files and output.
type exampleProgram struct {
	name  string
	args  []string
	files map[string]string
	want  string // a regular expression
	// anew matches what it prints after a kill at any instant.
	anew string
	// noArgs is set when it needs arguments.
	noArgs bool
}

func examplePrograms() []exampleProgram {
	return []exampleProgram{
		{name: "first", want: "^TO LAST\n$"},
		{name: "wordcount", args: []string{"a.txt", "b.txt", "empty.txt"}, noArgs: true,
			files: map[string]string{"a.txt": "one two three", "b.txt": "four\nfive", "empty.txt": ""},
			want:  "^      3 a.txt\n      2 b.txt\n      0 empty.txt\n      5 total\n$"},
		{name: "crash", want: "(?s)^asked question 0\n.*\n10 answers, the last is QUESTION 9\n$",
			anew: "10 answers, the last is QUESTION 9\n$"},
		// A call that was begun when it was killed counts against the budget.
		{name: "budget", want: "^5 calls made, 15 refused\n$", anew: "^5 calls made, 1[5-9] refused\n$"},
		{name: "ask", args: []string{"docs"}, noArgs: true,
			files: map[string]string{"docs/a.md": "# Alpha\nmore\n", "docs/b.md": "# Beta\n", "docs/c.bin": "\x00\x01"},
			want:  "^docs/a.md begins with \"# Alpha\"\ndocs/b.md begins with \"# Beta\"\n$"},
	}
}

// examples builds them, with failpoints, once.
var examples = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(sharedFolder(), "examples")
	return folder, build(folder+"/", "-X github.com/perdure/perdure/internal/process/failpoint.enabled=1",
		"../examples/...")
})

// command returns the example's command line in a folder with its files.
func (e *exampleProgram) command(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	folder, err := examples()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range e.files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(folder, e.name), e.args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return cmd
}

// runs runs the example to its end and compares its output.
func (e *exampleProgram) runs(t *testing.T, dir, want string) string {
	t.Helper()
	out, err := e.command(t, dir).CombinedOutput()
	if err != nil || !regexp.MustCompile(want).Match(out) {
		t.Errorf("%s: %v, it printed %q, want %s", e.name, err, out, want)
	}
	return string(out)
}

// Every example has the output in its comment, also in a second run in the same folder,
// and fails without its required arguments.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	all := examplePrograms()
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := e.runs(t, dir, e.want)
			if e.name == "crash" {
				asksOnce(t, out)
				e.want = e.anew
			}
			e.runs(t, dir, e.want)
			if !e.noArgs {
				return
			}
			e.args = nil
			var exit *exec.ExitError
			usage, err := e.command(t, dir).CombinedOutput()
			if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.HasPrefix(string(usage), "usage: "+e.name) {
				t.Errorf("without arguments: %v, %q, want a usage message and exit status 2", err, usage)
			}
		})
	}
	folders, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(folders) != len(all)+1 { // outside is another module
		t.Errorf("%d examples, %v; %d are tested here", len(folders), err, len(all))
	}
}

// A program of another module runs tasks, models, agents and loops.
func TestExampleOutside(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"sh", "wc", "grep"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "outside")
	build := exec.Command("go", "build", "-C", "../examples/outside", "-race=false", "-o", program)
	build.Env = givenEnv()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cmd := exec.Command(program, "work")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		want := "shout completed: TO LAST\nrun completed: 5\nloop completed: the check passes after iteration 1"
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Fatalf("%v, it printed %q", err, out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "work", "note.txt")); err != nil || string(text) != "done\n" {
		t.Errorf("note.txt holds %q, %v", text, err)
	}
	var exit *exec.ExitError
	usage, err := exec.Command(program).CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || string(usage) != "usage: outside FOLDER\n" {
		t.Errorf("without arguments: %v, %q, want a usage message and exit status 2", err, usage)
	}
}

// asksOnce checks that the crash example sends each question once, in three processes.
func asksOnce(t *testing.T, out string) {
	t.Helper()
	var order strings.Builder
	for _, a := range regexp.MustCompile(`(?m)^asked question (\d)$`).FindAllStringSubmatch(out, -1) {
		order.WriteString(a[1])
	}
	if order.String() != "0123456789" {
		t.Errorf("asked %s", order.String())
	}
	if deaths := strings.Count(out, "killed") + strings.Count(out, "exit status"); deaths != 3 {
		t.Errorf("it died %d times", deaths)
	}
}

// setUp is the number of transactions in which an example opens a session, creates its
// tree, claims the root and creates its children.
const setUp = 4

// Every example continues when it is run again after a kill at any transaction: none
// loses children or repeats completed tasks.
func TestExamplesSurviveKills(t *testing.T) {
	t.Parallel()
	points, most := []string{"tx.after_commit"}, setUp+2
	if effort.Long() {
		points, most = append(points, "tx.before_commit"), 1000
	}
	for _, e := range examplePrograms() {
		for _, point := range points {
			t.Run(e.name+"/"+point, func(t *testing.T) {
				t.Parallel()
				n := 1
				for n <= most && e.killedAt(t, point, n) {
					n++
				}
				if n == 1 {
					t.Error("it was not killed")
				}
			})
		}
	}
}

// killedAt runs the example, kills it at the n-th passage of a failpoint, and runs it
// again to its end. It reports whether it was killed.
func (e *exampleProgram) killedAt(t *testing.T, point string, n int) bool {
	t.Helper()
	dir := t.TempDir()
	if e.command(t, dir, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)).Run() == nil {
		return false
	}
	want := e.want
	if e.anew != "" && (n > setUp || e.name == "crash") {
		want = e.anew
	}
	e.runs(t, dir, want)
	return true
}
