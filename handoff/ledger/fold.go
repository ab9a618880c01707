package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
)

// Thresholds are the parts of a context, from 0 to 1, at which a handoff is
// prepared.
type Thresholds struct {
	// Warn is the part at which a full checkpoint is made. Defaults to 0.75.
	Warn float64
	// Stop is the part at which the agent should stop after the current step.
	// Defaults to 0.90.
	Stop float64
}

// WithDefaults returns the thresholds with defaults for those that are 0.
func (t Thresholds) WithDefaults() Thresholds {
	return Thresholds{Warn: cmp.Or(t.Warn, 0.75), Stop: cmp.Or(t.Stop, 0.90)}
}

// Messages to agents about their context.
const (
	WarnMessage = "Context limit approaching, creating checkpoint"
	StopMessage = "Context limit reached. Resume with new session."
)

// folder makes a ledger of ops.
type folder struct {
	handoff.Ledger
	at     Thresholds
	marked map[string]int // the index in Files of a path
	notes  []string       // about the last op, for its caller
	// adopted are the changes of another program that the last op added.
	adopted []handoff.Change
	absent  bool // the last op removes an entry that does not exist
}

func newFolder(task string, at Thresholds) *folder {
	f := &folder{at: at.WithDefaults(), marked: make(map[string]int)}
	f.TaskID, f.Phase = task, handoff.PhasePlanning
	f.Metadata.Reason = handoff.ReasonPeriodic
	return f
}

// begin continues from the result of earlier entries.
func (f *folder) begin(l handoff.Ledger) {
	f.Ledger = l
	for i := range l.Files {
		f.marked[l.Files[i].Path] = i
	}
}

// Fold returns the ledger of the entries of a store.
func Fold(task string, entries []Entry) (handoff.Ledger, error) {
	f := newFolder(task, Thresholds{})
	for i := range entries {
		if err := f.entry(&entries[i]); err != nil {
			return handoff.Ledger{}, err
		}
	}
	return f.Ledger, nil
}

func (f *folder) entry(e *Entry) error {
	var op Op
	if err := json.Unmarshal(e.Data, &op); err != nil {
		return &perdure.Error{Code: perdure.CodeDamaged, Op: "read ledger",
			Msg: fmt.Sprintf("entry %d is not an operation", e.Number), Err: err}
	}
	agent := e.Source
	if op.Kind = e.Kind; op.Kind == opAdopt {
		agent = ""
	}
	return f.apply(&op, agent)
}

// apply applies one op of an agent ("" if it is not known).
func (f *folder) apply(op *Op, agent string) error {
	f.notes, f.adopted, f.absent = nil, nil, false
	now := op.At
	f.worker(agent)
	f.Metadata.LastUpdatedAt = now
	f.Metadata.Reason = handoff.ReasonPeriodic
	f.record(op.Files)
	if op.Partial != "" {
		f.partial(op.Partial, now)
	}
	switch op.Kind {
	case OpStart:
		f.start(op)
	case OpStep:
		f.step(op, now)
	case OpDecide:
		f.Decisions = append(f.Decisions, handoff.Decision{Decision: op.Text, Rationale: op.Because, Timestamp: now})
	case OpCurrent:
		f.CurrentStep = &handoff.CurrentStep{Description: op.Text, StartedAt: now, PartialWork: op.Partial}
	case OpPending:
		f.pending(op)
	case OpBlock:
		f.Blockers = with(f.Blockers, op.Text)
	case OpUnblock:
		f.Blockers = f.without(f.Blockers, "blocker", op.Text)
	case OpTried:
		f.FailedApproaches = append(f.FailedApproaches,
			handoff.FailedApproach{What: op.Text, Outcome: op.Outcome, Why: op.Because})
	case OpForbid:
		f.forbid(op)
	case OpNext:
		f.NextAction = op.Text
	case OpPhase:
		f.Phase = op.Phase
	case OpVerify:
		f.verify(op, now)
	case opAdopt:
		return f.adopt(op)
	default:
		f.event(op)
	}
	return nil
}

