package loop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Layout returns what describes the loops of a store in the files that other
// programs keep of one. dir is the folder in which each has its own files; of
// these the log of hooks is read.
func Layout(ctx context.Context, store *perdure.Store, dir string) func(t *perdure.Tree) (loops.Own, bool) {
	return func(t *perdure.Tree) (loops.Own, bool) {
		if t.Kind != perdure.KindLoop {
			return loops.Own{}, false
		}
		if _, err := record.New(store).Loop(ctx, t.ID); perdure.CodeOf(err) == perdure.CodeNotFound {
			return loops.Own{}, false // it never began: a tree like others
		}
		l := &layout{store: store, tree: *t, log: filepath.Join(dir, loop.ID(t), "hook-log.jsonl")}
		return loops.Own{ID: loop.ID(t), Write: l.write}, true
	}
}

type layout struct {
	store *perdure.Store
	tree  perdure.Tree
	log   string
}

// iterationFile is iterations/iteration-NNN.json: what the state says of the
// iteration, and all that the store has of it.
type iterationFile struct {
	Iteration
	LoopID string          `json:"loop_id"`
	Record json.RawMessage `json:"record,omitempty"`
}

// checkpoint is checkpoints/iteration-NNN.json.gz: what there was after an
// iteration. The files themselves are in the snapshot that it is called by.
type checkpoint struct {
	Version   string        `json:"version"`
	ID        string        `json:"checkpoint_id"`
	LoopID    string        `json:"loop_id"`
	WorkOf    string        `json:"workflow_id"`
	Workflow  string        `json:"workflow_type"`
	Iteration int           `json:"iteration"`
	CreatedAt *time.Time    `json:"created_at"`
	Trigger   string        `json:"trigger"`
	State     checkedState  `json:"state"`
	Metrics   *Metrics      `json:"metrics,omitempty"`
	Execution *checkedAgent `json:"execution_config,omitempty"`
}

type checkedState struct {
	Phase     string         `json:"phase"`
	Progress  map[string]any `json:"progress"`
	Iteration map[string]int `json:"iteration"`
	Artifacts []string       `json:"artifacts"`
}

type checkedAgent struct {
	Agent string `json:"agent"`
}

// Places of the files in the folder of a loop.
func iterationPlace(n int) string  { return fmt.Sprintf("iterations/iteration-%03d.json", n) }
func checkpointPlace(n int) string { return fmt.Sprintf("checkpoints/iteration-%03d.json.gz", n) }

const reportPlace = "analytics/report.md"

// write is [loops.Own]'s.
func (l *layout) write(ctx context.Context, add func(place string, text []byte) error) (int, error) {
	in, err := Read(ctx, l.store, &l.tree)
	if err != nil {
		return 0, err
	}
	w := &layoutWriter{draft: NewDraft(in), add: add}
	records := record.New(l.store)
	const page = 200
	for from := 0; ; {
		list, err := records.Iterations(ctx, l.tree.ID, from, page)
		if err != nil {
			return w.count, err
		}
		if err := w.iterations(list); err != nil {
			return w.count, err
		}
		if len(list) < page {
			break
		}
		from = list[len(list)-1].Number + 1
	}
	if err := w.documents(); err != nil {
		return w.count, err
	}
	return w.count, w.log(l.log)
}

type layoutWriter struct {
	draft *Draft
	add   func(place string, text []byte) error
	count int
	last  int // the last iteration with a checkpoint
}

func (w *layoutWriter) json(place string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	return w.add(place, text)
}

func (w *layoutWriter) iterations(list []record.Iteration) error {
	at := len(w.draft.d.History)
	w.draft.Add(list)
	for i := range list {
		if list[i].Number == 0 {
			continue
		}
		h := &w.draft.d.History[at]
		at++
		w.count++
		id := ""
		if h.Snapshot != nil {
			id = *h.Snapshot
		}
		w.located(h)
		f := iterationFile{Iteration: *h, LoopID: w.draft.s.ID()}
		if json.Valid(list[i].Data) {
			f.Record = list[i].Data
		}
		if err := w.json(iterationPlace(h.Iteration), &f); err != nil {
			return err
		}
		if h.Tests == nil {
			continue // it is not over
		}
		if err := w.json(checkpointPlace(h.Iteration), w.checkpoint(h, id)); err != nil {
			return err
		}
		w.last = h.Iteration
	}
	return nil
}

