package loop_test

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/view/loop"
)

// hostile are strings that try to become markup, or to control a terminal.
func hostile() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</pre></main><h1>owned</h1>`,
		`' onmouseover='alert(1)`,
		"</title><script>x</script>", "</style><script>x</script>", "{{.Title}}", "<!-- ", "]]>", "&lt;b&gt;",
		"javascript:alert(1)",
		"# heading", "| a | b |\n|---|---|", "```\n# out\n```", "````text\n```", "~~~", "[link](javascript:alert(1))",
		"![x](http://evil/x.png)",
		"<http://evil>", "https://evil.example/x www.evil.example", "@somebody #12", "**bold** _it_ ~~gone~~ `code`", "\\",
		"\\|", "a\x1b]0;t\x07b",
		"\x1b[2J\x1b[31mred", "good\rbad", "\u202egnp.exe", "\x9b31m", "a\u009bb", "a\xff\xfeb", "- item\n1. item",
		strings.Repeat("x", 5000), strings.Repeat("long ", 3000),
		strings.Repeat("ü", 3000), strings.Repeat("line\n", 3000), "\n\n\nx", "line\u2028separator", "nul\x00byte",
		"'; rm -rf / #", "$(reboot)",
	}
}

// pages are the views of loops into which others wrote, by name.
func pages(t testing.TB, text string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	c := scene{t, "x" + text}
	for _, in := range []loop.Input{c.done(), c.asking()} {
		s := loop.New(in)
		for name, write := range views() {
			if name != "analytics.json" {
				all[name] += written(t, func(w io.Writer) error { return write(s, w) })
			}
		}
	}
	return all
}

// checkTerminal fails when a terminal would do something with a text but show it.
func checkTerminal(t testing.TB, name, text, got string) {
	t.Helper()
	if !utf8.ValidString(got) {
		t.Errorf("%s: %.60q makes invalid UTF-8", name, text)
	}
	for _, r := range got {
		if r != '\n' && (unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069') {
			t.Errorf("%s: %.60q lets %U through", name, text, r)
			return
		}
	}
	const most = 4 * 1024 // of a line, in bytes
	for line := range strings.Lines(got) {
		if len(line) > most {
			t.Errorf("%s: %.60q makes a line of %d bytes", name, text, len(line))
		}
	}
}

func terminal() []string {
	return []string{"overview.txt", "persistence.txt", "regressions.txt", "quality.txt", "list.txt"}
}

// TestHostile: what others wrote controls no terminal, changes no page, and means nothing in Markdown.
func TestHostile(t *testing.T) {
	t.Parallel()
	harmless := pages(t, "harmless")
	wantPlainPage(t, harmless["report.html"])
	for _, text := range hostile() {
		got := pages(t, text)
		for _, name := range terminal() {
			checkTerminal(t, name, text, got[name])
			// Only a question and its diff have lines of others: at most 15 and 60, and
			// how many more there are.
			want := strings.Count(harmless[name], "\n")
			if n := strings.Count(got[name], "\n"); n > want+77 || name != "overview.txt" && n != want {
				t.Errorf("%s: %.60q makes %d lines, want %d", name, text, n, want)
			}
		}
		wantTags(t, text, harmless["report.html"], got["report.html"])
		wantFenced(t, text, harmless["report.md"], got["report.md"])
	}
}

// An answer is written so that a shell takes it as one word.
func TestAnswersAreWords(t *testing.T) {
	t.Parallel()
	c := scene{t, "x"}
	in := c.asking()
	in.Gates[0].Question = raw(t,
		map[string]any{"title": "t", "options": []map[string]string{{"answer": "a'; reboot #", "effect": "e"},
			{"answer": "keep-it_2", "effect": "e"}}})
	got := written(t, func(w io.Writer) error { return loop.New(in).Overview(w, loop.Style{}) })
	for _, want := range []string{`perdure loop answer 'a'\''; reboot #' --loop fix-tests-a1b2c3d4`,
		"perdure loop answer keep-it_2 --loop"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in:\n%s", want, got)
		}
	}
}

var (
	tag = regexp.MustCompile(`<[a-zA-Z/!][^>]*>`)
	// lineOfDiff are the tags around a line of a diff, of which others determine the number.
	lineOfDiff = regexp.MustCompile(`^(<span( class="(file|hunk|plus|minus)")?>|</span>)$`)
)

