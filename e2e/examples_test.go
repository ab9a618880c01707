package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every example does what its comment says.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	programs := t.TempDir() + "/"
	if err := build(programs, "", "../examples/..."); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(t *testing.T, program, dir string){
		"first":     exampleFirst,
		"wordcount": exampleWordcount,
		"crash":     exampleCrash,
		"budget":    exampleBudget,
		"ask":       exampleAsk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, programs+name, t.TempDir())
		})
	}
	folders, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(folders) != 5 {
		t.Errorf("%d examples, %v; 5 are tested here", len(folders), err)
	}
}

func example(t *testing.T, program, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func exampleFirst(t *testing.T, program, dir string) {
	for range 2 { // in one store
		if out := example(t, program, dir); out != "TO LAST\n" {
			t.Errorf("it printed %q", out)
		}
	}
}

func exampleWordcount(t *testing.T, program, dir string) {
	for name, text := range map[string]string{"a.txt": "one two three", "b.txt": "four\nfive", "empty.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := "      3 a.txt\n      2 b.txt\n      0 empty.txt\n      5 total\n"
	if out := example(t, program, dir, "a.txt", "b.txt", "empty.txt"); out != want {
		t.Errorf("it printed %q", out)
	}
}

func exampleCrash(t *testing.T, program, dir string) {
	out := example(t, program, dir)
	asked := regexp.MustCompile(`(?m)^asked question (\d)$`).FindAllStringSubmatch(out, -1)
	var order strings.Builder
	for _, a := range asked {
		order.WriteString(a[1])
	}
	if order.String() != "0123456789" {
		t.Errorf("asked %s", order.String())
	}
	if deaths := strings.Count(out, "killed") + strings.Count(out, "exit status"); deaths != 3 {
		t.Errorf("it died %d times", deaths)
	}
	if !strings.HasSuffix(out, "10 answers, the last is QUESTION 9\n") {
		t.Errorf("it printed %q", out)
	}
}

func exampleBudget(t *testing.T, program, dir string) {
	if out := example(t, program, dir); out != "5 calls made, 15 refused\n" {
		t.Errorf("it printed %q", out)
	}
}

func exampleAsk(t *testing.T, program, dir string) {
	docs := filepath.Join(dir, "docs")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.md": "# Alpha\nmore\n", "b.md": "# Beta\n", "c.bin": "\x00\x01"} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := `docs/a.md begins with "# Alpha"` + "\n" + `docs/b.md begins with "# Beta"` + "\n"
	if out := example(t, program, dir, "docs"); out != want {
		t.Errorf("it printed %q", out)
	}
}
