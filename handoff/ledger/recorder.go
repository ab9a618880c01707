package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/process/failpoint"
)

// Config configures a [Recorder].
type Config struct {
	// Ledgers and Location are required.
	Ledgers  Ledgers
	Location handoff.Location
	// Place is the part of the file with the checkpoint. Defaults to handoff.PRD.
	Place handoff.Place
	// Folder is the folder of the store, to which the places of ledgers are
	// relative. Empty: they are absolute.
	Folder string
	// Agent is the agent that works, Token that of its claim; both may be empty.
	Agent, Token string
	Thresholds   Thresholds
	// Snapshots is a folder for the folded state of long ledgers, which saves
	// reading all entries; it is created. Empty: none is kept.
	Snapshots string
}

// Recorder records work on one task. It is not safe for concurrent use. Other recorders,
// also in other processes, can record work on the same task at the same time: they wait
// for the lock of the file.
type Recorder struct {
	Config
}

// New returns a recorder. It reads nothing yet.
func New(cfg Config) *Recorder {
	if cfg.Place == "" {
		cfg.Place = handoff.PRD
	}
	return &Recorder{cfg}
}

// View is the state of the work on a task.
type View struct {
	Task handoff.Task
	// Handoff is the ledger's row; its ID is 0 when nothing was recorded yet.
	Handoff Handoff
	Ledger  handoff.Ledger
	// Shown is the checkpoint in the file; nil if there is none.
	Shown *handoff.Checkpoint
	// Document is the file.
	Document *handoff.Document
	// Notes are the changes of other programs in the file.
	Notes []string
	// Behind is set when the file does not show the ledger: the last process died
	// before it wrote the file, or an older version of the file came back. The next
	// write updates it.
	Behind bool

	folder *folder
	adopt  *Op  // adopts the changes of the file
	ended  bool // the file still shows work that is done
}

// Open reports whether work on the task was recorded and is not done.
func (v *View) Open() bool { return v.open() || v.Shown != nil }

// Look reads the file and the ledger. The view has the changes of other programs in the
// file, but they are not recorded.
func (r *Recorder) Look(ctx context.Context) (*View, error) {
	doc, err := handoff.Load(r.Location.File)
	if err != nil {
		return nil, err
	}
	return r.view(ctx, doc)
}

func (r *Recorder) view(ctx context.Context, doc *handoff.Document) (*View, error) {
	v := &View{Document: doc}
	var err error
	if v.Task, err = doc.Task(r.Place); err != nil {
		return nil, err
	}
	if v.Shown, err = doc.Checkpoint(r.Place); err != nil {
		return nil, err
	}
	if v.Shown != nil && !isOf(v.Shown.TaskID, v.Task.ID) {
		v.Shown = nil // of another task; see rescue
	}
	v.Handoff, err = r.Ledgers.Handoff(ctx, r.ref(v.Task.ID))
	if err != nil && !errors.Is(err, perdure.ErrNotFound) {
		return nil, err
	}
	if v.folder = r.newFolder(v); v.open() {
		if err := r.fold(ctx, v, r.restore(v)); err != nil {
			return nil, err
		}
	}
	if err := r.compare(ctx, v); err != nil {
		return nil, err
	}
	v.Ledger = v.folder.Ledger
	return v, nil
}

// isOf reports whether a checkpoint that names its task so is of a task. Long names
// are shortened; a checkpoint without a name is of the task at its place.
func isOf(named, task string) bool {
	beginning, cut := strings.CutSuffix(named, "…")
	return named == "" || named == task || cut && strings.HasPrefix(task, beginning)
}

// open reports whether there is a ledger that has not ended.
func (v *View) open() bool { return v.Handoff.ID != 0 && v.Handoff.EndedAt == nil }

func (r *Recorder) newFolder(v *View) *folder {
	f := newFolder(v.Task.ID, r.Thresholds)
	f.Ref = "perdure handoff log --task " + string(r.Place)
	f.Description = v.Task.Description
	return f
}

