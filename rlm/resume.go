package rlm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// Changes are what a tree has instead of its configuration when it is resumed. Nil fields
// stay as they are. Limits are those of the whole tree: what was used counts, 0 removes the
// limit. Timeout counts anew.
type Changes struct {
	BudgetUSD    *float64  `json:"budget_usd,omitempty"`
	BudgetTokens *int64    `json:"budget_tokens,omitempty"`
	BudgetCalls  *int64    `json:"budget_calls,omitempty"`
	Timeout      *Duration `json:"timeout,omitempty"`
	// MaxNodes is the most tasks of the tree, existing ones included; 0 is DefaultMaxNodes.
	MaxNodes *int64 `json:"max_nodes,omitempty"`
	// Model answers the requests that are made from now on. It replaces SubModel too if
	// that was the same model and is not given.
	Model    *string `json:"model,omitempty"`
	SubModel *string `json:"sub_model,omitempty"`
	BaseURL  *string `json:"base_url,omitempty"`
	// SubModels replaces sub-models by name, and adds others.
	SubModels map[string]string `json:"sub_models,omitempty"`
	// MaxAttempts is how often each missing part is tried.
	MaxAttempts *int `json:"max_attempts,omitempty"`
	// SearchReplies is how often the model of a search is asked at most.
	SearchReplies *int `json:"search_replies,omitempty"`
	// AnswerTokens is the longest answer, see [Config]: answers that were cut are asked for again.
	AnswerTokens *int `json:"answer_tokens,omitempty"`
	// ContextWindow is how many tokens the models read and write at once, of a run with planner repl.
	ContextWindow *int `json:"context_window,omitempty"`
	// Params and Headers are added to those of the tree, which they replace by name.
	Params  Fields `json:"params,omitempty"`
	Headers Fields `json:"headers,omitempty"`
	// Patience and MaxWait are those of [Config].
	Patience *Duration `json:"patience,omitempty"`
	MaxWait  *Duration `json:"max_wait,omitempty"`
}

// IsExecuted reports whether tasks of a tree are executed here: it is neither an imported record nor a
// loop, which has a command of its own to go on.
func IsExecuted(t *perdure.Tree) bool {
	return t.Kind != perdure.KindRecord && t.Kind != perdure.KindLoop
}

// CanResume reports whether [Executor.Resume] finds something to do in a tree.
func CanResume(t *perdure.Tree) bool {
	return IsExecuted(t) && t.State != perdure.Completed && t.State != perdure.Cancelled
}

// ResumeRequest asks to continue a tree.
type ResumeRequest struct {
	Tree perdure.TreeID
	// Changes is a [Changes] as JSON; empty changes nothing.
	Changes json.RawMessage
	// Owner, when set, is the only session that runs the tree while it lives.
	Owner *perdure.Session
}

// Resume prepares a tree to continue. If it ended as partial or failed, or if there are
// changes, its missing parts are taken up: parts that failed, were cancelled, or whose
// result is incomplete are done again, and what was merged without them is merged again.
// Parts that finished are not asked again, and neither are requests that were answered
// for a part that then ran out of budget, out of time or lost its model.
//
// What cannot work is refused before anything changes: an unknown model, a price that is
// unknown, and limits that do not pay for a single call. Resume of a tree that completed
// or was cancelled does nothing. A worker executes the tree, as after [Executor.Launch].
func (e *Executor) Resume(ctx context.Context, req ResumeRequest) (perdure.RecoverReport, error) {
	var report perdure.RecoverReport
	changes, err := parseChanges(req.Changes)
	if err != nil {
		return report, err
	}
	tree, err := e.cfg.Store.Tree(ctx, req.Tree)
	if err != nil {
		return report, err
	}
	ended := tree.State == perdure.Partial || tree.State == perdure.Failed
	if !ended && (tree.State.Terminal() || changes.isEmpty()) {
		return e.cfg.Store.Recover(ctx, tree.ID, req.Owner)
	}
	before, err := ParseConfig(tree.Config)
	if err != nil {
		return report, err
	}
	cfg, err := changes.apply(before)
	if err != nil {
		return report, err
	}
	if err := e.checkLength(ctx, &tree, changes); err != nil {
		return report, err
	}
	if err := e.checkResume(ctx, &tree, &cfg); err != nil {
		return report, err
	}
	spec := perdure.ReopenSpec{Owner: req.Owner, Attempts: cfg.MaxAttempts, Limits: new(cfg.limits())}
	if spec.Config, err = encode("configuration", cfg); err != nil {
		return report, err
	}
	if spec.Changes, err = encode("changes", changes); err != nil {
		return report, err
	}
	return e.cfg.Store.Reopen(ctx, tree.ID, spec)
}

