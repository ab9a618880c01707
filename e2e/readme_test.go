package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	allowlist "github.com/perdure/perdure/internal/process/environ"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The Go program in the README is the one that is compiled.
func TestDocsReadmeProgram(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("../examples/first/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readme(t), "```go\n"+string(program)+"```") {
		t.Error("the Go block of README.md is not examples/first/main.go")
	}
}

// The second example of the README prints the output in the README, with a program as the
// model and a text of the Go toolchain.
func TestDocsReadmeBook(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("there is no awk")
	}
	dir := t.TempDir()
	_, after, _ := strings.Cut(readme(t), "perdure run \"What does Newton leave as questions?\"")
	args, rest, ok := strings.Cut(after, "\n```\n\n```\n")
	shown, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README.md does not show the command and what it prints")
	}
	cmd := exec.Command("sh", "-c", "perdure run 'What does Newton leave as questions?'"+args)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+pathWithProgram(t))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, last, _ := strings.Cut(shown, "…\n")
	if !strings.HasPrefix(string(out), first) || !strings.HasSuffix(string(out), last) ||
		strings.Count(string(out), "\n") != 32 {
		t.Errorf("it printed %s", out)
	}
}

// The example of a REPL prints the output in the README.
func TestDocsReadmeRepl(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"awk", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no ", program)
		}
	}
	_, after, _ := strings.Cut(readme(t), "perdure run \"How many questions does Newton leave?\"")
	args, rest, ok := strings.Cut(after, "\n```\n\n```\n")
	shown, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README.md does not show the command and what it prints")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir+"/examples/repl", os.DirFS("../examples/repl")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "perdure run 'How many questions does Newton leave?'"+args)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+pathWithProgram(t))
	var errs strings.Builder
	cmd.Stderr = &errs
	if out, err := cmd.Output(); err != nil || string(out) != shown {
		t.Errorf("it printed %s, %v\n%s", out, err, &errs)
	}
}

// The example of a loop prints the output in the README, except its name and the time,
// and does not change the tests.
func TestDocsReadmeLoop(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sed"); err != nil {
		t.Skip("there is no sed")
	}
	dir := t.TempDir()
	_, after, _ := strings.Cut(readme(t), "$ perdure loop run ")
	args, rest, _ := strings.Cut(after, "\n")
	shown, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("README.md does not show the command and what it prints")
	}
	if err := os.CopyFS(dir+"/slug", os.DirFS("../examples/loop")); err != nil {
		t.Fatal(err)
	}
	// In a build cache of its own, the clean copy would build Go's library, and the loop would print
	// how long that takes.
	cmd := exec.Command("sh", "-c", "perdure loop run "+args+" --env GOCACHE 2>&1")
	// The number of the variables that are not passed depends on the machine.
	cmd.Dir, cmd.Env = dir+"/slug", append(allowlist.Base(os.Environ(), nil), "PATH="+pathWithProgram(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	varying := regexp.MustCompile(`(?m)make-the-tests-pass-[0-9a-f]{8}|^\d\d:\d\d:\d\d|in (\d+m )?[0-9.]+s;`)
	if got, want := varying.ReplaceAllString(string(out), "#"), varying.ReplaceAllString(shown, "#"); got != want {
		t.Errorf("it printed\n%s\nwant\n%s", got, want)
	}
	before, _ := os.ReadFile("../examples/loop/slug_test.go")
	if now, err := os.ReadFile(dir + "/slug/slug_test.go"); err != nil || string(now) != string(before) {
		t.Errorf("the tests are not as they were: %v\n%s", err, now)
	}
}

// Every file the README links to is there.
func TestDocsReadmeLinks(t *testing.T) {
	t.Parallel()
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(readme(t), "")
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(prose, -1) {
		if strings.Contains(link[1], "://") {
			continue
		}
		if _, err := os.Stat("../" + link[1]); err != nil {
			t.Errorf("README.md links to %s: %v", link[1], err)
		}
	}
}
