package handoff_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
)

// Ledgers and contracts are kept as JSON by others; they read back as they were,
// unknown fields included.
func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	extra := handoff.Extra{"x": json.RawMessage(`{"n":12345678901234567890}`)}
	l := worked()
	l.Title, l.Workspace = "<title> & more", "w"
	l.Files = []handoff.FileEntry{{Path: "a", Exists: true, Size: 1, ModTime: at("2026-02-28T10:00:00Z"), Hash: "h",
		Stamp: "s"}, {Path: "b"}}
	l.CompletedSteps[0].Extra, l.Decisions[0].Extra, l.FailedApproaches[0].Extra = extra, extra, extra
	l.CurrentStep.Extra, l.Metadata.Extra, l.Verification.Extra, l.Verification.Results[0].Extra = extra, extra, extra,
		extra
	l.CompletedSteps[0].RunAgain = true
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back handoff.Ledger
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, back); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}

	c := handoff.Contract{Type: handoff.Verifiable, Extra: extra, Criteria: []handoff.Criterion{
		{Activity: "a", Description: "d", Pattern: "p", Timing: handoff.Deferred, Command: handoff.Command{"x y"},
			Extra: extra},
		{Activity: "b", Command: handoff.Command{"x", "y"}}}}
	if text, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"command":"x y"`) || !strings.Contains(string(text), `"command":["x","y"]`) {
		t.Errorf("commands in %s", text)
	}
	var again handoff.Contract
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, again); diff != "" {
		t.Errorf("contract (-want +got):\n%s", diff)
	}
}

func TestCompactRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]handoff.Checkpoint{
		"an unknown field": {Work: handoff.Work{Extra: handoff.Extra{"x": json.RawMessage(`{`)}}},
		"a time": {Work: handoff.Work{
			Metadata: handoff.Metadata{LastUpdatedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}},
	} {
		if text, err := c.Compact(); err == nil {
			t.Errorf("%s that JSON cannot hold was written: %s", name, text)
		}
		if _, err := parse(t, emptyPRD).With(handoff.PRD, &c, time.Time{}); err == nil {
			t.Errorf("%s that JSON cannot hold was put into a file", name)
		}
	}
}

// What is written is what encoding/json would write, without escapes for HTML.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "é漢😀", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "\u2028\u2029", "<>&", "\xff\xc0a", "\ufffd"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := handoff.Checkpoint{Ledger: text}
		got, err := c.Compact()
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Ledger string `json:"ledger"`
		}
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(text); err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal([]byte(b.String()), &want); err != nil {
			t.Fatal(err)
		}
		if back.Ledger != want {
			t.Errorf("%q became %q, want %q", text, back.Ledger, want)
		}
	})
}
