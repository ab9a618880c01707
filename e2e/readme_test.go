package e2e

import (
	"os"
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
