package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
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

// The second example of the README prints what it says, with a program as the
// model and a book that every Go toolchain has.
func TestDocsReadmeBook(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program")
	}
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("there is no awk")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/perdure", "../cmd/perdure").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, after, _ := strings.Cut(readme(t), "perdure run \"What does Newton leave as questions?\"")
	args, rest, ok := strings.Cut(after, "\n```\n\n```\n")
	shown, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README.md does not show the command and what it prints")
	}
	cmd := exec.Command("sh", "-c", "perdure run 'What does Newton leave as questions?'"+args)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, last, _ := strings.Cut(shown, "…\n")
	if !strings.HasPrefix(string(out), first) || !strings.HasSuffix(string(out), last) || strings.Count(string(out), "\n") != 32 {
		t.Errorf("it printed %s", out)
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
