package handoff_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/handoff"
)

func seeds(f *testing.F) {
	f.Add(example(f))
	for _, text := range []string{
		emptyPRD, "{}", "", "null", "\ufeff{\r\n}", `{"activePrd": {"checkpoint": {"x": 1}, "checkpoint": null}}`,
		`{"a": 1e5, "b": "\ud800"}`,
		`{"activePrd": {"checkpoint": {"completedSteps": [1, "x", null, {"step": []}], "currentStep": "x", "metadata": [],` +
			` "files": {"listed": 1}}}}`,
		strings.Repeat("[", 1001), `{"lastHeartbeat": null, "activePrd": {}}`, "[1,]", `{"a":"` + "\xff" + `"}`,
		`{"activePrd":{"checkpoint":{"phase":7,"decisions":["a",{"decision":3}]}}}`,
	} {
		f.Add([]byte(text))
	}
}

// What the standard library takes for JSON, and only that, is read; and writing
// a checkpoint changes nothing else.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := handoff.Parse("x", bytes.Clone(data))
		text := bytes.TrimPrefix(data, []byte("\ufeff"))
		valid := json.Valid(text) && utf8.Valid(data)
		if err != nil {
			var e *handoff.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
				t.Fatalf("an error without a place: %v", err)
			}
			if valid && errors.Is(err, handoff.ErrSyntax) {
				t.Fatalf("%q is valid: %v", data, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is not valid", data)
		}
		for _, c := range []*handoff.Checkpoint{nil, small()} {
			for _, place := range d.Places() {
				after, err := d.With(place, c, time.Time{})
				if err != nil {
					if errors.Is(err, handoff.ErrInvalid) {
						continue // an id that stands twice
					}
					t.Fatal(err)
				}
				if place == handoff.PRD {
					wantSpliced(t, data, after.Bytes(), place, c)
				}
				back, err := after.Checkpoint(place)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c, back, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("reads back otherwise (-want +got):\n%s", diff)
				}
			}
		}
	})
}

// What is read of a checkpoint is written so that it reads the same, and nothing
// that stood in it is lost.
func FuzzCheckpoint(f *testing.F) {
	seeds(f)
	if c, err := handoff.Parse("x", example(f)); err == nil {
		if c, err := c.Checkpoint(handoff.PRD); err == nil {
			text, err := c.Compact()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c handoff.Checkpoint
		if json.Unmarshal(data, &c) != nil {
			return
		}
		text, err := c.Compact()
		if err != nil {
			t.Fatal(err)
		}
		var back handoff.Checkpoint
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if diff := cmp.Diff(c, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("reads back otherwise (-first +second):\n%s", diff)
		}
		l := worked()
		base := handoff.Project(l, 0)
		l.TaskID = c.TaskID
		got, _, err := handoff.Adopt(l, &base, &c)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(compact(t, handoff.Project(got, 0))); n > handoff.DefaultLimit {
			t.Fatalf("%d bytes", n)
		}
		for _, base := range []*handoff.Checkpoint{&c, &base} {
			if _, again, err := handoff.Adopt(got, base, &c); err != nil || len(again) > 0 {
				t.Fatalf("adopted twice: %v, %v", again, err)
			}
		}
		r := got.Resume()
		if _, err := r.Prompt(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	})
}

// A contract is found whole or not at all.
func FuzzContract(f *testing.F) {
	for _, text := range []string{
		`{"stories": [{"id": "US-1", "verificationContract": {"type": "verifiable", "criteria": [{"activity": "x", ` +
			`"command": ["a"]}]}}]}`,
		`{"US-1": {"verificationContract": {"criteria": ["x", null]}}}`,
		`{"id": "US-1", "verificationContract": {"criteria": {}}}`, `[]`,
		`{"verificationContract":{"type":"skip"}}`,
		`{"id":"US-1","verificationContract":{"criteria":[{"activity":1,"timing":2}]}}`,
	} {
		f.Add([]byte(text), "US-1.verificationContract")
	}
	f.Add([]byte(`{"verificationContract":{"type":"skip"}}`), "verificationContract")
	f.Fuzz(func(t *testing.T, data []byte, ref string) {
		c, err := handoff.ContractIn(data, ref)
		switch {
		case err != nil && !errors.Is(err, handoff.ErrContract):
			t.Fatal(err)
		case c != nil && c.Type == handoff.Verifiable && len(c.Criteria) == 0:
			t.Fatalf("%q: a contract that passes without a check", data)
		}
	})
}

// A text is cut between characters, within its limits, and is still recognised.
func FuzzClip(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("é", 200))
	f.Add(strings.Repeat("\x00", 500))
	f.Add(strings.Repeat("😀\xff", 120))
	f.Fuzz(func(t *testing.T, text string) {
		got := handoff.Clip(text)
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(encoded, &back); err != nil || back != got {
			t.Fatalf("%q reads back as %q, %v", got, back, err)
		}
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 200 || len(got) > 800 {
			t.Fatalf("%d characters and %d bytes: %q", utf8.RuneCountInString(got), len(got), got)
		}
		whole := strings.ToValidUTF8(text, "\uFFFD")
		if head, cut := strings.CutSuffix(got, "…"); got != whole && (!cut || !strings.HasPrefix(whole, head)) {
			t.Fatalf("%q is not a beginning of %q", got, text)
		}
		if handoff.Clip(got) != got {
			t.Fatalf("%q is cut again", got)
		}
	})
}
