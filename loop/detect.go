package loop

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/verify/decider"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

const (
	maxFindings = 50 // that a record keeps
	maxUnseen   = 10 // files that a warning names
)

// ruledBy reads what counts as a regression.
func (r *run) ruledBy(ctx context.Context, out *state.Outcome, trusted workspace.ID) (*regression.Ruled, error) {
	if r.cfg.Plain {
		return &regression.Ruled{}, nil
	}
	marks, err := r.e.records.FalseAlarms(ctx, r.l.Tree.ID)
	if err != nil {
		return nil, err
	}
	by, warnings, err := regression.Read(ctx, r.files, trusted, &r.cfg, marks)
	out.Warnings = append(out.Warnings, warnings...)
	return by, refusal(err)
}

// warned names what only warns of the latest iteration that is kept.
func warned(last []record.Iteration) string {
	at := slices.IndexFunc(last, func(it record.Iteration) bool { return it.Status != record.IterationReverted })
	if at < 0 {
		return ""
	}
	o, _ := state.ReadOutcome(&last[at]) // one that cannot be read says nothing
	return regression.Warned(o.Findings) + survived(o.NewTests)
}

// look is what shows in a snapshot.
type look struct {
	// since is what changed since the trusted one.
	since *evidence.Between
	// by is what counts as a regression.
	by *regression.Ruled
	// found are the findings; nil when detection is off.
	found *detect.Report
	// deciders are the changed files that decide what the check runs.
	deciders *decider.Found
}

// look runs detection on a snapshot. Warnings go to out.
func (r *run) look(ctx context.Context, out *state.Outcome, id workspace.ID) (*look, error) {
	var l look
	var err error
	if l.since, err = r.sinceTrusted(ctx, id); err != nil {
		return nil, err
	}
	if l.by, err = r.ruledBy(ctx, out, l.since.From); err != nil {
		return nil, err
	}
	if l.deciders, err = r.deciders(ctx, &l); err != nil {
		return nil, err
	}
	l.found, err = r.detected(ctx, out, l.since, l.by)
	return &l, err
}

// detected looks for signs of regressions in the files that changed since the
// trusted snapshot: nil when detection is off, or when the change is too large, which
// is reported as a warning.
func (r *run) detected(ctx context.Context, out *state.Outcome, since *evidence.Between, by *regression.Ruled) (
	*detect.Report, error) {
	if r.cfg.Plain || r.cfg.Detection == config.DetectionOff {
		return nil, nil
	}
	report, err := evidence.Run(ctx, r.files, since, by.Input())
	if limit, ok := errors.AsType[*detect.LimitError](err); ok {
		out.Warnings = append(out.Warnings, "changed files not analysed: "+limit.Error())
		return nil, nil
	}
	if err != nil {
		return nil, refusal(err)
	}
	if unseen := evidence.Unseen(report, maxUnseen); unseen != "" {
		out.Warnings = append(out.Warnings, unseen)
	}
	by.Forget(report)
	return report, nil
}