// each reads the entries of the ledger behind a number.
func (r *Recorder) each(ctx context.Context, v *View, after int64, do func(*Entry) error) error {
	for after < v.Handoff.Version {
		entries, err := r.Ledgers.HandoffEntries(ctx, v.Handoff.ID, after, 0)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return &perdure.Error{Code: perdure.CodeDamaged, Op: "read ledger", Msg: "entries are missing"}
		}
		for i := range entries {
			if err := do(&entries[i]); err != nil {
				return err
			}
		}
		after = entries[len(entries)-1].Number
	}
	return nil
}

// Log reads the entries of the ledger of a view in order. adopted are the changes of another
// program that an entry added; other entries have none.
func (r *Recorder) Log(ctx context.Context, v *View, do func(e *Entry, adopted []handoff.Change) error) error {
	f := r.newFolder(v)
	return r.each(ctx, v, 0, func(e *Entry) error {
		if err := f.entry(e); err != nil {
			return err
		}
		return do(e, f.adopted)
	})
}

// compare finds out whether another program changed the checkpoint in the file.
func (r *Recorder) compare(ctx context.Context, v *View) error {
	if v.Shown == nil {
		if v.Behind = v.open() && len(v.Handoff.Projected) > 0; v.Behind {
			v.Notes = append(v.Notes, "the checkpoint was removed from the file; the ledger still has all of it")
		}
		return nil
	}
	shown, err := v.Shown.Compact()
	if err != nil {
		return err
	}
	op := &Op{Kind: opAdopt, Theirs: shown, At: v.Shown.Metadata.LastUpdatedAt}
	switch {
	case v.open() && same(shown, v.Handoff.Projected):
		return nil
	case same(shown, v.Handoff.Previous): // the process died before it wrote the file
		if v.Behind = v.open(); !v.Behind {
			v.Shown, v.ended = nil, true
		}
		return nil
	case v.open():
		var before []json.RawMessage
		if v.Behind, before, err = r.older(ctx, v, shown); err != nil || v.Behind {
			return err
		}
		op.Base = v.base(before)
	}
	v.adopt = op
	if err := v.folder.apply(op, ""); err != nil {
		return err
	}
	if !v.open() {
		v.folder.notes = []string{v.taken()}
	}
	v.Notes = append(v.Notes, v.folder.notes...)
	return nil
}

// taken describes a checkpoint of the file that is in no ledger.
func (v *View) taken() string {
	w := &v.folder.Work
	by := ""
	if w.Metadata.CreatedBy != "" {
		by = ", by \"" + w.Metadata.CreatedBy + "\""
	}
	return fmt.Sprintf("adopted the checkpoint of the file, which no ledger has (completed steps: %d, pending: %d, "+
		"decisions: %d%s)", len(w.CompletedSteps), len(w.PendingSteps), len(w.Decisions), by)
}

// older reports whether a checkpoint is an earlier one of the ledger, which came back
// with an older version of the file. It also returns the checkpoints that the ledger
// had at the time in the checkpoint: one of them may have been edited.
func (r *Recorder) older(ctx context.Context, v *View, shown []byte) (found bool, then []json.RawMessage, err error) {
	f := r.newFolder(v)
	when := v.Shown.Metadata.LastUpdatedAt.Unix()
	look := func() error { // between two writes, when there was a checkpoint
		if f.Metadata.LastUpdatedAt.Unix() != when || found {
			return nil
		}
		c := handoff.Project(f.Ledger, 0)
		raw, err := c.Compact()
		found = string(raw) == string(shown)
		then = append(then, raw)
		return err
	}
	err = r.each(ctx, v, 0, func(e *Entry) error {
		var op struct{ At time.Time }
		if json.Unmarshal(e.Data, &op) == nil && !op.At.Equal(f.Metadata.LastUpdatedAt) {
			if err := look(); err != nil {
				return err
			}
		}
		return f.entry(e)
	})
	if err == nil {
		err = look()
	}
	return found, then, err
}

