package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/fanout"
	"github.com/perdure/perdure/rlm/internal/plan"
)

const (
	// maxPlanTasks is the most sub-tasks of one plan, whatever the fan-out.
	maxPlanTasks = 200
	// listShare is the part of a window that the list of files may take in the
	// request for a plan, and previews of their beginnings as much again.
	listShare = 8
	// variableShare is how many tokens of a window make room for a byte of the
	// variables that the model receives: a sixteenth.
	variableShare = 4
	// maxPreviews and previewBytes bound these.
	maxPreviews  = 3
	previewBytes = 400
	// maxPlanPassages and planPassageBytes bound the passages that are shown instead
	// where the list of files does not fit.
	maxPlanPassages  = 20
	planPassageBytes = 1000
)

// plan asks the model how to break the task down, and does as it says: creates
// the first sub-tasks, or answers directly.
func (a *attempt) plan(ctx context.Context) error {
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return over
	}
	t, err := a.planLimits(timed)
	if err != nil {
		return a.interrupted(timed, err)
	}
	m := a.run.model(&a.l.Task)
	rules, err := a.planRules(m, t)
	if err != nil {
		return err
	}
	var p *plan.Plan
	req, err := a.planRequest(timed, rules, t)
	if err != nil {
		return a.interrupted(timed, err)
	}
	q := &question{m: m, req: req, what: "a plan", check: func(reply string) (problems []string) {
		p, problems = rules.Parse(reply)
		return problems
	}}
	if a.limits, err = encode("limits", t); err != nil {
		return err
	}
	data, calls, err := a.exchange(timed, q)
	a.limits = nil
	unusable, isUnusable := errors.AsType[*unusableError](err)
	switch {
	case isUnusable && rules.Direct == "":
		data.addNotes([]string{"answered without sub-tasks, because no plan was usable: " + strings.Join(unusable.problems,
			"; ")})
		return a.answer(ctx, calls, data.Notes)
	case isUnusable:
		return a.splitInstead(timed, fmt.Sprintf("%s, and %s", strings.Join(unusable.problems, "; "), rules.Direct))
	case err != nil:
		return a.interrupted(timed, err)
	case len(p.Tasks) == 0:
		return a.answer(ctx, calls, data.Notes)
	}
	a.e.cfg.Logger.Debug("task is planned", "task_id", a.l.Task.ID.String(), "strategy", p.Strategy, "children",
		len(p.Tasks))
	return a.follow(ctx, p, nil)
}

// planLimits returns the limits to state in the request for a plan: the recorded ones
// if this attempt was interrupted after the model had replied.
func (a *attempt) planLimits(ctx context.Context) (*plan.Limits, error) {
	if a.l.Fence() > 1 {
		calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
		if err != nil {
			return nil, err
		}
		for _, c := range calls {
			var j journaled
			if !a.l.Replays(c.Attempt) || c.State != perdure.CallCompleted || json.Unmarshal(c.Data, &j) != nil ||
				j.Limits == nil {
				continue
			}
			t := new(plan.Limits)
			if err := json.Unmarshal(j.Limits, t); err != nil {
				return nil, failf(KindPlan, "read call %q: %w", c.ID, err)
			}
			return t, nil
		}
	}
	progress, err := a.e.cfg.Store.Progress(ctx, a.l.Tree.ID)
	if err != nil {
		return nil, err
	}
	cfg, used := &a.run.cfg, progress.Usage
	t := &plan.Limits{
		Children: min(cfg.MaxChildren, maxPlanTasks), Deeper: a.node.Level+1 < *cfg.MaxDepth,
		Nodes: max(cfg.MaxNodes-progress.Total, 0), Window: cfg.windowOf(a.run.models[1]), Agents: a.run.agentNames(),
	}
	t.Tokens = plan.Left(cfg.BudgetTokens, used.InputTokens+used.OutputTokens)
	t.Calls = plan.Left(cfg.BudgetCalls, used.Calls)
	t.Dollars = plan.Left(cfg.BudgetUSD, used.CostUSD)
	ref := a.l.Var()
	ref.Session = cfg.Session
	t.Variables, err = plan.Visible(cfg.Variables, t.Window/variableShare, func(name string) (string, []byte, error) {
		v, err := a.e.cfg.Store.Var(ctx, ref, name)
		if errors.Is(err, perdure.ErrNotFound) {
			return "", nil, nil
		}
		return string(v.Type), v.Value, err
	})
	return t, err
}

