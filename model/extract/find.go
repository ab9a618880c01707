package extract

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/perdure/perdure/model"
)

// keptFactor is how many times topK passages are compared with each other at the end:
// some of them are nearly the same text as others.
const keptFactor = 20

// Find returns the best passages of a whole context, at most topK, best first. It
// ranges over docs twice and keeps no more of it than the passages, so memory does not
// grow with the context. The result is the same each time. Documents are read by
// cfg.Workers goroutines, which have ended when Find returns. The error is one of docs,
// or wraps ctx.Err().
func (e *Engine) Find(
	ctx context.Context, prompt string, docs iter.Seq2[model.Document, error], topK int,
) ([]model.Citation, error) {
	q := e.query(prompt)
	c, err := count(ctx, q, docs, e.cfg.Workers)
	if err != nil {
		return nil, fmt.Errorf("find passages: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan []model.Document, e.cfg.Workers)
	found := make([]finder, e.cfg.Workers)
	var wg sync.WaitGroup
	for i := range found {
		found[i] = finder{judge: c.stats(q).judge(q), topK: topK}
		wg.Go(func() {
			for batch := range batches {
				found[i].read(ctx, batch)
			}
		})
	}
	err = feed(ctx, docs, batches)
	if err != nil {
		cancel()
	}
	close(batches)
	wg.Wait()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("find passages: %w", err)
	}
	all := finder{topK: topK}
	for i := range found {
		all.best = append(all.best, found[i].best...)
	}
	all.cut()
	return Merge(prompt, [][]model.Citation{all.best}, topK), nil
}

// finder collects the best passages of batches. It serves one goroutine.
type finder struct {
	*judge
	topK int
	best []model.Citation
}

func (f *finder) read(ctx context.Context, batch []model.Document) {
	found, _, err := candidates(ctx, f.judge, batch)
	if err != nil {
		return // ctx ended
	}
	f.best = append(f.best, best(found, batch, f.topK)...)
	if len(f.best) > 2*keptFactor*f.topK {
		f.cut()
	}
}

// cut drops all but the best passages. The order is total, so that what is left does not
// depend on the order in which they were found.
func (f *finder) cut() {
	slices.SortFunc(f.best, func(a, b model.Citation) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.File, b.File), cmp.Compare(a.StartLine, b.StartLine),
			cmp.Compare(a.EndLine, b.EndLine))
	})
	f.best = slices.Clone(f.best[:min(len(f.best), keptFactor*f.topK)])
}