// base returns the checkpoint from which the file was edited: the last one, or the
// one before it when the process died before it wrote the file, or one of the same
// time when it is older, whichever makes the smallest edit. Without one, nothing
// counts as removed.
func (v *View) base(then []json.RawMessage) json.RawMessage {
	var found json.RawMessage
	fewest := 0
	for _, raw := range append(then, v.Handoff.Projected, v.Handoff.Previous) {
		var c *handoff.Checkpoint
		if json.Unmarshal(raw, &c) != nil || c == nil || v.Shown.Metadata.LastUpdatedAt.Before(c.Metadata.LastUpdatedAt) {
			continue
		}
		_, changes, err := handoff.Adopt(v.folder.Ledger, c, v.Shown)
		if err == nil && (found == nil || len(changes) < fewest) {
			found, fewest = raw, len(changes)
		}
	}
	return found
}

// same reports whether checkpoints are equal, however their JSON is written.
func same(compact []byte, stored json.RawMessage) bool {
	if len(stored) == 0 {
		return false
	}
	if bytes.Equal(compact, stored) {
		return true
	}
	var c handoff.Checkpoint
	if json.Unmarshal(stored, &c) != nil {
		return false
	}
	again, err := c.Compact()
	return err == nil && string(again) == string(compact)
}

// ref returns the reference of the ledger of a task of the file.
func (r *Recorder) ref(task string) Ref {
	return Ref{Place: r.place(), Task: task}
}