// planRules is what a plan of this task has to keep to.
func (a *attempt) planRules(m *asked, t *plan.Limits) (*plan.Rules, error) {
	shape, err := a.e.planShape()
	if err != nil {
		return nil, err
	}
	cfg := &a.run.cfg
	r := &plan.Rules{
		Shape: shape, Strategy: string(cfg.Strategy), Merge: cfg.Merge, Merges: planMerges(cfg), Agents: t.Agents,
		DefaultMerge: cfg.defaultMerge(),
		Children:     t.Children, Nodes: t.Nodes, Deeper: t.Deeper,
	}
	p := a.planning()
	for _, f := range p.files(a.reads()) {
		r.Files = append(r.Files, f.Name)
	}
	window := t.Window
	for _, name := range t.Agents {
		if agent := a.run.agents[name]; agent != nil {
			window = min(window, cfg.windowOf(agent))
		}
	}
	r.PromptTokens = window - cfg.answerOf(window) - window/earlierShare - minRoomTokens
	direct, err := p.roomOf(m, false)
	switch {
	case err != nil:
		r.Direct = err.Error()
	case p.tokensOf(a.reads()) > direct.text:
		r.Direct = fmt.Sprintf("the context has about %d tokens, of which one reply can read %d", p.tokensOf(a.reads()),
			direct.text)
	}
	return r, nil
}

// planMerges are the merges that a plan may choose.
func planMerges(cfg *Config) []string {
	names := []string{MergeUnion, MergeConcatenate, MergeSummarize, MergeVote}
	if cfg.Merge != "" && !slices.Contains(names, cfg.Merge) {
		names = append(names, cfg.Merge)
	}
	return names
}

// planRequest asks for a plan.
func (a *attempt) planRequest(ctx context.Context, r *plan.Rules, t *plan.Limits) (*model.Request, error) {
	req := &model.Request{System: a.system(), Temperature: a.temperature(), Seed: a.run.cfg.Seed, Prompt: a.prompt(),
		Schema: r.Shape.JSON()}
	req.System = strings.TrimSpace(req.System + "\n\n" + r.Instruction(t))
	described, err := a.describeContext(ctx)
	req.Prompt += described
	return req, err
}

// planning is what a launch would know of this task, to see what fits.
func (a *attempt) planning() *planning {
	return &planning{e: a.e, cfg: a.run.cfg, team: a.run.team, reader: a.run.reader, resolver: a.e.cfg.Resolver,
		req: &LaunchRequest{Prompt: a.prompt()}}
}

// files are the files of ranges of the context that hold text.
func (p *planning) files(read chunks) []pack.File {
	if p.reader == nil {
		return nil
	}
	var out []pack.File
	for _, f := range p.reader.Manifest().Files {
		overlaps := func(c fanout.Chunk) bool { return f.Offset < c.End() && c.Off < f.End() }
		if f.Length > 0 && slices.ContainsFunc(read, overlaps) {
			out = append(out, f)
		}
	}
	return out
}

// tokensOf estimates the tokens of ranges of the context as a model reads them.
func (p *planning) tokensOf(read chunks) int64 {
	var bytes int64
	for _, f := range p.files(read) {
		bytes += int64(len(f.Name)) + documentBytes
	}
	for _, c := range read {
		bytes += c.Length
	}
	return model.EstimateTokens(int(bytes))
}
