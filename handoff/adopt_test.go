package handoff_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/handoff"
)

// worked is a ledger of which everything but old entries is shown.
func worked() handoff.Ledger {
	l := filled(12)
	l.Decisions, l.FailedApproaches, l.PendingSteps = l.Decisions[:3], l.FailedApproaches[:2], l.PendingSteps[:4]
	for i := range l.CompletedSteps {
		l.CompletedSteps[i].FilesModified = nil
	}
	l.Files = nil
	l.Decisions[1].Rationale = strings.Repeat("reason ", 30)
	l.Blockers, l.NotAllowed = []string{"no key"}, []string{"touch main"}
	l.CurrentStep = &handoff.CurrentStep{Description: "Wire it", StartedAt: at("2026-02-28T10:10:00Z"),
		PartialWork: strings.Repeat("half ", 60)}
	l.Verification.Results = []handoff.Result{
		{Activity: "unit-test", Status: handoff.StatusPassed, RunAt: at("2026-02-28T10:00:00Z"), RanBy: handoff.RanByEngine},
		{Activity: "lint", Status: handoff.StatusFailed, RunAt: at("2026-02-28T10:00:00Z"), RanBy: handoff.RanByEngine},
	}
	l.Metadata.PreviousAgents = []string{"first"}
	l.Extra = handoff.Extra{"x-vendor": json.RawMessage(`{"n":1}`)}
	return l
}

// reread is a checkpoint as it comes back from the file.
func reread(t failer, c handoff.Checkpoint) *handoff.Checkpoint {
	t.Helper()
	var back handoff.Checkpoint
	if err := json.Unmarshal([]byte(compact(t, c)), &back); err != nil {
		t.Fatalf("%v", err)
	}
	return &back
}

// foreignEdit is an edit of the file by another program, and its effect on the ledger.
type foreignEdit struct {
	name string
	edit func(c *handoff.Checkpoint)
	want func(l *handoff.Ledger)
	say  string
}

func byHand() handoff.Step {
	return handoff.Step{Step: "By hand", FilesCreated: []string{"x.go"}, Timestamp: at("2026-03-01T00:00:00Z")}
}

