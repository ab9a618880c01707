package turns_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/rlm"
)

func TestHighlight(t *testing.T) {
	t.Parallel()
	got := turns.Highlight("for x in f(1_0, 'a # b'): # c\n    s = rf\"{x}\" + '''d\n'e''' \nformat = notin")
	want := []turns.Part{{"keyword", "for"}, {"", " x "}, {"keyword", "in"}, {"", " f("}, {"number", "1_0"}, {"", ", "},
		{"string", "'a # b'"}, {"", "): "}, {"comment", "# c"}, {"", "\n    s = "}, {"string", "rf\"{x}\""}, {"", " + "},
		{"string", "'''d\n'e'''"}, {"", " \nformat = notin"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The parts of any code are the code.
func FuzzHighlight(f *testing.F) {
	f.Add("x = '")
	f.Add("\"\"\"\\")
	f.Fuzz(func(t *testing.T, code string) {
		var b strings.Builder
		for _, p := range turns.Highlight(code) {
			b.WriteString(p.Text)
		}
		if b.String() != code {
			t.Errorf("%q became %q", code, b.String())
		}
	})
}

func TestFacts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end := at.Add(1500 * time.Millisecond)
	b := &rlm.TurnBlock{Failure: "ValueError: a\nb", SubCalls: 2, Variables: []string{"a", "b"}, StartedAt: at,
		EndedAt: &end}
	if got := turns.Facts(b); got != "ended with ValueError: a b; 2 sub-calls; set a, b; 1.5s" {
		t.Errorf("facts %q", got)
	}
	b = &rlm.TurnBlock{Output: strings.Repeat("line\n", 50)}
	if got := turns.Facts(b); got != "running" {
		t.Errorf("facts %q", got)
	}
	if got := turns.Output(b); strings.Count(got, "line\n") != turns.ShownLines ||
		!strings.HasSuffix(got, "… 10 lines more") {
		t.Errorf("output %q", got)
	}
	if turns.Parse(nil) != nil || turns.Parse([]byte(`{`)) != nil || len(turns.Parse([]byte(`[{"turn":1}]`))) != 1 {
		t.Error("turns are read wrongly")
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	usage := perdure.Usage{Calls: 1, InputTokens: 5, CostUSD: 0.25}
	for _, test := range []struct {
		turn rlm.Turn
		want []string
	}{
		{rlm.Turn{Turn: 1, State: perdure.Running}, []string{"turn 1  running|the model is asked|"}},
		{rlm.Turn{Turn: 3, State: perdure.Completed, Reply: "no", Usage: perdure.Usage{Calls: 2, InputTokens: 5,
			CostUSD: 0.25, UnpricedCalls: 1}}, []string{"turn 3  completed|no → no code|$0.2500 + unknown"}},
		{rlm.Turn{Turn: 12, State: perdure.Completed, Reply: "\n I think\nnot", Usage: usage},
			[]string{"turn 12 completed|I think → no code|$0.2500"}},
		{rlm.Turn{Turn: 2, State: perdure.Waiting, Blocks: []rlm.TurnBlock{
			{State: perdure.Completed, Code: "\n# a comment\nx  = 1\ny = 2", OutputBytes: 5, EndedAt: &end},
			{State: perdure.Failed, Code: "1/0", Failure: "ZeroDivisionError: no\nmore", SubCalls: 1, OutputBytes: 5,
				EndedAt: &end},
			{State: perdure.Completed, Code: "FINAL(x)", Final: "1", EndedAt: &end},
			{State: perdure.Waiting, Code: "# ask()", SubCalls: 24}}},
			[]string{"turn 2  waiting|x = 1 → printed 5 B|", "        failed|1/0 → ZeroDivisionError: no, 1 sub-call|",
				"        completed|FINAL(x) → final answer|", "        waiting|# ask() → waiting, 24 sub-calls|"}},
	} {
		var got []string
		for _, l := range turns.Lines(&test.turn) {
			got = append(got, fmt.Sprintf("%s %s|%s|%s", l.Name(), l.State, l.Text(80), l.Cost))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// A line is never wider than asked for, and shows the outcome next to long code.
func FuzzText(f *testing.F) {
	f.Add("x = 1", "2 sub-calls", 10)
	f.Add(strings.Repeat("é", 90), strings.Repeat("漢", 50), 40)
	f.Fuzz(func(t *testing.T, code, outcome string, width int) {
		if width < 8 || width > 200 {
			return
		}
		b := rlm.TurnBlock{Code: code, Failure: outcome}
		for _, l := range turns.Lines(&rlm.Turn{Turn: 1, Blocks: []rlm.TurnBlock{b}}) {
			if got := l.Text(width); ansi.StringWidth(got) > width {
				t.Errorf("%q is wider than %d", got, width)
			}
		}
	})
}