// event applies the ops that say why a checkpoint is made.
func (f *folder) event(op *Op) {
	switch op.Kind {
	case OpContext:
		f.context(op)
	case OpSave:
		f.Metadata.Reason = cmp.Or(op.Reason, handoff.ReasonManual)
	case OpFail:
		f.Metadata.Reason, f.Error = handoff.ReasonFailure, op.Text
		f.Blockers = with(f.Blockers, op.Text)
	case OpRateLimit:
		f.Metadata.Reason = handoff.ReasonRateLimit
		f.Error = strings.TrimSpace("rate limit " + op.Text)
		if !op.Until.IsZero() {
			f.Error += " until " + op.Until.UTC().Format(time.RFC3339)
		}
	case OpReassign:
		f.Metadata.Reason = handoff.ReasonReassignment
		f.Metadata.PreviousAgents = with(f.Metadata.PreviousAgents, f.Metadata.CreatedBy)
		f.Error = cmp.Or(op.Text, f.Error)
	case OpDone:
		f.CurrentStep, f.NextAction, f.Error = nil, "", ""
	}
}

// worker records the agent that works now, and the one before.
func (f *folder) worker(agent string) {
	if agent == "" || agent == f.Metadata.CreatedBy {
		return
	}
	if f.Metadata.CreatedBy != "" {
		f.Metadata.PreviousAgents = with(f.Metadata.PreviousAgents, f.Metadata.CreatedBy)
	}
	f.Metadata.CreatedBy = agent
}

func (f *folder) start(op *Op) {
	f.Title = cmp.Or(op.Title, op.Text, f.Title)
	f.Description = cmp.Or(op.Description, f.Description)
	f.Phase = cmp.Or(op.Phase, f.Phase)
	f.Verification.ContractRef = cmp.Or(op.Contract, f.Verification.ContractRef)
	f.ContractFile = cmp.Or(op.ContractFile, f.ContractFile)
	for _, step := range op.Steps {
		f.PendingSteps = with(f.PendingSteps, step)
	}
}

func (f *folder) step(op *Op, now time.Time) {
	f.finish(op)
	f.CompletedSteps = append(f.CompletedSteps,
		handoff.Step{Step: op.Text, FilesCreated: op.Created, FilesModified: op.Modified,
			Timestamp: now, RunAgain: op.RunAgain})
	if f.Phase == handoff.PhasePlanning && len(op.Created)+len(op.Modified) > 0 {
		f.Phase = handoff.PhaseImplementation
	}
	if f.CurrentStep, f.Error = nil, ""; op.Current != "" {
		f.CurrentStep = &handoff.CurrentStep{Description: op.Current, StartedAt: now}
	}
}

// finish removes the finished step from the pending ones: the one that is named,
// else the current one, else the one with the same text.
func (f *folder) finish(op *Op) {
	switch {
	case op.Pending != "":
		f.PendingSteps = f.without(f.PendingSteps, "pending step", op.Pending)
	case f.CurrentStep != nil && slices.Contains(f.PendingSteps, f.CurrentStep.Description):
		f.PendingSteps = remove(f.PendingSteps, slices.Index(f.PendingSteps, f.CurrentStep.Description))
	case slices.Contains(f.PendingSteps, op.Text):
		f.PendingSteps = remove(f.PendingSteps, slices.Index(f.PendingSteps, op.Text))
	case len(f.PendingSteps) > 0:
		f.note("none of the %d pending steps has this text; `perdure handoff pending --remove N` removes one",
			len(f.PendingSteps))
	}
}

func (f *folder) pending(op *Op) {
	switch {
	case op.Remove:
		f.PendingSteps = f.without(f.PendingSteps, "pending step", op.Steps...)
	case op.Replace:
		f.PendingSteps = slices.Clone(op.Steps)
	default:
		for _, step := range op.Steps {
			f.PendingSteps = with(f.PendingSteps, step)
		}
	}
}

func (f *folder) forbid(op *Op) {
	if op.Remove {
		f.NotAllowed = f.without(f.NotAllowed, "prohibition", op.Text)
		return
	}
	f.NotAllowed = with(f.NotAllowed, op.Text)
}