func editsOfSteps() []foreignEdit {
	step := byHand()
	return []foreignEdit{
		{"nothing", func(*handoff.Checkpoint) {}, func(*handoff.Ledger) {}, ""},
		{"phase", func(c *handoff.Checkpoint) { c.Phase = "verification" },
			func(l *handoff.Ledger) { l.Phase = handoff.PhaseVerification }, `phase changed: "verification"`},
		{"next action", func(c *handoff.Checkpoint) { c.NextAction = "Rest" },
			func(l *handoff.Ledger) { l.NextAction = "Rest" }, `nextAction changed: "Rest"`},
		{"next action removed", func(c *handoff.Checkpoint) { c.NextAction = "" },
			func(l *handoff.Ledger) { l.NextAction = "" },
			`nextAction removed: "Wire the toggle in src/components/DarkModeToggle.tsx"`},
		{"error", func(c *handoff.Checkpoint) { c.Error = "boom" }, func(l *handoff.Ledger) { l.Error = "boom" },
			`error added: "boom"`},
		{"step added", func(c *handoff.Checkpoint) { c.CompletedSteps = append(c.CompletedSteps, step) },
			func(l *handoff.Ledger) { l.CompletedSteps = append(l.CompletedSteps, step) }, `completedSteps added: "By hand"`},
		{"step without a time", func(c *handoff.Checkpoint) {
			c.CompletedSteps = append(c.CompletedSteps, handoff.Step{Step: "By hand"})
		}, func(l *handoff.Ledger) {
			l.CompletedSteps = append(l.CompletedSteps, handoff.Step{Step: "By hand", Timestamp: l.Metadata.LastUpdatedAt})
		}, `completedSteps added: "By hand"`},
		{"step removed", func(c *handoff.Checkpoint) { c.CompletedSteps = c.CompletedSteps[:len(c.CompletedSteps)-1] },
			func(l *handoff.Ledger) { l.CompletedSteps = l.CompletedSteps[:11] }, `completedSteps removed: "Step 0011"`},
		{"step's files", func(c *handoff.Checkpoint) {
			c.CompletedSteps[len(c.CompletedSteps)-1].FilesCreated = []string{"y.go"}
		}, func(l *handoff.Ledger) { l.CompletedSteps[11].FilesCreated = []string{"y.go"} },
			`completedSteps changed: "Step 0011"`},
		{"step to run again", func(c *handoff.Checkpoint) { c.CompletedSteps[len(c.CompletedSteps)-1].RunAgain = true },
			func(l *handoff.Ledger) { l.CompletedSteps[11].RunAgain = true }, `completedSteps changed: "Step 0011"`},
		{"pending done", func(c *handoff.Checkpoint) {
			c.PendingSteps = c.PendingSteps[1:]
			c.CompletedSteps = append(c.CompletedSteps, step)
		}, func(l *handoff.Ledger) {
			l.PendingSteps = l.PendingSteps[1:]
			l.CompletedSteps = append(l.CompletedSteps, step)
		}, `pendingSteps removed: "Pending 0000"; completedSteps added: "By hand"`},
		{"pending in the midst", func(c *handoff.Checkpoint) { c.PendingSteps = slices.Insert(c.PendingSteps, 1, "between") },
			func(l *handoff.Ledger) { l.PendingSteps = slices.Insert(l.PendingSteps, 1, "between") },
			`pendingSteps added: "between"`},
		{"pending first", func(c *handoff.Checkpoint) { c.PendingSteps = slices.Insert(c.PendingSteps, 0, "first") },
			func(l *handoff.Ledger) { l.PendingSteps = slices.Insert(l.PendingSteps, 0, "first") },
			`pendingSteps added: "first"`},
		{"pending twice", func(c *handoff.Checkpoint) { c.PendingSteps = append(c.PendingSteps, c.PendingSteps[0]) },
			func(l *handoff.Ledger) { l.PendingSteps = append(l.PendingSteps, l.PendingSteps[0]) },
			`pendingSteps added: "Pending 0000"`},
		{"pending reordered", func(c *handoff.Checkpoint) { slices.Reverse(c.PendingSteps) },
			func(l *handoff.Ledger) { slices.Reverse(l.PendingSteps) }, `pendingSteps changed: "another order"`},
		{"pending all removed", func(c *handoff.Checkpoint) { c.PendingSteps = nil },
			func(l *handoff.Ledger) { l.PendingSteps = nil },
			`pendingSteps removed: "Pending 0000"; pendingSteps removed: "Pending 0001"; pendingSteps removed: "Pending ` +
				`0002"; pendingSteps removed: "Pending 0003"`},
		{"current step ended", func(c *handoff.Checkpoint) { c.CurrentStep = nil },
			func(l *handoff.Ledger) { l.CurrentStep = nil }, `currentStep removed: "Wire it"`},
		{"current step goes on", func(c *handoff.Checkpoint) { c.CurrentStep.PartialWork = "more" },
			func(l *handoff.Ledger) {
				l.CurrentStep = &handoff.CurrentStep{Description: "Wire it", StartedAt: at("2026-02-28T10:10:00Z"),
					PartialWork: "more"}
			}, `currentStep.partialWork changed: "more"`},
		{"another current step", func(c *handoff.Checkpoint) {
			c.CurrentStep = &handoff.CurrentStep{Description: "Next", StartedAt: at("2026-03-01T00:00:00Z")}
		}, func(l *handoff.Ledger) {
			l.CurrentStep = &handoff.CurrentStep{Description: "Next", StartedAt: at("2026-03-01T00:00:00Z")}
		}, `currentStep.description changed: "Next"; currentStep.startedAt changed: "2026-03-01T00:00:00Z"; ` +
			`currentStep.partialWork removed: "` + strings.Repeat("half ", 18) + `hal…"`},
	}
}