func (r *Recorder) place() string {
	path, err := filepath.Abs(r.Location.File)
	if err != nil {
		path = r.Location.File
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	folder := r.Folder
	if target, err := filepath.EvalSymlinks(folder); err == nil {
		folder = target
	}
	if rel, err := filepath.Rel(folder, path); folder != "" && err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

// Update is the result of recording.
type Update struct {
	View
	// Checkpoint is what the file shows now; nil when the work is done.
	Checkpoint *handoff.Checkpoint
	// Stop is set if an op reported that the context of the agent is full: the agent should
	// stop after the current step.
	Stop bool
	// Left are files of the ops that are not recorded because they are not sources.
	Left []string
}

// Apply records ops, all or none of them: in the ledger first, then in the file.
// No ops bring the file up to date. When the file cannot be written after the
// ledger was, the error says so, and the next Apply brings it up to date.
func (r *Recorder) Apply(ctx context.Context, ops ...Op) (*Update, error) {
	for i := range ops {
		if err := ops[i].Check(); err != nil {
			return nil, err
		}
		if ops[i].Kind == OpDone && i < len(ops)-1 {
			return nil, invalid("record the operations after it apart from it", "done is not the last operation")
		}
	}
	return r.locked(ctx, ops)
}

// locked records ops that were checked.
func (r *Recorder) locked(ctx context.Context, ops []Op) (*Update, error) {
	reading := r.readFiles(ctx, ops)
	defer reading()
	u, written, err := r.once(ctx, ops, reading)
	const most = 5 // retries if another program writes the file at the same time
	for again := 0; written && again < most && u.Checkpoint != nil && errors.Is(err, handoff.ErrConflict); again++ {
		var next *Update
		if next, _, err = r.once(ctx, nil, nothing); next != nil {
			next.Notes, next.Stop, next.Left = append(u.Notes, next.Notes...), u.Stop, u.Left
			u = next
		}
	}
	if err == nil || !written {
		return u, err
	}
	return nil, &perdure.Error{Code: codeOf(err), Op: "record work",
		Msg:  "recorded in the ledger, but the file was not updated: " + err.Error(),
		Hint: "do not record it again; the next command updates the file"}
}

// codeOf returns the code of an error, also of an error of the file.
func codeOf(err error) perdure.Code {
	if errors.Is(err, handoff.ErrConflict) || errors.Is(err, handoff.ErrReadOnly) {
		return perdure.CodeConflict
	}
	if errors.Is(err, handoff.ErrInvalid) || errors.Is(err, handoff.ErrLimit) {
		return perdure.CodeInvalid
	}
	return perdure.CodeOf(err)
}

// once records ops under the lock of the file. written reports whether they are in
// the ledger.
func (r *Recorder) once(ctx context.Context, ops []Op, reading func() *readOps) (u *Update, written bool, err error) {
	file, err := handoff.Lock(ctx, r.Location.File)
	if err != nil {
		return nil, false, err
	}
	u, written, err = r.apply(ctx, file, ops, reading)
	return u, written, errors.Join(err, file.Close())
}

func (r *Recorder) apply(ctx context.Context, file *handoff.File, ops []Op, reading func() *readOps) (u *Update,
	written bool, err error) {
	view, err := r.view(ctx, file.Document())
	if err != nil {
		return nil, false, err
	}
	u = &Update{View: *view}
	if err := u.begin(ops); err != nil {
		if u.ended {
			err = errors.Join(err, r.show(file, u))
		}
		return nil, false, err
	}
	if err := r.rescue(ctx, u); err != nil {
		return nil, false, err
	}
	write, err := r.prepare(u, reading())
	if err != nil {
		return nil, false, err
	}
	failpoint.Hit("ledger.before_write")
	if u.Handoff, err = r.Ledgers.WriteHandoff(ctx, *write); err != nil {
		return nil, false, r.refused(err, &view.Handoff)
	}
	failpoint.Hit("ledger.after_write")
	if write.End && r.Snapshots != "" {
		_ = os.Remove(r.snapshotFile(u.Handoff.ID)) // most ledgers are too short for one
	}
	err = r.show(file, u)
	failpoint.Hit("ledger.after_file")
	return u, true, err
}

// show writes the checkpoint into the file.
func (r *Recorder) show(file *handoff.File, u *Update) error {
	next, err := file.Document().With(r.Place, u.Checkpoint, u.Handoff.UpdatedAt)
	if err != nil {
		return err
	}
	return file.Write(next, nil)
}

// refused adds a hint when another agent has a claim.
func (r *Recorder) refused(err error, h *Handoff) error {
	if !errors.Is(err, perdure.ErrConflict) || r.Token != "" || h.ExpiresAt == nil {
		return err
	}
	return &perdure.Error{Code: perdure.CodeConflict, Msg: err.Error(),
		Hint: "if the claim is yours, give its token (--token, or PERDURE_HANDOFF_TOKEN); " +
			"if its agent has stopped, `perdure handoff resume --take-over` takes the work over"}
}

// begin refuses to continue work that is done, except for a start, and to start work
// that is not done.
func (u *Update) begin(ops []Op) error {
	start := slices.ContainsFunc(ops, func(op Op) bool { return op.Kind == OpStart })
	switch {
	case start && u.Open():
		return &perdure.Error{Code: perdure.CodeConflict, Op: "start work",
			Msg: fmt.Sprintf("there is unfinished work on %q (completed steps: %d%s)", u.Task.ID,
				len(u.Ledger.CompletedSteps), writer(&u.Ledger.Metadata)),
			Hint: "`perdure handoff resume` continues it; `perdure handoff start --again` ends it and starts again"}
	case u.Handoff.EndedAt == nil || u.Shown != nil || start:
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "record work", Msg: "the work on \"" + u.Task.ID + "\" is done",
		Hint: "`perdure handoff start` begins it again"}
}

// writer returns who wrote a checkpoint and when, as far as its metadata has them.
func writer(m *handoff.Metadata) string {
	s := ""
	if m.CreatedBy != "" {
		s = fmt.Sprintf(", by %q", m.CreatedBy)
	}
	if !m.LastUpdatedAt.IsZero() {
		s += ", " + m.LastUpdatedAt.UTC().Format(time.RFC3339)
	}
	return s
}

// prepare folds the ops and returns the write that records them.
func (r *Recorder) prepare(u *Update, read *readOps) (*Write, error) {
	if read.err != nil {
		return nil, read.err
	}
	u.Left, u.Notes = append(u.Left, read.left...), append(u.Notes, read.notes...)
	w := &Write{Ref: r.ref(u.Task.ID), Token: r.Token, Previous: json.RawMessage("null")}
	if u.Handoff.EndedAt == nil {
		w.IfVersion = u.Handoff.Version
	}
	if u.adopt != nil {
		entry, err := entryOf(u.adopt, "file")
		if err != nil {
			return nil, err
		}
		w.Entries = append(w.Entries, entry)
	}
	now, agent := time.Now().UTC().Truncate(time.Microsecond), r.Agent
	if agent == "" && r.Token != "" {
		agent = u.Handoff.Agent // only the agent of the last claim can write with a token
	}
	for _, op := range read.ops {
		if op.At = now; op.Kind == OpContext && op.Used >= min(u.folder.at.Warn, u.folder.at.Stop) {
			op.Reason = handoff.ReasonContextLimit
		}
		entry, err := entryOf(&op, agent)
		if err != nil {
			return nil, err
		}
		w.Entries = append(w.Entries, entry)
		if err := u.folder.apply(&op, agent); err != nil {
			return nil, err
		}
		if u.folder.absent && op.Kind != OpStep { // a completed step is recorded anyway
			return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "record work", Msg: strings.Join(u.folder.notes, "; "),
				Hint: "`perdure handoff show` numbers them"}
		}
		u.Notes = append(u.Notes, u.folder.notes...)
		u.Stop = u.Stop || op.Kind == OpContext && op.Used >= u.folder.at.Stop
		w.End = w.End || op.Kind == OpDone
	}
	u.Ledger = u.folder.Ledger
	return w, u.project(w)
}

// project makes the checkpoint that the file will show.
func (u *Update) project(w *Write) (err error) {
	if u.Shown != nil {
		if w.Previous, err = u.Shown.Compact(); err != nil {
			return err
		}
	}
	w.Projected = json.RawMessage("null")
	if w.End {
		return nil
	}
	c := handoff.Project(u.Ledger, 0)
	u.Checkpoint = &c
	w.Projected, err = c.Compact()
	return err
}

func entryOf(op *Op, source string) (Entry, error) {
	o := *op
	o.Kind = "" // the entry has it
	data, err := json.Marshal(&o)
	if len(data) > MaxEntryBytes {
		err = invalid("", "the operation has %d bytes, the limit is %d", len(data), MaxEntryBytes)
	}
	return Entry{Kind: op.Kind, Data: data, Source: source}, err
}

// rescue adopts a checkpoint of another task at the place of this one's: what other
// programs wrote into it must not be lost.
func (r *Recorder) rescue(ctx context.Context, u *Update) error {
	if u.Shown != nil {
		return nil
	}
	other, err := u.Document.Checkpoint(r.Place)
	if err != nil || other == nil {
		return err
	}
	ref := r.ref(other.TaskID)
	h, err := r.Ledgers.Handoff(ctx, ref)
	if err != nil && !errors.Is(err, perdure.ErrNotFound) {
		return err
	}
	shown, err := other.Compact()
	if err != nil || same(shown, h.Projected) || same(shown, h.Previous) {
		return err
	}
	op := &Op{Kind: opAdopt, Theirs: shown, At: other.Metadata.LastUpdatedAt}
	w := Write{Ref: ref, Projected: shown}
	if h.EndedAt == nil {
		w.IfVersion = h.Version
		op.Base = h.Projected
	}
	entry, err := entryOf(op, "file")
	if err != nil {
		return err
	}
	w.Entries = []Entry{entry}
	u.Notes = append(u.Notes, "the file had the checkpoint of \""+other.TaskID+"\"; it was added to that task's ledger")
	_, err = r.Ledgers.WriteHandoff(ctx, w)
	return err
}

// Claim claims the work for this recorder's agent; its later ops are under the claim.
func (r *Recorder) Claim(ctx context.Context, task string, ttl time.Duration, takeOver bool) (Claim,
	error) {
	claim, err := r.Ledgers.ClaimHandoff(ctx, ClaimSpec{Ref: r.ref(task), Agent: r.Agent, TTL: ttl,
		TakeOver: takeOver})
	if errors.Is(err, perdure.ErrConflict) {
		err = &perdure.Error{Code: perdure.CodeConflict, Msg: err.Error(),
			Hint: "wait until then; if that agent has stopped, `perdure handoff resume --take-over` takes the work over"}
	}
	if err == nil {
		r.Token = claim.Token
	}
	return claim, err
}

// Release ends the claim.
func (r *Recorder) Release(ctx context.Context, task string) error {
	return r.Ledgers.ReleaseHandoff(ctx, r.ref(task), r.Token)
}
