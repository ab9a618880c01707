package loop

import (
	"context"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Source is where iterations are read from: the records of a store, or a client.
type Source interface {
	Iterations(ctx context.Context, tree perdure.TreeID, from, limit int) ([]record.Iteration, error)
	Briefs(ctx context.Context, tree perdure.TreeID, from, limit int) ([]record.Iteration, error)
	Regressed(ctx context.Context, tree perdure.TreeID, below, limit int) ([]record.Iteration, error)
	LoopHistory(ctx context.Context, tree perdure.TreeID, req record.HistoryRequest) (record.History, error)
}

// View says what an input is for.
type View int

// The views.
const (
	// ViewRow is for [Summary.Row].
	ViewRow View = iota
	ViewOverview
	ViewPersistence
	ViewRegressions
	ViewQuality
	// ViewReport is for [Summary.Report] and [Summary.Analytics].
	ViewReport
	// ViewDocument is for [Document].
	ViewDocument
)

const (
	// pageSize is how many iterations are asked for at once.
	pageSize = 1000
	// fewIterations are given whole to every view.
	fewIterations = maxSpark
	// DocumentIterations is how many iterations the histories of a document have at
	// most, unless all are asked for.
	DocumentIterations = 200
)

// Load gives the input the iterations that a view needs of the loop in it, which is
// the less the longer the loop is; full asks for what the view otherwise leaves out
// of a long one.
func (in *Input) Load(ctx context.Context, from Source, view View, full bool) error {
	l := &loader{in, from, in.Loop.Tree, in.Loop.Iteration}
	past, err := in.Loop.Past()
	if err != nil {
		return err
	}
	switch {
	case l.last <= fewIterations, view == ViewDocument && (full || past != nil || l.last <= DocumentIterations):
		in.Iterations, err = l.after(ctx, nil, 0, from.Iterations)
		return err
	case view == ViewReport, view == ViewQuality && full:
		if in.Iterations, err = l.after(ctx, nil, 0, from.Briefs); err != nil {
			return err
		}
		if view == ViewReport {
			return l.tail(ctx, maxReportDiffs)
		}
		return l.tail(ctx, 2)
	case view == ViewRegressions:
		if err = l.regressions(ctx, full); err == nil { // with what the last one warns of
			err = l.tail(ctx, 2)
		}
	case view == ViewDocument:
		in.Omitted = l.last - DocumentIterations
		if err = l.baseline(ctx); err == nil { // with the one before, for the change of the quality
			err = l.tail(ctx, DocumentIterations+1)
		}
	default:
		if err = l.baseline(ctx); err == nil {
			in.Iterations, err = l.after(ctx, in.Iterations, l.last-OverviewIterations+1, from.Briefs)
		}
		if err == nil {
			err = l.tail(ctx, 2)
		}
	}
	if err != nil {
		return err
	}
	return l.history(ctx, view)
}

type loader struct {
	in   *Input
	from Source
	tree perdure.TreeID
	last int // the highest number
}

type lister func(ctx context.Context, tree perdure.TreeID, from, limit int) ([]record.Iteration, error)

// after adds the iterations from a number on; 0 is the baseline.
func (l *loader) after(ctx context.Context, to []record.Iteration, from int, list lister) ([]record.Iteration, error) {
	for {
		more, err := list(ctx, l.tree, from, pageSize)
		if to = append(to, more...); err != nil || len(more) < pageSize {
			return to, err
		}
		from = more[pageSize-1].Number + 1
	}
}

func (l *loader) baseline(ctx context.Context) (err error) {
	l.in.Iterations, err = l.from.Iterations(ctx, l.tree, 0, 1)
	// one that began elsewhere may have none
	l.in.Iterations = slices.DeleteFunc(l.in.Iterations, func(it record.Iteration) bool { return it.Number > 0 })
	return err
}

// tail takes the last n iterations whole.
func (l *loader) tail(ctx context.Context, n int) error {
	from := max(1, l.last-n+1)
	have := l.in.Iterations
	if at := slices.IndexFunc(have, func(it record.Iteration) bool { return it.Number >= from }); at >= 0 {
		have = have[:at]
	}
	var err error
	l.in.Iterations, err = l.after(ctx, have, from, l.from.Iterations)
	return err
}

// regressions reads the last iterations with regressions, or all.
func (l *loader) regressions(ctx context.Context, full bool) error {
	limit, below := maxEvents, l.last+1
	if full {
		limit = pageSize
	}
	for {
		more, err := l.from.Regressed(ctx, l.tree, below, limit)
		l.in.Iterations = append(l.in.Iterations, more...)
		if err != nil {
			return err
		}
		if !full || len(more) < pageSize {
			slices.Reverse(l.in.Iterations)
			return nil
		}
		below = more[pageSize-1].Number
	}
}

// history reads the sums over all iterations, and the single iterations that a view shows.
func (l *loader) history(ctx context.Context, view View) error {
	in := l.in
	var req record.HistoryRequest
	if cfg, err := config.Of(&in.Tree, &in.Loop); err == nil {
		req.Threshold = min(max(cfg.QualityThreshold, 0), 100)
	}
	req.Best = view == ViewRow
	if view == ViewQuality {
		req.Below = l.last - maxSpark + 1
		req.Each = share(req.Below - 1)
	}
	h, err := l.from.LoopHistory(ctx, l.tree, req)
	if err != nil {
		return err
	}
	in.History = &h
	single := []int{h.LastWarning, h.LastError, h.LastSealed}
	if standing, err := state.Read(in.Loop.State); err == nil && view == ViewDocument {
		single = append(single, standing.Selected)
	}
	if view != ViewDocument && view != ViewPersistence {
		return nil
	}
	slices.Sort(single)
	for _, n := range slices.Compact(single) {
		if n == 0 || slices.ContainsFunc(in.Iterations, func(it record.Iteration) bool { return it.Number == n }) {
			continue
		}
		one, err := l.from.Briefs(ctx, l.tree, n, 1)
		if err != nil {
			return err
		}
		in.Single = append(in.Single, one...)
	}
	return nil
}