func editsOfTheRest() []foreignEdit {
	return []foreignEdit{
		{"decision added", func(c *handoff.Checkpoint) {
			c.Decisions = append(c.Decisions, handoff.Decision{Decision: "Do", Rationale: "so"})
		}, func(l *handoff.Ledger) {
			l.Decisions = append(l.Decisions,
				handoff.Decision{Decision: "Do", Rationale: "so", Timestamp: l.Metadata.LastUpdatedAt})
		}, `decisions added: "Do"`},
		{"decision's reason", func(c *handoff.Checkpoint) { c.Decisions[0].Rationale = "other" },
			func(l *handoff.Ledger) { l.Decisions[0].Rationale = "other" }, `decisions changed: "Decision 0000"`},
		{"decision removed", func(c *handoff.Checkpoint) { c.Decisions = slices.Delete(c.Decisions, 1, 2) },
			func(l *handoff.Ledger) { l.Decisions = slices.Delete(slices.Clone(l.Decisions), 1, 2) },
			`decisions removed: "Decision 0001"`},
		{"approach added", func(c *handoff.Checkpoint) {
			c.FailedApproaches = append(c.FailedApproaches, handoff.FailedApproach{What: "a"})
		}, func(l *handoff.Ledger) {
			l.FailedApproaches = append(l.FailedApproaches, handoff.FailedApproach{What: "a"})
		}, `failedApproaches added: "a"`},
		{"approach changed and removed", func(c *handoff.Checkpoint) {
			c.FailedApproaches = c.FailedApproaches[1:]
			c.FailedApproaches[0].Why = "because"
		}, func(l *handoff.Ledger) {
			l.FailedApproaches = slices.Clone(l.FailedApproaches[1:])
			l.FailedApproaches[0].Why = "because"
		}, `failedApproaches changed: "Approach 0001"; failedApproaches removed: "Approach 0000"`},
		{"blockers", func(c *handoff.Checkpoint) { c.Blockers = []string{"other"} },
			func(l *handoff.Ledger) { l.Blockers = []string{"other"} },
			`blockers removed: "no key"; blockers added: "other"`},
		{"not allowed", func(c *handoff.Checkpoint) { c.NotAllowed = append(c.NotAllowed, "x") },
			func(l *handoff.Ledger) { l.NotAllowed = append(l.NotAllowed, "x") }, `notAllowed added: "x"`},
		{"contract", func(c *handoff.Checkpoint) { c.Verification.ContractRef = "x.y" },
			func(l *handoff.Ledger) { l.Verification.ContractRef = "x.y" },
			`verification.contractRef changed: "x.y"`},
		{"result claimed", func(c *handoff.Checkpoint) {
			for i, r := range c.Verification.Results {
				if r.Activity == "lint" {
					c.Verification.Results[i].Status = handoff.StatusPassed
				}
			}
			c.Verification.Results = append(c.Verification.Results,
				handoff.Result{Activity: "e2e", Status: handoff.StatusPassed, RanBy: handoff.RanByEngine})
		}, func(l *handoff.Ledger) {
			l.Verification.Results[1].Status, l.Verification.Results[1].RanBy = handoff.StatusPassed, handoff.RanByAgent
			l.Verification.Results = append(l.Verification.Results,
				handoff.Result{Activity: "e2e", Status: handoff.StatusPassed, RanBy: handoff.RanByAgent})
		}, `verification.results changed: "lint"; verification.results added: "e2e"`},
		{"metadata", func(c *handoff.Checkpoint) {
			c.Metadata.CreatedBy, c.Metadata.Reason, c.Metadata.LastUpdatedAt = "go-dev", handoff.ReasonManual, at(
				"2026-03-01T00:00:00Z")
			c.Metadata.PreviousAgents = append(c.Metadata.PreviousAgents, "react-dev")
		}, func(l *handoff.Ledger) {
			l.Metadata.CreatedBy, l.Metadata.Reason, l.Metadata.LastUpdatedAt = "go-dev", handoff.ReasonManual, at(
				"2026-03-01T00:00:00Z")
			l.Metadata.PreviousAgents = append(l.Metadata.PreviousAgents, "react-dev")
		}, `metadata.createdBy changed: "go-dev"; metadata.reason changed: "manual"; metadata.lastUpdatedAt changed: ` +
			`"2026-03-01T00:00:00Z"; metadata.previousAgents added: "react-dev"`},
		{"unknown fields", func(c *handoff.Checkpoint) {
			c.Extra = handoff.Extra{"x-new": json.RawMessage(`[1]`)}
			c.Metadata.Extra = handoff.Extra{"host": json.RawMessage(`"h"`)}
		}, func(l *handoff.Ledger) {
			l.Extra = handoff.Extra{"x-new": json.RawMessage(`[1]`)}
			l.Metadata.Extra = handoff.Extra{"host": json.RawMessage(`"h"`)}
		}, `x-new added: "[1]"; x-vendor removed: "{\"n\":1}"; metadata.host added: "\"h\""`},
		{"what is ours", func(c *handoff.Checkpoint) {
			c.Cut, c.Ledger, c.Files, c.SchemaVersion = &handoff.Cut{Decisions: 99}, "elsewhere", nil, 77
		}, func(*handoff.Ledger) {}, ""},
	}
}

