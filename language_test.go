package perdure_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unclear lists turns of phrase that are not written here, and what is written
// instead. Comments, strings with a blank in them and documents are searched;
// the strings of test files, mostly data, are not.
var unclear = []struct{ pattern, instead string }{
	{`tells? (?:whether|of)|(?:is|are|be|was|were|been) told`, "reports whether, reports, receives"},
	{`(?:some|no|any)body|whoever`, "the user, no process, any caller that"},
	{`in the midst|of before`, "midway, previous"},
	{`(?:what|who|which) stands? in|stands? in for|stood in for`, "fallback"},
	{`passing faults?`, "transient error"},
	{`hush(?:ed|es)?|silenced complaints?`, "suppressed warning"},
	{`tests? of the baseline (?:is|are) gone`, "test removed"},
	{`what there is`, "what exists, the parts that finished"},
	{`gather(?:s|ed|ing)?`, "collect"},
	{`beside`, "concurrently, next to"},
	{`deals?|dealt`, "fan out"},
	{`pieces?`, "part"},
	{`texts`, "text"},
	{`rouses?|roused`, "wake"},
	{`sealed`, "clean-copy check"},
	{`relays?`, "handoff ledger"},
	{`surveys?`, "outline, tree query"},
	{`wish(?:es)?`, "control request"},
	{`desks?`, "work item"},
	{`given up`, "failed permanently"},
	{`uncertain calls?`, "call with unknown outcome"},
	{`(?:is|are) none of`, "is not one of"},
}

// languageExceptions: key "words FILE WORD" to the reason.
var languageExceptions = map[string]string{
	"words loop/config/config.go sealed":                 "the name of the setting",
	"words internal/corpus/boundary/languages.go sealed": "a keyword of languages",
	"words internal/config/loop.go sealed":               "the name of the setting",
	"words internal/cli/loop/tune.go sealed":             "the names of the flags",
	"words loop/onlycopy.go sealed":                      "the names of the flags",
	"words internal/detect/syntax/declare.go sealed":     "a keyword of languages",
}

var unclearWords = func() *regexp.Regexp {
	var all []string
	for _, u := range unclear {
		all = append(all, u.pattern)
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
}()

// quoted is text that is quoted in a comment or a document: names, output, keys.
var quoted = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|\"[^\"\n]*\"")

func TestLanguage(t *testing.T) {
	t.Parallel()
	found := checkLanguage(handWritten(t))
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipFolder(name, entry.Name())
		case filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		found = append(found, unclearIn(filepath.ToSlash(name), 1, blankQuoted(string(text)))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	report(t, found, languageExceptions)
}

func checkLanguage(files []*sourceFile) []finding {
	var found []finding
	for _, f := range files {
		if f.path == "language_test.go" {
			continue
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				found = append(found, unclearIn(f.path, f.line(c.Pos()), blankQuoted(c.Text))...)
			}
		}
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && isStatement(spec.Names[0].Name) {
				return false
			}
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
				found = append(found, unclearIn(f.path, f.line(lit.Pos()), text)...)
			}
			return true
		})
	}
	return found
}

// isStatement reports whether a constant holds SQL, whose columns keep their names.
func isStatement(name string) bool {
	return strings.HasPrefix(name, "sql") || strings.HasSuffix(name, "Columns")
}

// blankQuoted blanks out what is quoted and keeps the line ends.
func blankQuoted(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
}

// unclearIn returns the unclear words in a text that begins at a line of a file.
func unclearIn(file string, line int, text string) []finding {
	var found []finding
	for i, l := range strings.Split(text, "\n") {
		for _, word := range unclearWords.FindAllString(l, -1) {
			found = append(found, finding{
				key:  "words " + file + " " + strings.ToLower(word),
				text: fmt.Sprintf("%s:%d: %q; write: %s", file, line+i, word, insteadOf(word)),
			})
		}
	}
	return found
}

func insteadOf(word string) string {
	for _, u := range unclear {
		if regexp.MustCompile(`(?i)^(?:` + u.pattern + `)$`).MatchString(word) {
			return u.instead
		}
	}
	return ""
}

func TestLanguageRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, src string
		want            []string
	}{
		{"comment", "a.go", "package a\n\n// F tells whether it is.\nfunc F() {}\n", []string{"words a.go tells whether"}},
		{"comment of a test", "a_test.go", "package a\n\n// Nobody waits.\nvar x int\n", []string{"words a_test.go nobody"}},
		{"string", "a.go", "package a\n\nvar x = \"try again what there is\"\n", []string{"words a.go what there is"}},
		{"name in a string", "a.go", "package a\n\nvar x = \"nobody\"\n", nil},
		{"data of a test", "a_test.go", "package a\n\nvar x = \"the texts of before\"\n", nil},
		{"quoted in a comment", "a.go", "package a\n\n// The user \"nobody\" and `sealed` keys.\nvar x int\n", nil},
		{"statement", "a.go", "package a\n\nconst sqlAsk = \"SELECT wish FROM loop\"\n", nil},
		{"part of a word", "a.go", "package a\n\n// The deadline of besides.\nvar x int\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := keys(checkLanguage(sources(t, map[string]string{test.file: test.src})))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
	text := "Fine.\n```\nnobody\n```\n`relay` and\ntexts\n"
	if got := unclearIn("a.md", 1, blankQuoted(text)); len(got) != 1 || !strings.HasPrefix(got[0].text, "a.md:6:") {
		t.Errorf("document: %v, want texts in line 6", got)
	}
}
