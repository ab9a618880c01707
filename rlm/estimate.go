package rlm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
)

// Estimate is what a run takes, before it begins: computed from its plan and from the
// requests of that plan. Requests that are sent again after a failure, corrections of replies
// that are not valid against a schema, and text that is divided because a model finds it too
// long come in addition. Nil means unknown, never 0.
type Estimate struct {
	// Planner is how the run is broken down, PlannerReason why it was chosen if the request
	// did not say; see [Config].
	Planner       string `json:"planner"`
	PlannerReason string `json:"planner_reason,omitempty"`
	// ContextTokens is the size of the context.
	ContextTokens int64 `json:"context_tokens"`
	// Parts is how many parts of the text are asked about, each by a task of its own; nil if the model
	// chooses what it reads. Tasks is the most tasks of the tree.
	Parts *int64 `json:"parts"`
	Tasks *int64 `json:"tasks"`
	// Calls is the most calls, LeastCalls the least. They are equal if the plan determines
	// the calls, and differ if they depend on the replies.
	Calls      *int64 `json:"calls"`
	LeastCalls int64  `json:"least_calls"`
	// InputTokens is the most tokens of the requests, LeastInputTokens that of the least
	// calls, both estimated from the bytes. OutputTokens is the most tokens of the replies:
	// the limit that is sent, for each.
	InputTokens      *int64 `json:"input_tokens"`
	LeastInputTokens int64  `json:"least_input_tokens"`
	OutputTokens     *int64 `json:"output_tokens"`
	// CostUSD is the price of all these tokens, LeastCostUSD that of the least input.
	CostUSD      *float64 `json:"cost_usd"`
	LeastCostUSD *float64 `json:"least_cost_usd"`
	// Seconds is how long Calls take with Concurrency at once, TimeBasis how that was
	// reckoned, or why it is unknown.
	Seconds     *float64 `json:"seconds"`
	TimeBasis   string   `json:"time_basis"`
	Concurrency int      `json:"concurrency"`
	// Budget is what the run reserves at most: budgets as large as this suffice.
	Budget Budget `json:"budget"`
	// Short are the budgets of the request that may not suffice.
	Short []ShortBudget `json:"short"`
	// Models are the models that are asked.
	Models []ModelEstimate `json:"models"`
}

// Budget is an amount of each budget; nil means unknown.
type Budget struct {
	Calls   *int64   `json:"calls"`
	Tokens  *int64   `json:"tokens"`
	CostUSD *float64 `json:"cost_usd"`
}

// ShortBudget is a budget that may end before the run does.
type ShortBudget struct {
	// Flag is the option that sets it.
	Flag string `json:"flag"`
	// Value is the budget, Needed what suffices.
	Value  float64 `json:"value"`
	Needed float64 `json:"needed"`
	// Unfit counts the parts of which the request alone is larger than the budget.
	Unfit int64 `json:"unfit_parts"`
}