// wantPlainPage checks a page that holds what no one tampered with.
func wantPlainPage(t *testing.T, page string) {
	t.Helper()
	if n := len(tag.FindAllString(page, -1)); n < 400 {
		t.Fatalf("%d tags: the test reads nothing", n)
	}
	for _, outside := range []string{"src=", "href=", "url(", "@import", "http:", "https:", "<script"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page holds %q", outside)
		}
	}
}

// wantTags: what others wrote changes no tag and no attribute of the page.
func wantTags(t *testing.T, text, harmless, got string) {
	t.Helper()
	tags := func(page string) []string {
		return slices.DeleteFunc(tag.FindAllString(page, -1), lineOfDiff.MatchString)
	}
	if diff := cmp.Diff(tags(harmless), tags(got)); diff != "" {
		t.Errorf("%.60q changes the page (-want +got):\n%s", text, diff)
	}
	if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\u202e") {
		t.Errorf("%.60q is not made visible", text)
	}
}

// wantFenced: what others wrote is, in Markdown, inside of fences it cannot end, or in a
// line where it means nothing.
func wantFenced(t *testing.T, text, harmless, report string) {
	t.Helper()
	want, got := outsideFences(t, harmless), outsideFences(t, report)
	if len(got) != len(want) {
		t.Errorf("%.60q: %d lines outside of code, want %d:\n%s", text, len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i, line := range got {
		bare := escaped.ReplaceAllString(line, "")
		if strings.ContainsAny(bare, "<>[]`*~@") {
			t.Errorf("%.60q: %q", text, line)
		}
		if strings.Count(bare, "|") != strings.Count(want[i], "|") || strings.Contains(line, "://") ||
			strings.Contains(line, "www.") {
			t.Errorf("%.60q: %q has other cells, or a link, than %q", text, line, want[i])
		}
	}
}

// escaped are escaped characters of Markdown.
var escaped = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]|&#[0-9]+;`)

// outsideFences are the lines that are not code.
func outsideFences(t testing.TB, text string) []string {
	t.Helper()
	var lines []string
	fence := ""
	for _, line := range strings.Split(text, "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && len(ticks) >= len(fence) && strings.Trim(line, "` ") == "":
			fence = ""
		case fence == "":
			lines = append(lines, line)
		}
	}
	if fence != "" {
		t.Fatalf("a fence is not closed:\n%s", text)
	}
	return lines
}

// Documents hold what others wrote as it is, and stay documents.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	for _, text := range hostile() {
		c := scene{t, "x" + text}
		for _, in := range []loop.Input{c.done(), c.asking()} {
			valid(t, "loop-state", loop.Document(in))
			valid(t, "iteration-analytics", loop.New(in).Analytics())
		}
	}
}

func FuzzViews(f *testing.F) {
	for _, text := range hostile()[:3] { // the tests above have the others
		f.Add(text)
	}
	var want []string
	f.Fuzz(func(t *testing.T, text string) {
		got := pages(t, text)
		for _, name := range terminal() {
			checkTerminal(t, name, text, got[name])
		}
		if want == nil {
			want = tag.FindAllString(pages(t, "harmless")["report.html"], -1)
		}
		if !slices.Equal(tag.FindAllString(got["report.html"], -1), want) {
			t.Fatalf("%q changes the page", text)
		}
		outsideFences(t, got["report.md"])
	})
}

// FuzzRecords reads records that were not written by the engine.
func FuzzRecords(f *testing.F) {
	c := scene{f, "Fix the tests"}
	in := c.input()
	for i := range in.Iterations {
		f.Add([]byte(in.Tree.Config), []byte(in.Loop.State), []byte(in.Iterations[i].Data), []byte(in.Gates[0].Question))
	}
	f.Add([]byte("{}"), []byte("null"), []byte("[]"), []byte(`{"options":[{}]}`))
	f.Fuzz(func(t *testing.T, config, state, data, question []byte) {
		in := scene{t, "Fix the tests"}.input()
		in.Tree.Config, in.Loop.State, in.Iterations[3].Data, in.Gates[0].Question = config, state, data, question
		for name, write := range views() {
			if name == "analytics.json" {
				continue // times that no JSON can hold are refused by the encoder
			}
			got := written(t, func(w io.Writer) error { return write(loop.New(in), w) })
			if strings.HasSuffix(name, ".txt") {
				checkTerminal(t, name, "records", got)
			}
		}
		loop.Document(in)
	})
}
