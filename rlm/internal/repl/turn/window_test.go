package turn_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// A shortened message keeps what surrounds the output: the exception, the turn and a further question.
func TestShortenedMessages(t *testing.T) {
	t.Parallel()
	p := profile(t, turn.Native)
	done := turn.Done{Outcomes: []turn.Outcome{{Output: "BEGIN" + strings.Repeat("é", 9000) + "END", OutputBytes: 18_008,
		Failure: "ValueError: " + strings.Repeat("x", 5000) + "last"}}, Notes: []string{"Noted."}, Vars: []string{"n"},
		Most: turn.Brief, Where: "history[4]"}
	after := p.After(facts(), 2, done)
	for _, part := range []string{"BEGIN", "END", "ValueError: ", "last", "Noted.", "Turn 3/30", "history[4] has the ",
		"8,308 characters are left out"} {
		if !strings.Contains(after, part) {
			t.Errorf("%q is not in\n%s", part, after)
		}
	}
	if strings.Contains(after, "Variables:") || len([]rune(after)) > 2*turn.Brief+700 {
		t.Errorf("%d characters: %s", len([]rune(after)), after)
	}
	further := p.Further(&turn.Further{Question: "And then?", Answer: "3", Turns: 30}, done)
	if !strings.Contains(further, "And then?") || !strings.Contains(further, "Turn 1/30") {
		t.Error(further)
	}
	done.Most = turn.Whole
	if whole := p.After(facts(), 2, done); strings.Count(whole, "é") != 9000 {
		t.Errorf("the whole output has %d characters", strings.Count(whole, "é"))
	}
}

// A request for a summary is as long as it may be at most, however many turns there are and however
// long they are.
func TestRequestForASummaryFits(t *testing.T) {
	t.Parallel()
	p := profile(t, turn.Native)
	rapid.Check(t, func(t *rapid.T) {
		s := turn.Summary{Question: strings.Repeat("why? ", rapid.IntRange(1, 2000).Draw(t, "question")), First: 1, Words: 90}
		size := rapid.IntRange(0, 3000).Draw(t, "bytes")
		for i := range rapid.IntRange(1, 40).Draw(t, "turns") {
			done := turn.Done{Outcomes: []turn.Outcome{{Output: strings.Repeat("表", size/3), OutputBytes: int64(size)}}}
			s.Replies = append(s.Replies, fmt.Sprintf("reply %d %s", i, strings.Repeat("x", size/2)))
			s.Outputs = append(s.Outputs, func(most int) string {
				done.Most = most
				return p.After(facts(), i+1, done)
			})
		}
		most := rapid.IntRange(6000, 60_000).Draw(t, "most")
		text := s.Prompt(most)
		if len(text) > most || !utf8.ValidString(text) || !strings.Contains(text, "at most 90 words") {
			t.Fatalf("%d bytes, at most %d", len(text), most)
		}
	})
}
