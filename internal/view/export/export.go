// Package export writes everything the store has of a tree as JSON Lines: its
// configuration, its context, its tasks with results and calls, and its events.
//
// The first line is the manifest. The last one has the number of lines of each type and
// the SHA-256 of all bytes before it: a file without it is incomplete. In between the
// order is fixed: the tree, its context with the files, the state of a loop with its
// iterations, the gates by number, the false alarms, the tasks by ID each followed by its
// calls, the events by number. Two exports of a tree that ended are the same bytes.
// Readers skip types they do not know.
package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/perdure/perdure"
)

// The identity of the format. The version changes when a line changes its
// meaning, not when there are more fields or types.
const (
	Format  = "perdure-export"
	Version = 1
)

// Config says what to write.
type Config struct {
	Tree perdure.TreeID
	// WithoutContext leaves out the text of the context's files; their names
	// and sizes stay.
	WithoutContext bool
}

// manifest is the first line.
type manifest struct {
	Type    string         `json:"type"`
	Format  string         `json:"format"`
	Version int            `json:"version"`
	Tree    perdure.TreeID `json:"tree_id"`
	// State is that of the tree when the export began. Of a tree that has not
	// ended, each line is as it was when it was written.
	State perdure.State `json:"state"`
	// WithContext reports whether the export has the text of files.
	WithContext bool `json:"with_context"`
}

type end struct {
	Type   string           `json:"type"`
	Counts map[string]int64 `json:"counts"`
	SHA256 string           `json:"sha256"`
}

// Write writes a tree to w, page by page: memory does not grow with the tree.
// It fails with perdure.CodeNotFound when there is no such tree, and with the
// error of w; what was written then has no last line.
func Write(ctx context.Context, store *perdure.Store, w io.Writer, cfg Config) error {
	tree, err := store.Tree(ctx, cfg.Tree)
	if err != nil {
		return err
	}
	x := &exporter{store: store, cfg: cfg, out: w, sum: sha256.New(), lines: make(map[string]int64)}
	x.line("manifest", manifest{"manifest", Format, Version, tree.ID, tree.State, !cfg.WithoutContext})
	x.row("tree", tree)
	for _, part := range []func(context.Context, *perdure.Tree) error{x.context, x.loop, x.gates, x.falseAlarms, x.tasks,
		x.events} {
		if err := part(ctx, &tree); err != nil {
			return err
		}
		if x.err != nil {
			return x.err
		}
	}
	sum := hex.EncodeToString(x.sum.Sum(nil))
	x.line("end", end{"end", x.lines, sum})
	return x.err
}

// exporter writes the lines of one export. After an error of the writer it
// writes nothing more.
type exporter struct {
	store *perdure.Store
	cfg   Config
	out   io.Writer
	sum   hash.Hash
	lines map[string]int64
	err   error
}

func (x *exporter) line(kind string, v any) { x.write(kind, "", v, "\n") }

// row writes a line with a value of the store, in the member that is named as its type.
func (x *exporter) row(kind string, v any) { x.write(kind, `{"type":"`+kind+`","`+kind+`":`, v, "}\n") }

func (x *exporter) write(kind, before string, v any, after string) {
	if x.err != nil {
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		x.err = fmt.Errorf("encode %s: %w", kind, err)
		return
	}
	raw = slices.Concat([]byte(before), raw, []byte(after))
	x.sum.Write(raw)
	if kind != "end" {
		x.lines[kind]++
	}
	if _, err := x.out.Write(raw); err != nil {
		x.err = fmt.Errorf("write export: %w", err)
	}
}

// pageSize is how many rows are in memory at once.
const pageSize = 500

func (x *exporter) tasks(ctx context.Context, tree *perdure.Tree) error {
	filter := perdure.TaskFilter{Tree: tree.ID, Limit: pageSize, Brief: true}
	for {
		page, err := x.store.Tasks(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page {
			if err := x.task(ctx, page[i].ID); err != nil {
				return err
			}
		}
		if len(page) < pageSize || x.err != nil {
			return nil //nolint:nilerr // the exporter keeps its error
		}
		filter.After = page[len(page)-1].ID
	}
}

func (x *exporter) task(ctx context.Context, id perdure.TaskID) error {
	t, err := x.store.Task(ctx, id)
	if err != nil {
		return err
	}
	x.row("task", t)
	calls, err := x.store.Calls(ctx, id)
	if err != nil {
		return err
	}
	for i := range calls {
		x.row("call", &calls[i])
	}
	return nil
}

func (x *exporter) events(ctx context.Context, tree *perdure.Tree) error {
	filter := perdure.EventFilter{Tree: tree.ID}
	for {
		page, err := x.store.Events(ctx, filter)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			x.row("event", &page[i])
		}
		if x.err != nil {
			return nil //nolint:nilerr // the exporter keeps its error
		}
		filter.After = page[len(page)-1].Seq
	}
}