func TestAdoptEachField(t *testing.T) {
	t.Parallel()
	for _, tt := range append(editsOfSteps(), editsOfTheRest()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, want := worked(), worked()
			base := handoff.Project(l, 3000)
			if base.Cut == nil || base.Cut.CompletedSteps < 2 || base.Cut.Results+base.Cut.Other+base.Cut.PreviousAgents > 0 {
				t.Fatalf("cut %+v; the test needs old steps cut and the rest shown", base.Cut)
			}
			theirs := reread(t, base)
			tt.edit(theirs)
			tt.want(&want)
			got, changes, err := handoff.Adopt(l, &base, theirs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			var said []string
			for _, c := range changes {
				said = append(said, c.String())
			}
			if diff := cmp.Diff(tt.say, strings.Join(said, "; ")); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(worked(), l); diff != "" {
				t.Errorf("the given ledger changed (-before +after):\n%s", diff)
			}
			if _, again, err := handoff.Adopt(got, theirs, theirs); err != nil || len(again) > 0 {
				t.Errorf("adopted twice: %v, %v", again, err)
			}
		})
	}
}

// Entries that are alike, some of which the limit skips, stay in their order.
func TestAdoptAlikeEntries(t *testing.T) {
	t.Parallel()
	var l handoff.Ledger
	for range 30 {
		l.PendingSteps = append(l.PendingSteps, " ", strings.Repeat("é", 95), "…")
	}
	for limit := 300; limit < 3000; limit += 100 {
		base := handoff.Project(l, limit)
		same, changes, err := handoff.Adopt(l, &base, reread(t, base))
		if err != nil || len(changes) > 0 || !slices.Equal(same.PendingSteps, l.PendingSteps) {
			t.Errorf("%d bytes: nothing was edited, but: %v, %v", limit, changes, err)
		}
	}
}

// An unchanged checkpoint changes nothing, whatever the limit cut; added entries are
// adopted, and entries that were cut stay.
func TestAdoptKeepsWhatWasCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLedger().Draw(t, "ledger")
		base := handoff.Project(l, 0)
		same, changes, err := handoff.Adopt(l, &base, reread(t, base))
		if err != nil || len(changes) > 0 {
			t.Fatalf("nothing was edited, but: %v, %v", changes, err)
		}
		if diff := cmp.Diff(sizesOf(l), sizesOf(same)); diff != "" {
			t.Fatalf("nothing was edited, but (-before +after):\n%s", diff)
		}
		theirs := reread(t, base)
		theirs.PendingSteps = append(theirs.PendingSteps, "added by hand")
		theirs.CompletedSteps = append(theirs.CompletedSteps, handoff.Step{Step: "done by hand"})
		removed := 0
		if len(theirs.Decisions) > 0 && rapid.Bool().Draw(t, "remove") {
			theirs.Decisions = theirs.Decisions[1:]
			removed = 1
		}
		got, _, err := handoff.Adopt(l, &base, theirs)
		if err != nil {
			t.Fatalf("%v", err)
		}
		want := sizesOf(l)
		want["pending"]++
		want["steps"]++
		want["decisions"] -= removed
		if diff := cmp.Diff(want, sizesOf(got)); diff != "" {
			t.Fatalf("entries (-want +got):\n%s", diff)
		}
	})
}

func sizesOf(l handoff.Ledger) map[string]int {
	return map[string]int{
		"pending": len(l.PendingSteps), "steps": len(l.CompletedSteps), "decisions": len(l.Decisions),
		"approaches": len(l.FailedApproaches),
		"blockers":   len(l.Blockers), "not allowed": len(l.NotAllowed), "results": len(l.Verification.Results),
		"agents": len(l.Metadata.PreviousAgents),
		"extra":  len(l.Extra) + len(l.Metadata.Extra) + len(l.Verification.Extra), "task": len(l.TaskID),
		"next": len(l.NextAction),
	}
}

// A program that does not know our fields writes the checkpoint anew and keeps
// its ten latest steps.
func TestAdoptFromAProgramThatKnowsLess(t *testing.T) {
	t.Parallel()
	l := worked()
	l.Decisions, l.FailedApproaches, l.CurrentStep = l.Decisions[:1], l.FailedApproaches[:1], nil
	base := handoff.Project(l, 0)
	if len(base.CompletedSteps) != 10 {
		t.Fatalf("%d steps shown; the test needs 10", len(base.CompletedSteps))
	}
	theirs := reread(t, base)
	theirs.SchemaVersion, theirs.TaskID, theirs.NextAction, theirs.Extra = 0, "", "", nil
	theirs.FailedApproaches, theirs.NotAllowed, theirs.Files, theirs.Cut, theirs.Ledger = nil, nil, nil, nil, ""
	added := handoff.Step{Step: "Eleventh", Timestamp: at("2026-03-01T00:00:00Z")}
	theirs.CompletedSteps = append(slices.Clone(theirs.CompletedSteps[1:]), added)
	got, changes, err := handoff.Adopt(l, &base, theirs)
	if err != nil {
		t.Fatal(err)
	}
	l.CompletedSteps = append(l.CompletedSteps, added)
	if diff := cmp.Diff(l, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s\nchanges %v", diff, changes)
	}
}

