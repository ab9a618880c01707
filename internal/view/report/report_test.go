package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/view/report"
	"github.com/perdure/perdure/rlm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// document is a report in which all text of others is the given one.
func document(text string) *report.Document {
	at := func(second int) *time.Time {
		t := time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)
		return &t
	}
	usage := func(calls int64) perdure.Usage {
		return perdure.Usage{Calls: calls, InputTokens: 1000 * calls, OutputTokens: 100 * calls,
			CostUSD: 0.002 * float64(calls)}
	}
	row := func(id perdure.TaskID, depth int, state perdure.State, from, to int) client.OutlineRow {
		return client.OutlineRow{Task: id, Parent: 1, Depth: depth, State: state, Label: text, Attempts: 1,
			ActiveMS: float64(1000 * (to - from)),
			Usage:    usage(1), StartedAt: at(from), CompletedAt: at(to)}
	}
	root, good, bad := row(1, 0, perdure.Completed, 5, 25), row(2, 1, perdure.Completed, 6, 9), row(40, 1,
		perdure.Failed, 8, 20)
	bad.Error = &perdure.TaskError{Kind: text, Message: text}
	many := row(3, 1, perdure.Completed, 7, 22)
	answer, _ := json.Marshal(text) // a string has a JSON form
	d := &report.Document{
		Tree: perdure.Tree{ID: "tree-12345678", Name: text, Kind: "run", Root: 1, State: perdure.Partial, Partial: true,
			CreatedAt: *at(5), CompletedAt: at(25)},
		Prompt: text,
		Turns: []rlm.Turn{{Turn: 1, State: perdure.Failed, Reply: text, Call: 3, InputTokens: 10, OutputTokens: 20,
			SubCalls: 3, Usage: usage(3), Blocks: []rlm.TurnBlock{
				{State: perdure.Completed, Code: "print('light')  # " + text, Output: text, StartedAt: *at(5), EndedAt: at(7),
					Variables: []string{"x"}},
				{State: perdure.Failed, Code: text, Failure: text, SubCalls: 3, StartedAt: *at(7)}}},
			{Turn: 2, State: perdure.Running, Reply: text, Call: 4}},
		Result: &client.Result{Tree: "tree-12345678", State: perdure.Partial, Partial: true, Answer: answer,
			MissingTotal: 1,
			Citations:    []client.Citation{{File: text, StartLine: 3, EndLine: 4, Text: text}}},
		Data: client.Report{
			Tree: "tree-12345678", At: *at(30),
			Depths: []client.ReportDepth{{Depth: 0, Total: 1, Completed: 1, ActiveMS: 20},
				{Depth: 1, Total: 39, Completed: 38, Failed: 1,
					ActiveMS: 90_000, Usage: usage(39)}},
			Models: []client.ReportModel{{Model: text, Failed: 1, Retries: 2, Usage: usage(39), BusyMS: 88_000, MaxMS: 12_000}},
			Timeline: client.ReportTimeline{Start: *at(5), StepSeconds: 5, Of: "calls",
				Steps: []client.ReportStep{{Running: 1.5, Completed: 2}, {Running: 4, Completed: 20}, {},
					{Running: 0.2, Completed: 17, Failed: 1}}},
			Slowest: []client.OutlineRow{bad, good}, Failures: []client.OutlineRow{bad}, FailuresTotal: 1,
			ErrorKinds: []client.ReportErrorKind{{Kind: text, Tasks: 1}},
			Outline: []client.ReportRow{{OutlineRow: root}, {OutlineRow: good, Level: 1},
				{OutlineRow: many, Level: 1, Folded: 37, To: 39},
				{OutlineRow: bad, Level: 1, Below: 3}},
		},
	}
	d.Status.Progress = perdure.Progress{Tree: "tree-12345678", State: perdure.Partial, Partial: true, Total: 40,
		Completed: 39, Failed: 1,
		Percent: 100, MeanTaskSeconds: 2.5, P50TaskSeconds: 2, P95TaskSeconds: 11, Usage: usage(39), ElapsedSeconds: 20}
	return d
}

func write(t *testing.T, d *report.Document, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, format := range report.Formats() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			got := write(t, document("Where is the light?"), format)
			path := filepath.Join("testdata", "report."+format)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs from %s (-want +got), -update rewrites it:\n%s", path, diff)
			}
		})
	}
}