func parseChanges(raw json.RawMessage) (*Changes, error) {
	c := new(Changes)
	if len(raw) == 0 {
		return c, nil
	}
	if err := jsontree.Decode(raw, c, jsontree.Options{}); err != nil {
		hint := "`perdure resume --help` lists what can be changed"
		if e, ok := errors.AsType[*jsontree.Error](err); ok {
			hint = cmp.Or(e.Hint, hint)
		}
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: opResume, Msg: "read changes: " + err.Error(), Hint: hint}
	}
	return c, nil
}

const opResume = "resume tree"

// apply returns the configuration with the changes.
func (c *Changes) apply(cfg Config) (Config, error) {
	if c.Model != nil && c.SubModel == nil && cfg.SubModel == cfg.Model {
		cfg.SubModel = *c.Model
	}
	set(&cfg.Model, c.Model)
	set(&cfg.SubModel, c.SubModel)
	set(&cfg.BaseURL, c.BaseURL)
	if len(c.SubModels) > 0 {
		named := maps.Clone(c.SubModels)
		for name := range cfg.SubModels {
			named[name] = cmp.Or(named[name], cfg.SubModels[name])
			delete(cfg.Agents, name) // made of it again
		}
		cfg.SubModels = named
	}
	set(&cfg.BudgetUSD, c.BudgetUSD)
	set(&cfg.BudgetTokens, c.BudgetTokens)
	set(&cfg.BudgetCalls, c.BudgetCalls)
	set(&cfg.Timeout, c.Timeout)
	set(&cfg.MaxNodes, c.MaxNodes)
	set(&cfg.MaxAttempts, c.MaxAttempts)
	set(&cfg.SearchReplies, c.SearchReplies)
	set(&cfg.AnswerTokens, c.AnswerTokens)
	if c.ContextWindow != nil && cfg.Planner != PlannerRepl {
		return cfg, &perdure.Error{Code: perdure.CodeInvalid, Op: opResume,
			Msg:  "context_window: the parts of the tree were made for the window that it has",
			Hint: "leave out --context-window, or start again with `perdure run`"}
	}
	set(&cfg.ContextWindow, c.ContextWindow)
	cfg.Params, cfg.Headers = c.Params.Over(cfg.Params), c.Headers.Over(cfg.Headers)
	if c.Patience != nil {
		cfg.Patience = c.Patience
	}
	if c.MaxWait != nil {
		cfg.MaxWait = c.MaxWait
	}
	raw, err := encode("configuration", cfg)
	if err != nil {
		return cfg, err
	}
	return ParseConfig(raw)
}