func TestAdoptTheFirst(t *testing.T) {
	t.Parallel()
	theirs, err := parse(t, string(example(t))).Checkpoint(handoff.PRD)
	if err != nil {
		t.Fatal(err)
	}
	l := handoff.Ledger{}
	l.TaskID = "prd-dark-mode/US-003"
	got, changes, err := handoff.Adopt(l, nil, theirs)
	if err != nil {
		t.Fatal(err)
	}
	want := handoff.Ledger{Work: theirs.Work}
	want.TaskID = l.TaskID
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if len(changes) == 0 {
		t.Error("nothing is told")
	}
	// A crash between the write of the file and the note of it: all is known.
	if _, changes, err = handoff.Adopt(got, nil, theirs); err != nil || len(changes) > 0 {
		t.Errorf("adopted a second time: %v, %v", changes, err)
	}
}

func TestAdoptRemovedAndOtherTask(t *testing.T) {
	t.Parallel()
	l := worked()
	base := handoff.Project(l, 0)
	got, changes, err := handoff.Adopt(l, &base, nil)
	if diff := cmp.Diff([]handoff.Change{{Field: "checkpoint", Kind: handoff.Removed}}, changes); diff != "" ||
		err != nil {
		t.Errorf("%v, changes (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(l, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if _, changes, err = handoff.Adopt(l, nil, nil); err != nil || changes != nil {
		t.Errorf("none and none: %v, %v", changes, err)
	}
	theirs := reread(t, base)
	theirs.TaskID = "prd-dark-mode/US-004"
	if got, _, err = handoff.Adopt(l, &base, theirs); !errors.Is(err, handoff.ErrOtherTask) ||
		!strings.Contains(err.Error(), "US-004") {
		t.Errorf("another task: %v", err)
	}
	if diff := cmp.Diff(l, got); diff != "" {
		t.Errorf("another task came in (-want +got):\n%s", diff)
	}
	l.TaskID = strings.Repeat("very long ", 100)
	base = handoff.Project(l, 0)
	if _, changes, err = handoff.Adopt(l, &base, reread(t, base)); err != nil || len(changes) > 0 {
		t.Errorf("an ID that was cut: %v, %v", changes, err)
	}
}

// The ledger may have gone on after the last projection, when a crash came
// between; both sides stay.
func TestAdoptWhenTheLedgerIsAhead(t *testing.T) {
	t.Parallel()
	l := worked()
	base := handoff.Project(l, 0)
	theirs := reread(t, base)
	theirs.PendingSteps = append(theirs.PendingSteps, "theirs")
	theirs.CurrentStep = nil
	l.PendingSteps = append(slices.Clone(l.PendingSteps[1:]), "ours")
	l.CurrentStep = &handoff.CurrentStep{Description: "Ours"}
	l.NextAction = "Ours"
	got, changes, err := handoff.Adopt(l, &base, theirs)
	if err != nil {
		t.Fatal(err)
	}
	want := l
	want.PendingSteps = []string{"Pending 0001", "Pending 0002", "Pending 0003", "theirs", "ours"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s\nchanges %v", diff, fmt.Sprint(changes))
	}
}

// A program can add an entry again that the limit had cut.
func TestAdoptWhatWasNotShown(t *testing.T) {
	t.Parallel()
	l := worked()
	base := handoff.Project(l, 0)
	base.Verification.Results, base.Decisions = nil, nil
	theirs := reread(t, base)
	later := at("2026-02-28T12:00:00Z")
	theirs.Verification.Results = []handoff.Result{
		{Activity: "unit-test", Status: handoff.StatusFailed, RunAt: later, RanBy: handoff.RanByEngine},
		{Activity: "lint", Status: handoff.StatusPassed, RunAt: at("2026-02-28T09:00:00Z"), RanBy: handoff.RanByEngine},
	}
	theirs.Decisions = []handoff.Decision{{Decision: "Decision 0000", Timestamp: l.Decisions[0].Timestamp,
		Rationale: "another reason"}}
	got, changes, err := handoff.Adopt(l, &base, theirs)
	if err != nil {
		t.Fatal(err)
	}
	want := worked()
	want.Verification.Results[0] = handoff.Result{Activity: "unit-test", Status: handoff.StatusFailed, RunAt: later,
		RanBy: handoff.RanByAgent}
	want.Decisions[0].Rationale = "another reason"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s\nchanges %v", diff, changes)
	}
}