// A report tells what people were asked and decided, and what still waits.
func TestGates(t *testing.T) {
	t.Parallel()
	d := document("Where is the light?")
	opened, answered := time.Date(2026, 2, 2, 21, 0, 0, 0, time.UTC), time.Date(2026, 2, 2, 21, 2, 0, 0, time.UTC)
	d.Gates = []perdure.Gate{
		{Tree: d.Tree.ID, Number: 1, Run: true, OpenedAt: opened, AnsweredAt: &answered, Answer: "retry", AnsweredBy: "ann",
			Reason: "it is | up"},
		{Tree: d.Tree.ID, Number: 2, Run: true, OpenedAt: opened, Waiting: 3},
	}
	if got := write(t, d, "md"); !strings.Contains(got, `Gate 1 | retry by ann after 2m`) ||
		!strings.Contains(got, `it is \| up`) || !strings.Contains(got, "Gate 2 | not answered") {
		t.Errorf("of a tree that has ended:\n%s", got)
	}
	d.Status.State = perdure.Running
	if got := write(t, d, "html"); !strings.Contains(got, "3 tasks waiting at gate 2") {
		t.Errorf("of one that waits:\n%s", got)
	}
}

// hostile are strings that try to become markup.
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
		"\u202egnp.exe", "- item\n1. item", strings.Repeat("x", 5000), "\n\n\n",
	}
}

var tag = regexp.MustCompile(`<[a-zA-Z/!][^>]*>`)

// What others wrote changes no tag and no attribute of the page.
func TestHostileHTML(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`<(pre|li|h1)\b`)
	want := tags(write(t, document("harmless"), "html"))
	for _, text := range hostile() {
		got := tags(write(t, document(text), "html"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.60q changes the page (-want +got):\n%s", text, diff)
		}
	}
	if len(want) < 100 || !label.MatchString(strings.Join(want, "")) {
		t.Fatalf("%d tags: the test looks at nothing", len(want))
	}
	for _, outside := range []string{"src=", "href=", "url(", "@import", "http:", "https:", "<script"} {
		if page := write(t, document("harmless"), "html"); strings.Contains(page, outside) {
			t.Errorf("the page holds %q", outside)
		}
	}
}

// What others wrote is, in Markdown, inside of fences it cannot end, or in a
// line where it means nothing.
func TestHostileMarkdown(t *testing.T) {
	t.Parallel()
	want := outsideFences(t, write(t, document("harmless"), "md"))
	for _, text := range hostile() {
		got := outsideFences(t, write(t, document(text), "md"))
		if len(got) != len(want) {
			t.Errorf("%.60q: %d lines outside of code, want %d:\n%s", text, len(got), len(want), strings.Join(got, "\n"))
			continue
		}
		for i, line := range got {
			bare := escaped.ReplaceAllString(line, "")
			if strings.ContainsAny(bare, "<>[]`*~@") && !strings.HasPrefix(bare, "Tree `tree-") {
				t.Errorf("%.60q: %q", text, line)
			}
			if strings.Count(bare, "|") != strings.Count(want[i], "|") || strings.Contains(line, "://") ||
				strings.Contains(line, "www.") {
				t.Errorf("%.60q: %q has other cells, or a link, than %q", text, line, want[i])
			}
		}
	}
}

// escaped are escaped characters of Markdown.
var escaped = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]|&#[0-9]+;`)

// outsideFences are the lines that are not code.
func outsideFences(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	fence := ""
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		ticks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && len(ticks) >= len(fence) && strings.Trim(trimmed, "` ") == "":
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

// A running tree, or one that was never started, has a report too.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	d := document("x")
	d.Result, d.Tree.CompletedAt, d.Tree.Partial = nil, nil, false
	d.Tree.State, d.Status.State = perdure.Running, perdure.Running
	for i := range d.Data.Outline {
		d.Data.Outline[i].State, d.Data.Outline[i].CompletedAt = perdure.Running, nil
	}
	empty := &report.Document{Tree: perdure.Tree{ID: "tree-12345678", State: perdure.Queued}}
	empty.Status.State = perdure.Queued
	for _, format := range report.Formats() {
		if text := write(t, d, format); !strings.Contains(text, "ETA") || strings.Contains(text, "Answer") {
			t.Errorf("%s: %s", format, text)
		}
		if text := write(t, empty, format); !strings.Contains(text, "queued") || strings.Contains(text, "NaN") {
			t.Errorf("%s: %s", format, text)
		}
	}
	if err := d.Write(new(bytes.Buffer), "pdf"); err == nil {
		t.Error("an unknown format is written")
	}
}

// tags are the tags of a page, but for the colours of code.
func tags(page string) []string {
	colour := regexp.MustCompile(`<i class="(?:keyword|string|comment|number)">([^<]*)</i>`)
	return tag.FindAllString(colour.ReplaceAllString(page, "$1"), -1)
}

func FuzzReport(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	want := ""
	f.Fuzz(func(t *testing.T, text string) {
		page := write(t, document(text), "html")
		got := fmt.Sprint(tags(page))
		if want == "" {
			want = fmt.Sprint(tags(write(t, document("harmless"), "html")))
		}
		if got != want {
			t.Fatalf("%q changes the page", text)
		}
		outsideFences(t, write(t, document(text), "md"))
	})
}
