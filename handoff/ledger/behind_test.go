package ledger_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
)

func begin(steps ...string) ledger.Op {
	return ledger.Op{Kind: ledger.OpStart, Text: "t", Steps: steps}
}

// died records ops in the ledger by a process that is killed before it writes
// the file.
func (b *bench) died(t *testing.T, ops ...ledger.Op) {
	t.Helper()
	dying := b.recorder("a")
	dying.Ledgers = &broken{Ledgers: b.store, after: true}
	if _, err := dying.Apply(t.Context(), ops...); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
}

// Work that ended before the file was written has ended: it does not come back
// from what the file still shows, and the next command takes that out.
func TestDeathAtTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"))
	b.died(t, ledger.Op{Kind: ledger.OpDone})
	if v := b.look(t); v.Open() || len(v.Notes) > 0 {
		t.Errorf("open %v, %q", v.Open(), v.Notes)
	}
	if _, err := b.Resume(t.Context(), ledger.ResumeConfig{Claim: true}); !errors.Is(err, perdure.ErrNotFound) {
		t.Errorf("resume: %v", err)
	}
	if _, err := b.Apply(t.Context(), step("late")); !errors.Is(err, perdure.ErrConflict) ||
		!strings.Contains(b.text(t), `"checkpoint": null`) {
		t.Errorf("%v\n%s", err, b.text(t))
	}
	b.apply(t, begin(), step("two"))
	b.died(t, ledger.Op{Kind: ledger.OpDone})
	if u := b.apply(t, begin("three")); done(&u.Ledger) != "" || pending(&u.Ledger) != "three" {
		t.Errorf("begun again with %+v", u.Ledger)
	}
}

// Who resumes brings a file up to date that is behind the ledger.
func TestResumeBringsTheFileUpToDate(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bench){
		"death":    func(b *bench) { b.died(t, step("two")) },
		"no field": func(b *bench) { b.apply(t, step("two")); b.write(t, handoff.FileName, fileText) },
		"older": func(b *bench) {
			older := b.text(t)
			b.apply(t, step("two"))
			b.apply(t, ledger.Op{Kind: ledger.OpDecide, Text: "d"})
			b.write(t, handoff.FileName, older)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.apply(t, step("one"))
			spoil(b)
			v := b.look(t)
			if !v.Behind || done(&v.Ledger) != "one,two" {
				t.Fatalf("behind %v, %q", v.Behind, done(&v.Ledger))
			}
			next := b.recorder("b")
			out, err := next.Resume(t.Context(), ledger.ResumeConfig{Claim: true})
			if err != nil || !strings.Contains(out.Prompt, "- two") || !strings.Contains(b.text(t), `"two"`) {
				t.Errorf("%v\n%s", err, b.text(t))
			}
			if v := b.look(t); v.Behind || done(&v.Ledger) != "one,two" {
				t.Errorf("behind %v, %q", v.Behind, done(&v.Ledger))
			}
		})
	}
}

// saver saves the file, as an editor does, at the instant between the ledger and
// the file.
type saver struct {
	ledger.Ledgers
	save func()
}

func (s *saver) WriteHandoff(ctx context.Context, w ledger.Write) (ledger.Handoff, error) {
	h, err := s.Ledgers.WriteHandoff(ctx, w)
	s.save()
	return h, err
}

// An editor that saves just then is not overwritten, and nothing is recorded twice.
func TestEditorSavesJustThen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"), ledger.Op{Kind: ledger.OpBlock, Text: "stuck"})
	edited := strings.Replace(b.text(t), `"stuck"`, `"stuck", "and theirs"`, 1)
	saved := 0
	b.Ledgers = &saver{b.store, func() {
		if saved++; saved == 1 {
			b.write(t, handoff.FileName, edited)
		}
	}}
	two := step("two")
	two.Created = []string{"node_modules/x.js"}
	u := b.apply(t, two)
	if done(&u.Ledger) != "one,two" || blockers(&u.Ledger) != "stuck,and theirs" || len(u.Notes) == 0 ||
		len(u.Left) != 1 {
		t.Errorf("%q %q %q, left %q", done(&u.Ledger), blockers(&u.Ledger), u.Notes, u.Left)
	}
	if v := b.look(t); v.Behind || done(&v.Ledger) != "one,two" || blockers(&v.Ledger) != "stuck,and theirs" {
		t.Errorf("behind %v, %q %q", v.Behind, done(&v.Ledger), blockers(&v.Ledger))
	}
	b.Ledgers = &saver{b.store, func() {
		if err := os.Remove(filepath.Join(b.dir, handoff.FileName)); err != nil {
			t.Error(err)
		}
	}}
	_, err := b.Apply(t.Context(), step("three"))
	if err == nil || !strings.Contains(err.Error(), "recorded in the ledger") ||
		!strings.Contains(perdure.HintOf(err), "do not record it again") {
		t.Errorf("%v", err)
	}
	b.Ledgers = b.store
	b.write(t, handoff.FileName, fileText)
	if v := b.look(t); done(&v.Ledger) != "one,two,three" {
		t.Errorf("%q", done(&v.Ledger))
	}
}