// ModelEstimate is what one model takes of an estimate. See [Estimate].
type ModelEstimate struct {
	Model        string   `json:"model"`
	Calls        int64    `json:"calls"`
	LeastCalls   int64    `json:"least_calls"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
	// MeanSeconds is the mean time of the earlier calls to the model in this store that
	// the time is reckoned from; nil if there is none.
	MeanSeconds *float64 `json:"mean_seconds"`
}

// Estimate plans a run as [Executor.Launch] does and returns what it takes. It creates
// nothing, asks no model, and needs no keys. Errors are those of Launch.
func (e *Executor) Estimate(ctx context.Context, req LaunchRequest) (Estimate, error) {
	req, err := e.Further(ctx, req)
	if err != nil {
		return Estimate{}, err
	}
	p, err := e.newPlanning(&req, unsent{e.cfg.Resolver})
	if err != nil {
		return Estimate{}, err
	}
	var est Estimate
	err = p.plan(ctx, func(root *node) error {
		spec, err := p.rootSpec(root)
		if err != nil {
			return err
		}
		f, err := p.forecast(root, perdure.Task{ID: 1, Prompt: spec.Prompt, Context: spec.Context, Agent: spec.Agent,
			Merge: spec.Merge})
		if err != nil {
			return err
		}
		est, err = f.estimate(ctx)
		return err
	})
	return est, err
}

// unsent resolves models that are asked nothing.
type unsent struct{ Resolver }

// Resolve finds a model, also without its key.
func (u unsent) Resolve(name string, opt ModelOptions) (model.Model, error) {
	opt.Unsent = true
	return u.Resolver.Resolve(name, opt)
}

// forecast prepares an estimate of what the root's plan comes to.
func (p *planning) forecast(root *node, task perdure.Task) (*forecast, error) {
	r := &run{cfg: p.cfg, indexing: make(chan struct{}, 1), root: task, plan: root, team: p.team, reader: p.reader}
	var err error
	if r.shape, err = p.cfg.shape(); err != nil {
		return nil, err
	}
	r.agents, r.unavailable = resolveAgents(p.resolver, &p.cfg)
	return &forecast{e: p.e, run: r, last: task.ID, uses: make(map[string]*use),
		sections: make(map[[2]int]int)}, nil
}

// estimate walks through the plan and sums up.
func (f *forecast) estimate(ctx context.Context) (Estimate, error) {
	root := f.attempt(f.run.root, f.run.plan)
	r, err := f.visit(ctx, root)
	if err != nil {
		return Estimate{}, err
	}
	cfg := &f.run.cfg
	e := Estimate{Planner: f.planner(), PlannerReason: cfg.PlannerReason, Short: []ShortBudget{},
		Concurrency: cmp.Or(cfg.Concurrency, f.e.cfg.Concurrency, 1)}
	if f.run.reader != nil {
		e.ContextTokens = f.run.reader.Manifest().Tokens()
	}
	if err := f.addModels(ctx, &e); err != nil {
		return Estimate{}, err
	}
	e.LeastCalls, e.LeastInputTokens = f.sum.leastCalls, f.sum.leastInput
	if f.priced() {
		e.LeastCostUSD = dollars(f.sum.leastMicros)
	}
	if f.unknown {
		f.addBounds(&e)
		return e, nil
	}
	e.Calls, e.InputTokens, e.OutputTokens = &f.sum.calls, &f.sum.input, &f.sum.output
	e.Tasks = &f.tasks
	if e.Planner != PlannerSearch {
		e.Parts = &f.parts
	}
	e.Budget = Budget{Calls: &f.sum.calls, Tokens: &f.sum.reserved}
	if f.priced() {
		e.CostUSD, e.Budget.CostUSD = dollars(f.sum.micros), dollars(f.sum.reservedMicros)
	}
	f.addTime(&e, r.chain)
	if e.Planner != PlannerSearch { // which keeps within its budget
		f.addShort(&e)
	}
	return e, nil
}

// planner names what the plan is.
func (f *forecast) planner() string {
	switch n := f.run.plan; {
	case n.Plans:
		return PlannerModel
	case n.Repl != nil:
		return PlannerRepl
	case n.Search > 0:
		return PlannerSearch
	case n.leaf() || n.Samples > 0:
		return PlannerNone
	}
	return PlannerSplit
}

func dollars(micros int64) *float64 { return new(float64(micros) / microsPerDollar) }

// priced reports whether all prices are known.
func (f *forecast) priced() bool {
	for _, u := range f.uses {
		if u.unpriced {
			return false
		}
	}
	return !f.unknown || len(f.uses) > 0
}

// addBounds adds the bounds of a run whose plan is not known: those of its budgets.
func (f *forecast) addBounds(e *Estimate) {
	cfg := &f.run.cfg
	if cfg.BudgetCalls > 0 {
		e.Calls = &cfg.BudgetCalls
	}
	if cfg.BudgetTokens > 0 {
		e.InputTokens, e.OutputTokens = &cfg.BudgetTokens, &cfg.BudgetTokens
	}
	if cfg.BudgetUSD > 0 {
		e.CostUSD = &cfg.BudgetUSD
	}
	e.TimeBasis = "the model chooses the tasks"
}

// timedCalls is how many earlier calls to a model give its mean time.
const timedCalls = 100

func (f *forecast) addModels(ctx context.Context, e *Estimate) error {
	e.Models = []ModelEstimate{}
	for _, name := range f.order {
		u := f.uses[name]
		m := ModelEstimate{Model: name, Calls: u.calls, LeastCalls: u.leastCalls, InputTokens: u.input,
			OutputTokens: u.output}
		if !u.unpriced {
			m.CostUSD = dollars(u.micros)
		}
		mean, known, err := f.e.cfg.Store.MeanCallTime(ctx, name, timedCalls)
		if err != nil {
			return err
		}
		if known {
			m.MeanSeconds = new(mean.Seconds())
		}
		e.Models = append(e.Models, m)
	}
	return nil
}

// addTime adds how long the calls take: those that may run at the same time at the
// concurrency of the run, chain ones one after another.
func (f *forecast) addTime(e *Estimate, chain int64) {
	var busy, longest float64
	for _, m := range e.Models {
		if m.Calls == 0 {
			continue
		}
		if m.MeanSeconds == nil {
			e.TimeBasis = "no earlier call to " + m.Model + " in this store"
			return
		}
		busy += float64(m.Calls) * *m.MeanSeconds
		longest = max(longest, *m.MeanSeconds)
	}
	one := float64(chain) * longest
	waves := math.Ceil(max(0, busy-one)/max(longest, 1e-9)/float64(e.Concurrency)) * longest
	e.Seconds = new(one + waves)
	e.TimeBasis = fmt.Sprintf("%s, %d at once, of %s each as earlier ones in this store",
		human.Count(f.sum.calls, "call"), e.Concurrency, human.Duration(time.Duration(longest*float64(time.Second))))
}

// addShort adds the budgets that may not suffice.
func (f *forecast) addShort(e *Estimate) {
	cfg := &f.run.cfg
	add := func(flag string, value float64, needed *float64, unfit func(amount) bool) {
		if value == 0 || needed == nil || value >= *needed {
			return
		}
		s := ShortBudget{Flag: flag, Value: value, Needed: *needed}
		for _, r := range f.reserved {
			if unfit(r) {
				s.Unfit++
			}
		}
		e.Short = append(e.Short, s)
	}
	add("--budget-calls", float64(cfg.BudgetCalls), new(float64(*e.Budget.Calls)), func(amount) bool { return false })
	add("--budget-tokens", float64(cfg.BudgetTokens), new(float64(*e.Budget.Tokens)),
		func(r amount) bool { return r.tokens > cfg.BudgetTokens })
	limit := cfg.limits().CostMicros
	add("--budget-usd", cfg.BudgetUSD, e.Budget.CostUSD, func(r amount) bool { return r.micros > limit })
}