// partial records the partial work of the current step, and adds one if there is none.
func (f *folder) partial(text string, now time.Time) {
	current := handoff.CurrentStep{Description: "(not named)", StartedAt: now}
	switch {
	case f.CurrentStep != nil:
		current = *f.CurrentStep
	case len(f.PendingSteps) > 0:
		current.Description = f.PendingSteps[0]
	case f.Title != "":
		current.Description = f.Title
	}
	current.PartialWork = text
	f.CurrentStep = &current
}

func (f *folder) verify(op *Op, now time.Time) {
	f.Verification.ContractRef = cmp.Or(op.Contract, f.Verification.ContractRef)
	f.ContractFile = cmp.Or(op.ContractFile, f.ContractFile)
	if op.Text == "" {
		return
	}
	result := handoff.Result{Activity: op.Text, Status: op.Status, RunAt: now,
		RanBy: cmp.Or(op.RanBy, handoff.RanByAgent)}
	i := slices.IndexFunc(f.Verification.Results, func(r handoff.Result) bool { return r.Activity == op.Text })
	if i < 0 {
		f.Verification.Results = append(f.Verification.Results, result)
		return
	}
	f.Verification.Results = slices.Clone(f.Verification.Results)
	f.Verification.Results[i] = result
}

// context records the use of the context. The op has the reason by the thresholds of its
// time; the message follows the current ones.
func (f *folder) context(op *Op) {
	f.Metadata.Reason = cmp.Or(op.Reason, f.Metadata.Reason)
	switch {
	case op.Used >= f.at.Stop:
		f.note("%s", StopMessage)
	case op.Used >= f.at.Warn:
		f.note("%s", WarnMessage)
	}
}

// record replaces the entries of files.
func (f *folder) record(files []handoff.FileEntry) {
	for _, entry := range files {
		if i, known := f.marked[entry.Path]; known {
			f.Files[i] = entry
			continue
		}
		f.marked[entry.Path] = len(f.Files)
		f.Files = append(f.Files, entry)
	}
}

// adopt merges the changes of another program in the file.
func (f *folder) adopt(op *Op) error {
	var base *handoff.Checkpoint
	var theirs handoff.Checkpoint
	err := json.Unmarshal(op.Theirs, &theirs)
	if err == nil && len(op.Base) > 0 {
		err = json.Unmarshal(op.Base, &base)
	}
	if err != nil {
		return &perdure.Error{Code: perdure.CodeDamaged, Op: "read ledger", Msg: "an adopted checkpoint cannot be read",
			Err: err}
	}
	merged, adopted, err := handoff.Adopt(f.Ledger, base, &theirs)
	if err != nil {
		return err
	}
	f.Ledger, f.adopted = merged, adopted
	for _, a := range adopted {
		f.note("adopted from the file: %s", a)
	}
	return nil
}

func (f *folder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// with appends text to a list that does not have it.
func with(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(slices.Clip(list), text)
}

func remove(list []string, i int) []string { return slices.Delete(slices.Clone(list), i, i+1) }

// without removes the entries with the names. Numbers are those of the whole list, also after the
// first removal.
func (f *folder) without(list []string, what string, names ...string) []string {
	named, found := make([]bool, len(list)), false
	for _, name := range names {
		if i := f.find(list, named, name, what); i >= 0 {
			named[i], found = true, true
		}
	}
	if !found {
		return list
	}
	left := make([]string, 0, len(list))
	for i, entry := range list {
		if !named[i] {
			left = append(left, entry)
		}
	}
	return left
}

// find returns the index of the entry with the text or number (from 1) name, or of the only one
// that begins with name, -1 for none. Of equal entries it returns the first one that is not named
// yet.
func (f *folder) find(list []string, named []bool, name, what string) int {
	found := -1
	for i, entry := range list {
		if entry == name && (found < 0 || named[found]) {
			found = i
		}
	}
	if found >= 0 {
		return found
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(list) {
		return n - 1
	}
	for i, entry := range list {
		if !strings.HasPrefix(entry, name) {
			continue
		}
		if found >= 0 {
			f.note("several entries begin with %q: no %s was removed", name, what)
			f.absent = true
			return -1
		}
		found = i
	}
	if found < 0 {
		f.note("there is no %s %q", what, name)
		f.absent = true
	}
	return found
}
