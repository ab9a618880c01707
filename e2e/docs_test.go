package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Each sentence of the guarantees names tests, and they exist.
func TestDocsGuarantees(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	promises, _, _ := strings.Cut(string(text), "## What is not guaranteed")
	items := strings.Split(promises, "\n- ")[1:]
	if len(items) < 20 {
		t.Fatalf("%d sentences", len(items))
	}
	exist, name := testNames(t), regexp.MustCompile("`(Test[A-Za-z]+)`")
	for _, item := range items {
		if !name.MatchString(item) {
			t.Errorf("no test: %s", item)
		}
	}
	for _, found := range name.FindAllStringSubmatch(string(text), -1) {
		if !exist[found[1]] {
			t.Errorf("there is no %s", found[1])
		}
	}
}

// The table of pitfalls has 16 rows in their order, and the tests that it names exist.
func TestDocsPitfalls(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/pitfalls.md")
	if err != nil {
		t.Fatal(err)
	}
	const rows = 16
	row := regexp.MustCompile(`(?m)^\| (\d+) \|.*\| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1)
	name := regexp.MustCompile("`((?:[a-z0-9/]+/)?Test[A-Za-z]+)`")
	if len(row) != rows {
		t.Fatalf("%d rows, want %d", len(row), rows)
	}
	folders := testFolders(t)
	for i, r := range row {
		found := name.FindAllStringSubmatch(r[2], -1)
		if r[1] != strconv.Itoa(i+1) || len(found) == 0 {
			t.Errorf("row %d has the number %s and %d tests", i+1, r[1], len(found))
		}
		for _, f := range found {
			if why := missingProof(f[1], folders); why != "" {
				t.Errorf("row %s: %s", r[1], why)
			}
		}
	}
}

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for name := range testFolders(t) {
		names[name] = true
	}
	return names
}

// testFolders maps the names of all tests to the packages that have them, as paths in the module.
func testFolders(t *testing.T) map[string][]string {
	t.Helper()
	folders, err := readTestFolders()
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// readTestFolders reads all test files, once.
var readTestFolders = sync.OnceValues(func() (map[string][]string, error) {
	folders := make(map[string][]string)
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z]+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(folders[m[1]], folder) {
				folders[m[1]] = append(folders[m[1]], folder)
			}
		}
		return nil
	})
	return folders, err
})

// Every page of docs/ is listed, every file that a page links to is there.
func TestDocsPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(
			code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat("../docs/" + link[1]); err != nil {
				t.Errorf("%s links to %s: %v", page, link[1], err)
			}
		}
	}
}
