package chain

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/compress"
	"github.com/perdure/perdure/internal/storage/heads"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// The kinds of events that Verify reads.
const (
	KindRows        = "log.rows"
	KindTreeRemoved = "tree.removed"
)

// Fault is a difference between the log and what was recorded of it. Event is the number
// of the first event that differs, 0 if the difference is not at an event.
type Fault struct {
	Kind   string
	Event  int64
	Detail string
}

// The kinds of faults.
const (
	FaultChanged  = "event_changed"  // an event was changed, or two were exchanged
	FaultMissing  = "event_missing"  // events were removed
	FaultInserted = "event_inserted" // events were inserted
	FaultHead     = "head_changed"   // the events match each other, not the head in the database
	FaultRecorded = "recorded_head"  // the log differs from the head recorded outside
	FaultShorter  = "log_shorter"    // the log has fewer events than were recorded outside
	FaultTree     = "tree_missing"   // a recorded tree is not in the store
	FaultStore    = "store_replaced" // the ID of the store was changed
	FaultRow      = "row_changed"    // a row differs from its digest in the log
)

// Tree is the result for one tree. Key and Name are 0 and empty for the events of no tree.
type Tree struct {
	Key  int64
	Name string
	// Events is the number of chained events, First the number of the first one;
	// Unchained is the number of the last event from before there was a chain.
	Events, First, Unchained int64
	// Recorded is the number of events of the last head recorded outside that matches,
	// RecordedAt its time.
	Recorded   int64
	RecordedAt time.Time
	Faults     []Fault

	head   string // in the database
	state  State
	last   int64          // the number of the last event
	bad    int64          // the number of the first event whose link does not match
	before int64          // the number of the event before it
	marks  []heads.Line   // still to be checked, in the order of events
	blocks map[int64]bool // parts of the index with an event of the tree
	logged
	missing bool
}

// Accepted returns the line that accepts the tree as it is, and false if neither a restore of a
// backup nor a new store in the place of another one causes all of its faults.
func (t *Tree) Accepted(store string, at time.Time) (heads.Line, bool) {
	line := heads.Line{Store: store, Tree: t.Name, Key: t.Key, Events: t.state.Events, At: at, Accepted: true}
	for _, f := range t.Faults {
		switch {
		case f.Kind == FaultShorter, f.Kind == FaultRecorded, f.Kind == FaultTree && t.missing:
		case f.Kind == FaultStore:
			line.Replaces = true
		default:
			return heads.Line{}, false
		}
	}
	if line.Events > 0 {
		line.Head = t.state.Head.String()
	}
	return line, true
}

func (t *Tree) fault(kind string, event int64, format string, args ...any) {
	t.Faults = append(t.Faults, Fault{kind, event, fmt.Sprintf(format, args...)})
}

// verifier is one verification.
type verifier struct {
	trees   map[int64]*Tree
	going   map[int64]bool // trees whose rows retention is removing, or removed by hand
	removed map[int64]bool
	hasher  Hasher
	codec   *compress.Codec
	strange []Fault
}

const (
	sqlTrees = `SELECT s.tree, COALESCE(t.name, ''), s.events, s.head, s.unchained FROM tree_stat s
		LEFT JOIN tree t ON t.id = s.tree UNION ALL SELECT 0, '', events, head, unchained FROM seq`
	sqlStore  = `SELECT store FROM seq WHERE id = 1`
	sqlEvents = `SELECT seq, at, tree, task, kind, data, link FROM event ORDER BY seq`
)

// Verify reads all events on the snapshot of tx and compares them with the heads in the
// database and with those recorded outside. It returns the trees in their order.
func Verify(ctx context.Context, tx *sql.Tx, recorded []heads.Line) ([]*Tree, error) {
	v := &verifier{trees: make(map[int64]*Tree), going: make(map[int64]bool), removed: make(map[int64]bool),
		codec: compress.New(compress.MaxBytes)}
	var store string
	if err := tx.QueryRowContext(ctx, sqlStore).Scan(&store); err != nil {
		return nil, err
	}
	if err := sqldb.Each(ctx, tx.QueryContext, v.tree, sqlTrees); err != nil {
		return nil, err
	}
	replaced := v.mark(store, recorded)
	if err := sqldb.Each(ctx, tx.QueryContext, v.event, sqlEvents); err != nil {
		return nil, err
	}
	if err := v.compareRows(ctx, tx); err != nil {
		return nil, err
	}
	own := v.trees[0]
	if replaced {
		own.fault(FaultStore, 0, "the ID of the store was changed: its trees are recorded under another ID")
	}
	own.Faults = append(own.Faults, v.strange...)
	return v.finish(), nil
}

func (v *verifier) tree(scan sqldb.Scan) error {
	t := &Tree{logged: newLogged(), blocks: make(map[int64]bool)}
	if err := scan(&t.Key, &t.Name, &t.Events, &t.head, &t.Unchained); err != nil {
		return err
	}
	v.trees[t.Key] = t
	v.going[t.Key] = t.Key != 0 && t.Name == ""
	return nil
}