// isEmpty reports whether nothing is changed.
func (c *Changes) isEmpty() bool {
	rest := *c
	rest.SubModels = nil
	return len(c.SubModels) == 0 && reflect.DeepEqual(rest, Changes{})
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// checkLength refuses to resume a tree whose conversation is longer than its model reads, if nothing
// would change.
func (e *Executor) checkLength(ctx context.Context, tree *perdure.Tree, c *Changes) error {
	if tree.State != perdure.Partial || c.Model != nil || c.BaseURL != nil || c.ContextWindow != nil {
		return nil
	}
	root, err := e.cfg.Store.Task(ctx, tree.Root)
	if err != nil {
		return err
	}
	if d, err := dataOf(&root); err != nil || !d.TooLong {
		return err
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: opResume,
		Msg: fmt.Sprintf("nothing would change: the conversation of tree %q is longer than its model reads", tree.ID),
		Hint: fmt.Sprintf("`perdure resume %s --model M` continues with a model that reads more; if this one does now, "+
			"--context-window N says how much; `perdure ask %[1]s \"…\"` asks anew about the same variables", tree.ID)}
}

// checkResume refuses what cannot work.
func (e *Executor) checkResume(ctx context.Context, tree *perdure.Tree, cfg *Config) error {
	root, err := e.cfg.Store.Task(ctx, tree.Root)
	if err != nil {
		return err
	}
	n, err := nodeOf(&root)
	if err != nil {
		return err
	}
	p := &planning{e: e, cfg: *cfg, req: &LaunchRequest{Prompt: root.Prompt}, resolver: e.cfg.Resolver}
	if p.team, err = findTeam(e.cfg.Resolver, cfg); err != nil {
		return err
	}
	if err := p.checkPrice(); err != nil {
		return err
	}
	return p.checkRest(ctx, tree.ID, n)
}

// checkRest refuses limits of which nothing is left for a missing part, with the
// arithmetic.
func (p *planning) checkRest(ctx context.Context, id perdure.TreeID, root *node) error {
	missing, least, err := p.missingParts(ctx, id)
	if err != nil || missing == 0 {
		return err
	}
	progress, err := p.e.cfg.Store.Progress(ctx, id)
	if err != nil {
		return err
	}
	u, limits := progress.Usage, p.cfg.limits()
	refuse := func(field, flag, used, limit, need, raise string) error {
		return &perdure.Error{Code: perdure.CodeBudgetExceeded, Op: opResume,
			Msg: fmt.Sprintf("%s: %s of %s are used, and %s for the smallest of %d missing parts", field, used, limit, need,
				missing),
			Hint: fmt.Sprintf("use --%s, at least %s", flag, raise)}
	}
	if limits.Calls > 0 && u.Calls+1 > limits.Calls {
		return refuse("budget_calls", "budget-calls", fmt.Sprint(u.Calls), fmt.Sprintf("%d calls", limits.Calls),
			"1 is needed", fmt.Sprintf("%d for all", u.Calls+int64(missing)))
	}
	m := p.models[1]
	if m.ranked {
		return nil
	}
	request := p.leastRequest(root, least)
	need := request.InputTokens + request.OutputTokens
	used := u.InputTokens + u.OutputTokens + u.UncertainTokens
	if limits.Tokens > 0 && used+need > limits.Tokens {
		return refuse("budget_tokens", "budget-tokens", fmt.Sprint(used), fmt.Sprintf("%d tokens", limits.Tokens),
			fmt.Sprintf("up to %d are needed", need), fmt.Sprint(used+need))
	}
	spent := micros(u.CostUSD + u.UncertainCostUSD)
	if cost, known := p.e.price(m, request); known && limits.CostMicros > 0 && spent+cost > limits.CostMicros {
		return refuse("budget_usd", "budget-usd", usd(spent), usd(limits.CostMicros),
			"up to "+usd(cost)+" are needed", usd(spent + cost)[1:])
	}
	return nil
}

// missingParts counts the tasks without children, and searches, that have no result, and returns the
// bytes of the smallest text of one.
func (p *planning) missingParts(ctx context.Context, id perdure.TreeID) (count int, least int64, err error) {
	const page = 1000
	f := perdure.TaskFilter{Tree: id, Limit: page, Brief: true,
		States: []perdure.State{perdure.Failed, perdure.Cancelled}}
	least = -1
	for {
		tasks, err := p.e.cfg.Store.Tasks(ctx, f)
		if err != nil {
			return 0, 0, err
		}
		for i := range tasks {
			n, err := nodeOf(&tasks[i])
			if err != nil {
				return 0, 0, err
			}
			if !n.leaf() && n.Search == 0 {
				continue
			}
			count++
			size := tasks[i].Context.Length
			if n.Search > 0 { // a request may show little of it
				size = 0
			}
			if least < 0 || size < least {
				least = size
			}
		}
		if len(tasks) < page {
			return count, max(least, 0), nil
		}
		f.After = tasks[len(tasks)-1].ID
	}
}
