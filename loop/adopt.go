package loop

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Adoption is a loop that was started elsewhere and continues here.
type Adoption struct {
	Config config.Config
	// Past is the origin of the loop; its Document must be among the Blobs.
	Past  record.Past
	Blobs []perdure.BlobRef
	// Iterations are those of then, made with [state.Outcome.Row].
	Iterations []record.Iteration
}

// Adopt takes in a loop that began elsewhere. It is paused: when it is resumed the
// workspace as it is then is the baseline, and the first iteration has the number
// after Past.Iteration. It is refused as by [Engine.Launch]; then nothing is there.
func (e *Engine) Adopt(ctx context.Context, a Adoption) (perdure.Tree, error) {
	if err := e.available(&a.Config); err != nil {
		return perdure.Tree{}, err
	}
	place, err := e.place(&a.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	doc, err := json.Marshal(&state.State{Past: &a.Past, Counts: true,
		Reason: "it was imported; resuming it takes the files as they are " +
			"then for the beginning"})
	if err != nil {
		return perdure.Tree{}, err
	}
	if err := e.keepHeldOut(&a.Config, nil); err != nil {
		return perdure.Tree{}, err
	}
	raw, err := json.Marshal(&a.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	first := record.Beginning{Loop: record.Loop{Place: place, Status: record.Paused, Step: stepBegin,
		Iteration: a.Past.Iteration, State: doc},
		Iterations: a.Iterations, Blobs: a.Blobs,
		Events: []record.Event{{Kind: record.EventImported, Data: map[string]any{"loop_id": a.Past.LoopID,
			"from": a.Past.From, "iteration": a.Past.Iteration, "iterations": len(a.Iterations)}}}}
	tree, err := e.cfg.Store.CreateTree(ctx, e.spec(&a.Config, raw, nil, first.InTx))
	failpoint.Hit("loop.adopted")
	return tree, err
}
