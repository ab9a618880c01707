package handoff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// ChangeKind is the kind of a change of a checkpoint by another program.
type ChangeKind string

// The kinds.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "changed"
	Removed  ChangeKind = "removed"
)

// Change is a change that was adopted.
type Change struct {
	// Field is the field of the checkpoint: "decisions", "metadata.createdBy".
	Field string     `json:"field"`
	Kind  ChangeKind `json:"kind"`
	// Old and New are the entry's text before, in full, and after.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// String describes the change in a few words.
func (c Change) String() string {
	text := cmp.Or(c.New, c.Old)
	return fmt.Sprintf("%s %s: %q", c.Field, c.Kind, clipped(text, floorText))
}

// Adopt merges the changes of other programs into a ledger: theirs is the checkpoint in
// the file now, base the last one that was written, both nil for none. It returns the
// changed ledger and the changes; l is not changed.
//
// An entry that is only in the ledger is not removed, because base did not show it
// either. If theirs was written by a program without a schemaVersion, the fields of this
// package are kept, and the oldest steps if the program kept only ten. Entries that are
// in the ledger already are not added again. Results of other programs become results of
// an agent. Hashes, counts and the reference to the ledger are not adopted.
//
// For a checkpoint that was removed or set to null, the ledger is not changed and the
// change is "checkpoint" removed; the caller decides whether the task has ended. A
// checkpoint of another task is an error that matches [ErrOtherTask].
func Adopt(l Ledger, base, theirs *Checkpoint) (Ledger, []Change, error) {
	if theirs == nil {
		if base == nil {
			return l, nil, nil
		}
		return l, []Change{{Field: checkpointKey, Kind: Removed}}, nil
	}
	if base == nil {
		base = &Checkpoint{}
	}
	if theirs.TaskID != "" && l.TaskID != "" && !shows(theirs.TaskID, l.TaskID) {
		return l, nil, &Error{Kind: ErrOtherTask, Op: "adopt checkpoint",
			Msg: fmt.Sprintf("it belongs to the task %q, not to %q", clipped(theirs.TaskID, textSize),
				clipped(l.TaskID, textSize)),
			Hint: "end the other task first, or remove its checkpoint from the file"}
	}
	completed := *theirs
	if theirs.SchemaVersion == 0 && base.SchemaVersion != 0 {
		completed = withOwnFields(completed, base)
	}
	m := &adoption{}
	l = m.merge(l, base, &completed)
	return l, m.changes, nil
}

// withOwnFields adds the fields that a program without a schemaVersion does not write.
func withOwnFields(c Checkpoint, base *Checkpoint) Checkpoint {
	c.NextAction = cmp.Or(c.NextAction, base.NextAction)
	if c.FailedApproaches == nil {
		c.FailedApproaches = base.FailedApproaches
	}
	if c.NotAllowed == nil {
		c.NotAllowed = base.NotAllowed
	}
	if c.Extra == nil {
		c.Extra = base.Extra
	}
	const theirMost = 10 // the number of steps that such programs keep
	if n := len(base.CompletedSteps); len(c.CompletedSteps) >= theirMost && n > 0 {
		dropped := 0
		for dropped < n && !slices.ContainsFunc(c.CompletedSteps,
			func(s Step) bool { return sameStep(s, base.CompletedSteps[dropped]) }) {
			dropped++
		}
		c.CompletedSteps = slices.Concat(base.CompletedSteps[:dropped], c.CompletedSteps)
	}
	return c
}

// adoption collects changes.
type adoption struct{ changes []Change }

func (m *adoption) note(c Change) { m.changes = append(m.changes, c) }

// merge returns the ledger with the changes between base and theirs.
func (m *adoption) merge(l Ledger, base, theirs *Checkpoint) Ledger {
	mergeText(m, "taskId", &l.TaskID, base.TaskID, cmp.Or(theirs.TaskID, base.TaskID))
	mergeText(m, "phase", &l.Phase, base.Phase, theirs.Phase)
	mergeText(m, "nextAction", &l.NextAction, base.NextAction, theirs.NextAction)
	mergeText(m, "error", &l.Error, base.Error, theirs.Error)
	l.CurrentStep = m.currentStep(l.CurrentStep, base.CurrentStep, theirs.CurrentStep)
	notes := plainStrings()
	notes.front = true
	todo := notes
	todo.ordered = true
	l.PendingSteps = mergeList(m, "pendingSteps", three[string]{l.PendingSteps, base.PendingSteps, theirs.PendingSteps},
		todo)
	l.Blockers = mergeList(m, "blockers", three[string]{l.Blockers, base.Blockers, theirs.Blockers}, notes)
	l.NotAllowed = mergeList(m, "notAllowed", three[string]{l.NotAllowed, base.NotAllowed, theirs.NotAllowed}, notes)
	when := theirs.Metadata.LastUpdatedAt
	l.CompletedSteps = mergeList(m, "completedSteps",
		three[Step]{l.CompletedSteps, base.CompletedSteps, theirs.CompletedSteps}, stepEntries(when))
	l.Decisions = mergeList(m, "decisions", three[Decision]{l.Decisions, base.Decisions, theirs.Decisions},
		decisionEntries(when))
	l.FailedApproaches = mergeList(m, "failedApproaches",
		three[FailedApproach]{l.FailedApproaches, base.FailedApproaches, theirs.FailedApproaches}, approachEntries())
	mergeText(m, "verification.contractRef", &l.Verification.ContractRef, base.Verification.ContractRef,
		theirs.Verification.ContractRef)
	l.Verification.Results = mergeList(m, "verification.results",
		three[Result]{l.Verification.Results, base.Verification.Results, theirs.Verification.Results}, resultEntries())
	mergeText(m, "metadata.createdBy", &l.Metadata.CreatedBy, base.Metadata.CreatedBy, theirs.Metadata.CreatedBy)
	mergeText(m, "metadata.reason", &l.Metadata.Reason, base.Metadata.Reason, theirs.Metadata.Reason)
	m.time("metadata.lastUpdatedAt", &l.Metadata.LastUpdatedAt, base.Metadata.LastUpdatedAt, theirs.Metadata.LastUpdatedAt)
	l.Metadata.PreviousAgents = mergeList(m, "metadata.previousAgents",
		three[string]{l.Metadata.PreviousAgents, base.Metadata.PreviousAgents, theirs.Metadata.PreviousAgents},
		plainStrings())
	l.Extra = m.extra("", l.Extra, base.Extra, theirs.Extra)
	l.Metadata.Extra = m.extra("metadata.", l.Metadata.Extra, base.Metadata.Extra, theirs.Metadata.Extra)
	l.Verification.Extra = m.extra("verification.", l.Verification.Extra, base.Verification.Extra,
		theirs.Verification.Extra)
	return l
}

// mergeText sets a string that they changed, unless the ledger has it already, possibly
// in full.
func mergeText[T ~string](m *adoption, field string, full *T, base, theirs T) {
	if theirs == base || theirs != "" && shows(string(theirs), string(*full)) {
		return
	}
	if base == "" && theirs == "" || theirs == "" && *full == "" {
		return
	}
	kind := Modified
	switch {
	case *full == "":
		kind = Added
	case theirs == "":
		kind = Removed
	}
	m.note(Change{Field: field, Kind: kind, Old: string(*full), New: string(theirs)})
	*full = theirs
}

func (m *adoption) time(field string, full *time.Time, base, theirs time.Time) {
	if theirs.Equal(base) || theirs.IsZero() || seconds(*full).Equal(theirs) {
		return
	}
	m.note(Change{Field: field, Kind: Modified, Old: stamp(*full), New: stamp(theirs)})
	*full = theirs
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func (m *adoption) currentStep(full, base, theirs *CurrentStep) *CurrentStep {
	const field = "currentStep"
	switch {
	case theirs == nil && base == nil, theirs == nil && full == nil:
		return full
	case theirs == nil:
		if !shows(base.Description, full.Description) {
			return full // the ledger has another step now
		}
		m.note(Change{Field: field, Kind: Removed, Old: full.Description})
		return nil
	case full == nil:
		if base != nil && sameCurrent(base, theirs) {
			return nil // the step has ended in the ledger
		}
		m.note(Change{Field: field, Kind: Added, New: theirs.Description})
		return theirs
	}
	if base == nil {
		base = &CurrentStep{}
	}
	step := *full
	mergeText(m, field+".description", &step.Description, base.Description, theirs.Description)
	m.time(field+".startedAt", &step.StartedAt, base.StartedAt, theirs.StartedAt)
	mergeText(m, field+".partialWork", &step.PartialWork, base.PartialWork, theirs.PartialWork)
	step.Extra = m.extra(field+".", step.Extra, base.Extra, theirs.Extra)
	return &step
}

func sameCurrent(a, b *CurrentStep) bool {
	return a.Description == b.Description && a.PartialWork == b.PartialWork && a.StartedAt.Equal(b.StartedAt)
}

// extra merges unknown fields.
func (m *adoption) extra(prefix string, full, base, theirs Extra) Extra {
	merged, names := maps.Clone(full), make(Extra)
	maps.Copy(names, base)
	maps.Copy(names, theirs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is, have := string(base[name]), string(theirs[name]), string(jsontree.Compact(full[name]))
		if was == is || is == have {
			continue
		}
		change := Change{Field: prefix + name, Kind: Modified, Old: have, New: is}
		switch {
		case is == "":
			change.Kind = Removed
			delete(merged, name)
		case have == "":
			change.Kind = Added
		}
		if is != "" {
			if merged == nil {
				merged = make(Extra)
			}
			merged[name] = theirs[name]
		}
		m.note(change)
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}