// mark assigns the recorded heads to their trees, and reports whether the trees of this
// store were recorded under another ID.
func (v *verifier) mark(store string, recorded []heads.Line) (replaced bool) {
	names := make(map[string]bool)
	for _, t := range v.trees {
		names[t.Name] = t.Name != ""
	}
	for _, l := range recorded {
		if l.Store != store {
			replaced = replaced || names[l.Tree]
			continue
		}
		t := v.trees[l.Key]
		if t == nil {
			t = &Tree{Key: l.Key, Name: l.Tree, missing: true, logged: newLogged()}
			v.trees[l.Key] = t
		}
		if t.Name == "" {
			t.Name = l.Tree
		}
		t.marks = append(t.marks, l)
	}
	for _, t := range v.trees {
		slices.SortStableFunc(t.marks, func(a, b heads.Line) int { return int(a.Events - b.Events) })
	}
	return replaced
}

func (v *verifier) event(scan sqldb.Scan) error {
	var e Event
	var link *int64
	if err := scan(&e.Seq, &e.At, &e.Tree, &e.Task, &e.Kind, &e.Data, &link); err != nil {
		return err
	}
	t := v.trees[e.Tree]
	switch {
	case t == nil || t.missing:
		v.strange = append(v.strange, Fault{FaultInserted, e.Seq, "the event belongs to no tree of the store"})
		return nil
	case v.going[e.Tree]:
		return nil
	}
	t.blocks[e.Seq/sqldb.EventBlock] = true
	if e.Seq <= t.Unchained {
		return nil
	}
	if t.First == 0 {
		t.First = e.Seq
	}
	want := v.hasher.Add(&t.state, &e)
	if t.bad == 0 && (link == nil || *link != want) {
		t.bad, t.before = e.Seq, t.last
	}
	t.last = e.Seq
	if t.bad == 0 {
		t.passMarks()
	}
	return v.read(t, &e)
}

// passMarks compares the recorded heads of the present number of events.
func (t *Tree) passMarks() {
	for len(t.marks) > 0 && t.marks[0].Events <= t.state.Events {
		m := t.marks[0]
		t.marks = t.marks[1:]
		if m.Events == t.state.Events && m.Head == t.state.Head.String() {
			t.Recorded, t.RecordedAt = m.Events, m.At
			continue
		}
		t.fault(FaultRecorded, t.last, "event %d or one before it is not the one that was recorded at %s", t.last,
			m.At.Format(time.RFC3339))
		t.marks = nil
	}
}

// read takes over what an event states of other rows.
func (v *verifier) read(t *Tree, e *Event) error {
	if e.Kind == KindTreeRemoved && e.Tree == 0 {
		var data struct {
			Tree int64 `json:"tree"`
		}
		if json.Unmarshal([]byte(e.Data), &data) == nil {
			v.removed[data.Tree] = true
		}
		return nil
	}
	t.logged.read(e)
	return nil
}

func (v *verifier) finish() []*Tree {
	var list []*Tree
	for key, t := range v.trees {
		switch {
		case v.removed[key]:
			continue
		case t.missing, v.going[key] && (t.Events > 0 || len(t.marks) > 0):
			t.Faults = nil
			t.fault(FaultTree, 0, "the tree was removed, and not by retention")
		case v.going[key]:
			continue
		default:
			t.finish()
		}
		slices.SortStableFunc(t.Faults, func(a, b Fault) int { return strings.Compare(a.Detail, b.Detail) })
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Tree) int { return int(a.Key - b.Key) })
	return list
}

// finish compares the chain with the head in the database, and reports the rows and the
// recorded heads that are missing.
func (t *Tree) finish() {
	for row := range t.rows {
		if !t.gone[row.whole()] {
			t.fault(FaultRow, 0, "%s was removed outside of perdure", row.text())
		}
	}
	switch lost := t.Events - t.state.Events; {
	case t.bad != 0 && lost > 0:
		t.fault(FaultMissing, t.bad, "%s before event %d", missing(lost), t.bad)
	case t.bad != 0 && lost < 0:
		t.fault(FaultInserted, t.bad, "event %d was inserted, or one before it was changed", t.bad)
	case t.bad != 0:
		t.fault(FaultChanged, t.bad, "event %d was changed", t.bad)
	case lost > 0:
		t.fault(FaultMissing, t.last, "%s after event %d", missing(lost), t.last)
	case lost < 0 || t.state.Events > 0 && t.head != t.state.Head.String():
		t.fault(FaultHead, t.last, "event %d is not the recorded end of the log", t.last)
	}
	if m := len(t.marks) - 1; m >= 0 && t.bad == 0 && t.marks[m].Events > t.state.Events {
		t.fault(FaultShorter, t.last, "the log ends with %d events, %d were recorded at %s: events were removed, or an "+
			"earlier copy of the database was restored", t.state.Events, t.marks[m].Events,
			t.marks[m].At.Format(time.RFC3339))
	}
	t.Events = t.state.Events
}

func missing(n int64) string {
	if n == 1 {
		return "1 event is missing"
	}
	return fmt.Sprintf("%d events are missing", n)
}