// located has the snapshot of an iteration called by its file, as the layout has
// it.
func (w *layoutWriter) located(h *Iteration) {
	if h.Snapshot != nil {
		place := w.path(iterationPlace(h.Iteration))
		h.SnapshotID, h.Snapshot = *h.Snapshot, &place
	}
}

// path is that of a file of the loop as documents have it.
func (w *layoutWriter) path(place string) string {
	return ".aiwg/ralph/loops/" + w.draft.s.ID() + "/" + place
}

func (w *layoutWriter) checkpoint(h *Iteration, snapshot string) *checkpoint {
	c := &checkpoint{Version: "1.0.0", ID: cmp.Or(snapshot, fmt.Sprintf("iteration-%03d", h.Iteration)),
		LoopID: w.draft.s.ID(), WorkOf: loops.LayoutID(w.draft.s.ID()), Workflow: "ralph_loop",
		Iteration: h.Iteration, CreatedAt: h.Timestamp, Trigger: "iteration", Metrics: h.Metrics,
		State: checkedState{Phase: "iteration", Progress: map[string]any{"completed_steps": h.Iteration},
			Iteration: map[string]int{"current": h.Iteration}, Artifacts: h.Artifacts}}
	if n := w.draft.s.cfg.MaxIterations; n > 0 {
		c.State.Iteration["max"], c.State.Progress["total_steps"] = n, n
		c.State.Progress["percentage"] = min(100*float64(h.Iteration)/float64(n), 100)
	}
	if h.Agent != "" {
		c.Execution = &checkedAgent{h.Agent}
	}
	return c
}

func (w *layoutWriter) documents() error {
	d, s := w.draft.State(), w.draft.Summary()
	for _, c := range []*Choice{d.Best, d.Selected} {
		if c != nil && c.Snapshot != "" {
			c.SnapshotID, c.Snapshot = cmp.Or(w.snapshotOf(c.Iteration), c.Snapshot), w.path(iterationPlace(c.Iteration))
		}
	}
	if w.last > 0 {
		d.LastCheckpoint = w.path(checkpointPlace(w.last))
	}
	if s.in.Loop.Status.Ended() {
		d.ReportPath = w.path(reportPlace)
	}
	if err := w.json("state.json", &d); err != nil {
		return err
	}
	if err := w.json("analytics/analytics.json", s.Analytics()); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := s.Report(&text, "md"); err != nil {
		return err
	}
	return w.add(reportPlace, text.Bytes())
}

// snapshotOf is the ID of the snapshot after an iteration.
func (w *layoutWriter) snapshotOf(number int) string {
	for i := range w.draft.d.History {
		if w.draft.d.History[i].Iteration == number {
			return w.draft.d.History[i].SnapshotID
		}
	}
	return ""
}

// maxLayoutLog bounds the log of hooks in bytes: other programs read it whole. Of
// a longer one the end is written.
const maxLayoutLog = 48 << 20

func (w *layoutWriter) log(path string) error {
	var lines [][]byte
	size := 0
	_, err := hook.ReadLogFile(path, func(r hook.Record) bool {
		text, err := r.MarshalJSON()
		if err != nil {
			return true // it was read, so it can be written
		}
		lines, size = append(lines, text), size+len(text)+1
		for size > maxLayoutLog {
			size -= len(lines[0]) + 1
			lines = lines[1:]
		}
		return true
	})
	if err != nil || len(lines) == 0 {
		return err
	}
	return w.add("hook-log.jsonl", append(append([]byte{'['}, bytes.Join(lines, []byte(","))...), ']'))
}