// If the file cannot be read any more after another program wrote it just then, the error says
// that the work is in the ledger.
func TestFileBreaksJustThen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"))
	b.Ledgers = &saver{b.store, func() { b.write(t, handoff.FileName, "{") }}
	_, err := b.Apply(t.Context(), step("two"))
	if err == nil || !strings.Contains(err.Error(), "recorded in the ledger") || !strings.Contains(err.Error(), ":1:2") {
		t.Errorf("%v", err)
	}
	b.Ledgers = b.store
	b.write(t, handoff.FileName, fileText)
	if v := b.look(t); done(&v.Ledger) != "one,two" {
		t.Errorf("%q", done(&v.Ledger))
	}
}

// A claim tells who works; its own holder can resume with it, others cannot.
func TestClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, begin("x"))
	claim := func(r *ledger.Recorder, takeOver bool) error {
		_, err := r.Resume(t.Context(), ledger.ResumeConfig{Claim: true, TakeOver: takeOver, TTL: time.Hour})
		return err
	}
	first, other := b.recorder("first"), b.recorder("other")
	if err := claim(first, false); err != nil {
		t.Fatal(err)
	}
	if err := claim(other, false); !errors.Is(err, perdure.ErrConflict) ||
		!strings.Contains(perdure.HintOf(err), "--take-over") {
		t.Errorf("a second one: %v", err)
	}
	unclaimed := b.recorder("")
	if _, err := unclaimed.Apply(t.Context(), step("x")); !errors.Is(err, perdure.ErrConflict) ||
		!strings.Contains(perdure.HintOf(err), "token") {
		t.Errorf("without a token: %v, %s", err, perdure.HintOf(err))
	}
	unclaimed.Token = first.Token
	u, err := unclaimed.Apply(t.Context(), step("x"))
	if err != nil || u.Ledger.Metadata.CreatedBy != "first" {
		t.Errorf("with the token of first: %v, by %q", err, u.Ledger.Metadata.CreatedBy)
	}
	again := b.recorder("first") // a new session of the same agent
	again.Token = first.Token
	if err := claim(again, false); err != nil || again.Token == first.Token {
		t.Errorf("again: %v", err)
	}
	if _, err := first.Apply(t.Context(), step("y")); !errors.Is(err, perdure.ErrLeaseLost) {
		t.Errorf("with the old token: %v", err)
	}
	if err := claim(first, false); !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("a claim with the old token: %v", err)
	}
	if err := claim(other, true); err != nil {
		t.Errorf("taken over: %v", err)
	}
	if _, err := again.Apply(t.Context(), step("y")); !errors.Is(err, perdure.ErrLeaseLost) {
		t.Errorf("after the take-over: %v", err)
	}
}

