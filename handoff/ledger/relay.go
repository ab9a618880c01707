package ledger

import (
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

// Ledgers is where ledgers are kept: a [perdure.Store] or a client of its API.
type Ledgers interface {
	Handoff(ctx context.Context, ref perdure.HandoffRef) (perdure.Handoff, error)
	HandoffEntries(ctx context.Context, id perdure.HandoffID, after int64, limit int) ([]perdure.HandoffEntry, error)
	WriteHandoff(ctx context.Context, w perdure.HandoffWrite) (perdure.Handoff, error)
	ClaimHandoff(ctx context.Context, spec perdure.HandoffClaimSpec) (perdure.HandoffClaim, error)
	ReleaseHandoff(ctx context.Context, ref perdure.HandoffRef, token string) error
}

// Config says whose work it is and where it is shown.
type Config struct {
	// Ledgers and Location are required.
	Ledgers  Ledgers
	Location handoff.Location
	// Place is where in the file the checkpoint stands. Defaults to handoff.PRD.
	Place handoff.Place
	// Folder is what the places of ledgers are relative to: that which the store
	// is in. Empty: they are absolute.
	Folder string
	// Agent is who works, Token that of its claim; both may be empty.
	Agent, Token string
	Thresholds   Thresholds
	// Snapshots is a folder for what long ledgers fold to, to spare reading all
	// of their entries; it is made when there is none. Empty: nothing is kept.
	Snapshots string
}

// Relay records work on one task. It is for one goroutine; others, also in other
// processes, may record work on the same task at the same time: they wait for
// each other at the file.
type Relay struct {
	Config
}

// New returns a relay. It looks at nothing yet.
func New(cfg Config) *Relay {
	if cfg.Place == "" {
		cfg.Place = handoff.PRD
	}
	return &Relay{cfg}
}

// View is what is known of the work on a task.
type View struct {
	Task handoff.Task
	// Handoff is the ledger's row; its ID is 0 when nothing was recorded yet.
	Handoff perdure.Handoff
	Ledger  handoff.Ledger
	// Shown is the checkpoint in the file; nil when there is none.
	Shown *handoff.Checkpoint
	// Document is the file.
	Document *handoff.Document
	// Notes are for who looks: what somebody else changed in the file.
	Notes []string
	// Behind tells that the file does not show what the ledger has: who recorded
	// it last died before it wrote the file, or an older file came back. The
	// next write brings it up to date.
	Behind bool

	folder *folder
	adopt  *Op  // of what is in the file and not in the ledger
	ended  bool // the file still shows work that is done
}

// Open tells whether work on the task was recorded and is not done.
func (v *View) Open() bool { return v.open() || v.Shown != nil }

// Look reads the file and the ledger. What somebody else wrote into the file
// counts, but is not recorded.
func (r *Relay) Look(ctx context.Context) (*View, error) {
	doc, err := handoff.Load(r.Location.File)
	if err != nil {
		return nil, err
	}
	return r.view(ctx, doc)
}

func (r *Relay) view(ctx context.Context, doc *handoff.Document) (*View, error) {
	v := &View{Document: doc}
	var err error
	if v.Task, err = doc.Task(r.Place); err != nil {
		return nil, err
	}
	if v.Shown, err = doc.Checkpoint(r.Place); err != nil {
		return nil, err
	}
	if v.Shown != nil && !isOf(v.Shown.TaskID, v.Task.ID) {
		v.Shown = nil // of the task before; see [Relay.rescue]
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

// isOf tells whether a checkpoint that names its task so, cut short when it is
// long, is of a task. One that names none is of the task at whose place it stands.
func isOf(named, task string) bool {
	beginning, cut := strings.CutSuffix(named, "…")
	return named == "" || named == task || cut && strings.HasPrefix(task, beginning)
}

// open tells whether there is a ledger that has not ended.
func (v *View) open() bool { return v.Handoff.ID != 0 && v.Handoff.EndedAt == nil }

func (r *Relay) newFolder(v *View) *folder {
	f := newFolder(v.Task.ID, r.Thresholds)
	f.Ref = "perdure handoff log --task " + string(r.Place)
	f.Description = v.Task.Description
	return f
}

// each reads the entries of the ledger behind a number.
func (r *Relay) each(ctx context.Context, v *View, after int64, do func(*perdure.HandoffEntry) error) error {
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

// compare finds out whether somebody else changed the checkpoint in the file.
func (r *Relay) compare(ctx context.Context, v *View) error {
	if v.Shown == nil {
		if v.Behind = v.open() && len(v.Handoff.Projected) > 0; v.Behind {
			v.Notes = append(v.Notes, "the checkpoint is not in the file any more; the ledger still has it all")
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

// taken says what a file brought that no ledger knows of.
func (v *View) taken() string {
	w := &v.folder.Work
	by := ""
	if w.Metadata.CreatedBy != "" {
		by = ", by \"" + w.Metadata.CreatedBy + "\""
	}
	return fmt.Sprintf("the checkpoint in the file is in no ledger yet; it is taken over (completed steps: %d, "+
		"pending: %d, decisions: %d%s)",
		len(w.CompletedSteps), len(w.PendingSteps), len(w.Decisions), by)
}

// older tells whether a checkpoint is one that the ledger made before, which came
// back with an older version of the file. It also returns those that the ledger
// made at the time that the checkpoint says: one of them may have been edited.
func (r *Relay) older(ctx context.Context, v *View, shown []byte) (found bool, then []json.RawMessage, err error) {
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
	err = r.each(ctx, v, 0, func(e *perdure.HandoffEntry) error {
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

// base is the checkpoint that somebody's edit began with: the last one, or the
// one before when the process died before it wrote the file, or one of its time
// when it is an older one, whichever makes it the smallest edit. When there is
// none, nothing counts as taken out.
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

// same compares checkpoints, whatever the database made of their JSON.
func same(compact []byte, stored json.RawMessage) bool {
	if len(stored) == 0 {
		return false
	}
	var c handoff.Checkpoint
	if json.Unmarshal(stored, &c) != nil {
		return false
	}
	again, err := c.Compact()
	return err == nil && string(again) == string(compact)
}

// ref names the ledger of a task of the file.
func (r *Relay) ref(task string) perdure.HandoffRef {
	return perdure.HandoffRef{Place: r.place(), Task: task}
}

func (r *Relay) place() string {
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

// Update is what was recorded.
type Update struct {
	View
	// Checkpoint is what the file shows now; nil when the work is done.
	Checkpoint *handoff.Checkpoint
	// Left are files of the ops that are no sources, and so are not listed.
	Left []string
}

// Apply records ops, all or none of them: in the ledger first, then in the file.
// No ops bring the file up to date. When the file cannot be written after the
// ledger was, the error says so, and the next Apply brings it up to date.
func (r *Relay) Apply(ctx context.Context, ops ...Op) (*Update, error) {
	for i := range ops {
		if err := ops[i].Check(); err != nil {
			return nil, err
		}
	}
	return r.locked(ctx, ops)
}

// locked records ops that were checked.
func (r *Relay) locked(ctx context.Context, ops []Op) (*Update, error) {
	reading := r.readFiles(ctx, ops)
	defer reading()
	u, written, err := r.once(ctx, ops, reading)
	const most = 5 // editors that save the file just then
	for again := 0; written && again < most && u.Checkpoint != nil && errors.Is(err, handoff.ErrConflict); again++ {
		notes := u.Notes
		if u, _, err = r.once(ctx, nil, nothing); u != nil {
			u.Notes = append(notes, u.Notes...)
		}
	}
	if err == nil || !written {
		return u, err
	}
	return nil, &perdure.Error{Code: codeOf(err), Op: "record work",
		Msg:  "it is recorded in the ledger, but the file does not show it: " + err.Error(),
		Hint: "do not record it again; the next command brings the file up to date"}
}

// codeOf tells what kind of error it is to those who do not know the file's.
func codeOf(err error) perdure.Code {
	if errors.Is(err, handoff.ErrConflict) || errors.Is(err, handoff.ErrReadOnly) {
		return perdure.CodeConflict
	}
	return perdure.CodeOf(err)
}

// once records ops under the lock of the file. It tells whether they are in the
// ledger.
func (r *Relay) once(ctx context.Context, ops []Op, reading func() *readOps) (u *Update, written bool, err error) {
	file, err := handoff.Lock(ctx, r.Location.File)
	if err != nil {
		return nil, false, err
	}
	u, written, err = r.apply(ctx, file, ops, reading)
	return u, written, errors.Join(err, file.Close())
}

func (r *Relay) apply(ctx context.Context, file *handoff.File, ops []Op, reading func() *readOps) (u *Update,
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
	failpoint.Hit("relay.before_ledger")
	if u.Handoff, err = r.Ledgers.WriteHandoff(ctx, *write); err != nil {
		return nil, false, r.refused(err, &view.Handoff)
	}
	failpoint.Hit("relay.after_ledger")
	if write.End && r.Snapshots != "" {
		_ = os.Remove(r.snapshotFile(u.Handoff.ID)) // most ledgers are too short for one
	}
	err = r.show(file, u)
	failpoint.Hit("relay.after_file")
	return u, true, err
}

// show writes the checkpoint into the file.
func (r *Relay) show(file *handoff.File, u *Update) error {
	next, err := file.Document().With(r.Place, u.Checkpoint, u.Handoff.UpdatedAt)
	if err != nil {
		return err
	}
	return file.Write(next, nil)
}

// refused says what can be done when somebody else has a claim.
func (r *Relay) refused(err error, h *perdure.Handoff) error {
	if !errors.Is(err, perdure.ErrConflict) || r.Token != "" || h.ExpiresAt == nil {
		return err
	}
	return &perdure.Error{Code: perdure.CodeConflict, Msg: err.Error(),
		Hint: "if the claim is yours, give its token (--token, or PERDURE_HANDOFF_TOKEN); " +
			"if its agent is gone, `perdure handoff resume --take-over` takes the work over"}
}

// begin refuses to go on with work that is done, but for a start, and to start
// work that is not done.
func (u *Update) begin(ops []Op) error {
	start := slices.ContainsFunc(ops, func(op Op) bool { return op.Kind == OpStart })
	switch {
	case start && u.Open():
		m := &u.Ledger.Metadata
		return &perdure.Error{Code: perdure.CodeConflict, Op: "start work",
			Msg: fmt.Sprintf("there is unfinished work on %q (completed steps: %d, by %q, %s)",
				u.Task.ID, len(u.Ledger.CompletedSteps), m.CreatedBy, m.LastUpdatedAt.UTC().Format(time.RFC3339)),
			Hint: "`perdure handoff resume` continues it; `perdure handoff start --again` ends it and begins anew"}
	case u.Handoff.EndedAt == nil || u.Shown != nil || start:
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "record work", Msg: "the work on \"" + u.Task.ID + "\" is done",
		Hint: "`perdure handoff start` begins it again"}
}

// prepare folds the ops and makes the write that records them.
func (r *Relay) prepare(u *Update, read *readOps) (*perdure.HandoffWrite, error) {
	if read.err != nil {
		return nil, read.err
	}
	u.Left, u.Notes = append(u.Left, read.left...), append(u.Notes, read.notes...)
	w := &perdure.HandoffWrite{HandoffRef: r.ref(u.Task.ID), Token: r.Token, Previous: json.RawMessage("null")}
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
		agent = u.Handoff.Agent // only who claimed last can write with a token
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
		if u.folder.absent && op.Kind != OpStep { // a step that was done is not to be lost for that
			return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "record work", Msg: strings.Join(u.folder.notes, "; "),
				Hint: "`perdure handoff show` numbers them"}
		}
		u.Notes = append(u.Notes, u.folder.notes...)
		w.End = w.End || op.Kind == OpDone
	}
	u.Ledger = u.folder.Ledger
	return w, u.project(w)
}

// project makes what the file is going to show.
func (u *Update) project(w *perdure.HandoffWrite) (err error) {
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

func entryOf(op *Op, source string) (perdure.HandoffEntry, error) {
	o := *op
	o.Kind = "" // it stands in the entry
	data, err := json.Marshal(&o)
	if len(data) > perdure.MaxHandoffEntryBytes {
		err = invalid("", "the operation has %d bytes, the limit is %d", len(data), perdure.MaxHandoffEntryBytes)
	}
	return perdure.HandoffEntry{Kind: op.Kind, Data: data, Source: source}, err
}

// rescue adopts a checkpoint of another task that stands where this one's is to
// be: what somebody else wrote into it must not be lost.
func (r *Relay) rescue(ctx context.Context, u *Update) error {
	other, err := u.Document.Checkpoint(r.Place)
	if err != nil || other == nil || u.Shown != nil {
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
	w := perdure.HandoffWrite{HandoffRef: ref, Projected: shown}
	if h.EndedAt == nil {
		w.IfVersion = h.Version
		op.Base = h.Projected
	}
	entry, err := entryOf(op, "file")
	if err != nil {
		return err
	}
	w.Entries = []perdure.HandoffEntry{entry}
	u.Notes = append(u.Notes, "the file showed \""+other.TaskID+"\"; that is kept in its ledger")
	_, err = r.Ledgers.WriteHandoff(ctx, w)
	return err
}

// Claim gives the work to this relay's agent, whose later ops then count as
// under the claim.
func (r *Relay) Claim(ctx context.Context, task string, ttl time.Duration, takeOver bool) (perdure.HandoffClaim,
	error) {
	claim, err := r.Ledgers.ClaimHandoff(ctx, perdure.HandoffClaimSpec{HandoffRef: r.ref(task), Agent: r.Agent, TTL: ttl,
		TakeOver: takeOver})
	if errors.Is(err, perdure.ErrConflict) {
		err = &perdure.Error{Code: perdure.CodeConflict, Msg: err.Error(),
			Hint: "wait until then; if that agent is gone, `perdure handoff resume --take-over` takes the work over"}
	}
	if err == nil {
		r.Token = claim.Token
	}
	return claim, err
}

// Release gives the claim back.
func (r *Relay) Release(ctx context.Context, task string) error {
	return r.Ledgers.ReleaseHandoff(ctx, r.ref(task), r.Token)
}
