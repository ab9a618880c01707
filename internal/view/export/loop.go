package export

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/record"
)

// blobLine describes a large value, whose content follows.
type blobLine struct {
	Type  string `json:"type"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// loop writes the rows of a loop other than its tasks. The snapshots of
// its workspace are not part of the store.
func (x *exporter) loop(ctx context.Context, tree *perdure.Tree) error {
	if tree.Kind != perdure.KindLoop {
		return nil
	}
	records := record.New(x.store)
	l, err := records.Loop(ctx, tree.ID)
	if perdure.CodeOf(err) == perdure.CodeNotFound {
		return nil // the process died before the loop began
	}
	if err != nil {
		return err
	}
	x.row("loop", &l)
	return x.iterations(ctx, records, tree.ID)
}

// gates writes what people were asked, in a loop or in a run.
func (x *exporter) gates(ctx context.Context, tree *perdure.Tree) error {
	gates, err := x.store.Gates(ctx, tree.ID)
	for i := range gates {
		x.row("gate", &gates[i])
	}
	return err
}

// falseAlarms writes what people marked in a loop.
func (x *exporter) falseAlarms(ctx context.Context, tree *perdure.Tree) error {
	marks, err := record.New(x.store).FalseAlarms(ctx, tree.ID)
	for i := range marks {
		x.row("false_alarm", &marks[i])
	}
	return err
}

// iterations writes the iterations, the baseline's first, each followed by the
// results of its tests unless these were written before.
func (x *exporter) iterations(ctx context.Context, records *record.Records, id perdure.TreeID) error {
	written := make(map[string]bool)
	const page = 100
	for from := 0; ; {
		list, err := records.Iterations(ctx, id, from, page)
		if err != nil {
			return err
		}
		for i := range list {
			x.row("iteration", &list[i])
			from = list[i].Number + 1
			o, err := state.ReadOutcome(&list[i])
			if hash := o.Check.Results; err == nil && hash != "" && !written[hash] {
				written[hash] = true
				if err := x.blob(ctx, hash); err != nil {
					return err
				}
			}
		}
		if len(list) < page || x.err != nil {
			return nil //nolint:nilerr // the exporter keeps its error
		}
	}
}

func (x *exporter) blob(ctx context.Context, hash string) error {
	blob, err := x.store.OpenBlob(ctx, hash)
	if err != nil {
		return err
	}
	defer blob.Close()
	x.line("blob", blobLine{"blob", hash, blob.Size()})
	return x.content(ctx, blob, 0, blob.Size())
}