// A token of work that is done is refused for the next work, without the advice to stop.
func TestTokenOfOtherWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, begin("x"))
	if _, err := b.Resume(t.Context(), ledger.ResumeConfig{Claim: true, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	b.apply(t, ledger.Op{Kind: ledger.OpDone})
	_, err := b.Apply(t.Context(), begin("y"))
	if hint := perdure.HintOf(err); !errors.Is(err, perdure.ErrLeaseLost) || !strings.Contains(hint, "omit the token") {
		t.Errorf("start: %v, %q", err, hint)
	}
	if _, err := b.recorder("a").Apply(t.Context(), begin("y")); err != nil {
		t.Fatal(err)
	}
	_, err = b.Apply(t.Context(), step("z"))
	if hint := perdure.HintOf(err); !errors.Is(err, perdure.ErrLeaseLost) || !strings.Contains(hint, "omit the token") {
		t.Errorf("step: %v, %q", err, hint)
	}
	if _, err := b.Resume(t.Context(), ledger.ResumeConfig{Claim: true, TTL: time.Hour}); err != nil {
		t.Errorf("resume: %v", err)
	}
	b.apply(t, step("z"))
}

// What is to be taken out and is not there is said, and nothing is recorded.
func TestTakingOutWhatIsNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.apply(t, begin("add a", "add b"), ledger.Op{Kind: ledger.OpBlock, Text: "k"}).Handoff.Version
	for name, op := range map[string]ledger.Op{
		"blocker":     {Kind: ledger.OpUnblock, Text: "7"},
		"prohibition": {Kind: ledger.OpForbid, Text: "z", Remove: true},
		"pending":     {Kind: ledger.OpPending, Steps: []string{"z"}, Remove: true},
		"two of them": {Kind: ledger.OpPending, Steps: []string{"add"}, Remove: true},
	} {
		if _, err := b.Apply(t.Context(), step("with it"), op); !errors.Is(err, perdure.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := b.look(t); v.Handoff.Version != before || done(&v.Ledger) != "" {
		t.Errorf("%d entries, %d before; done %q", v.Handoff.Version, before, done(&v.Ledger))
	}
	if u := b.apply(t, ledger.Op{Kind: ledger.OpStep, Text: "kept", Pending: "9"}); done(&u.Ledger) != "kept" ||
		len(u.Notes) != 1 {
		t.Errorf("%q %q", done(&u.Ledger), u.Notes)
	}
}

// Without a store, what the file shows can be looked at and judged.
func TestWithoutLedgers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, "a.go", "package a")
	b.apply(t, begin("left"), ledger.Op{Kind: ledger.OpStep, Text: "one", Created: []string{"a.go"}})
	b.Ledgers = ledger.None{}
	v := b.look(t)
	if done(&v.Ledger) != "one" || pending(&v.Ledger) != "left" || !v.Open() {
		t.Errorf("%+v", v.Ledger)
	}
	verdict, err := b.Staleness(t.Context(), v)
	if err != nil || verdict.Summary != handoff.AllFresh {
		t.Errorf("%+v, %v", verdict, err)
	}
	out, err := b.Resume(t.Context(), ledger.ResumeConfig{})
	if err != nil || !strings.Contains(out.Prompt, "# Resuming Task: prd-dark-mode/US-003") {
		t.Errorf("%v\n%s", err, out.Prompt)
	}
	if _, err := b.Apply(t.Context(), step("x")); !errors.Is(err, perdure.ErrNotFound) {
		t.Errorf("recorded in nothing: %v", err)
	}
	if err := b.Release(t.Context(), v.Task.ID); !errors.Is(err, perdure.ErrNotFound) {
		t.Errorf("released: %v", err)
	}
}

// The checkpoint of a PRD between its stories is not that of a story.
func TestStoryIsNotItsPRD(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, handoff.FileName, `{"activePrd": {"id": "p", "currentStory": null}}`)
	b.apply(t, step("of p"))
	b.write(t, handoff.FileName, strings.Replace(b.text(t), `"currentStory": null`, `"currentStory": "US-1"`, 1))
	if v := b.look(t); v.Open() || done(&v.Ledger) != "" {
		t.Errorf("seen in the story: %q", done(&v.Ledger))
	}
	if u := b.apply(t, step("of US-1")); done(&u.Ledger) != "of US-1" {
		t.Errorf("%q", done(&u.Ledger))
	}
	b.write(t, handoff.FileName, strings.Replace(b.text(t), `"US-1"`, `null`, 1))
	if u := b.apply(t, step("more of p")); done(&u.Ledger) != "of p,more of p" {
		t.Errorf("%q", done(&u.Ledger))
	}
}

// Of two who start the same work at once one is refused, under the lock.
func TestStartOfUnfinishedWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	results := make(chan error, 2)
	for _, name := range []string{"a", "b"} {
		r := b.recorder(name)
		go func() {
			_, err := r.Apply(t.Context(), begin(name))
			results <- err
		}()
	}
	first, second := <-results, <-results
	if (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), perdure.ErrConflict) {
		t.Errorf("%v and %v", first, second)
	}
	if v := b.look(t); v.Handoff.Version != 1 {
		t.Errorf("%d entries", v.Handoff.Version)
	}
	if _, err := b.Apply(t.Context(), step("x"), begin()); !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("in a batch: %v", err)
	}
}
