package rlm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
)

// LaunchRequest asks for a run.
type LaunchRequest struct {
	// Kind is KindRun; empty means that.
	Kind string
	// Name is for people; may be empty.
	Name string
	// Prompt is what is asked. Required.
	Prompt string
	// ContextID names the stored context; empty when there is none.
	ContextID string
	// Ask, when set, is the tree to which Prompt is a further question: its context, variables and
	// configuration are taken over, and Config has what differs. See [Executor.Further].
	Ask perdure.TreeID
	// Vars are the variables with which the tree begins.
	Vars []perdure.VarSpec
	// Config is a [Config] as JSON; empty means all defaults.
	Config json.RawMessage
	// IdempotencyKey, when it was used before, makes Launch return the tree of
	// that time.
	IdempotencyKey string
	// Request is that of [perdure.TreeSpec].
	Request string
	// Owner, when set, is the only session that runs the tree while it lives.
	Owner *perdure.Session
}

// Launch checks a request, plans its tree and creates it. What cannot work is
// refused before anything exists: problems of the configuration (all at once),
// a model that is not known or has no key here, a context that cannot be split
// as asked or would make too many tasks. Errors are *perdure.Error values with
// hints; those of the store and of the resolver come as they are.
func (e *Executor) Launch(ctx context.Context, req LaunchRequest) (perdure.Tree, error) {
	req, err := e.Further(ctx, req)
	if err != nil {
		return perdure.Tree{}, err
	}
	p, err := e.newPlanning(&req, e.cfg.Resolver)
	if err != nil {
		return perdure.Tree{}, err
	}
	var spec *perdure.TreeSpec
	err = p.plan(ctx, func(root *node) (err error) {
		spec, err = p.treeSpec(root)
		return err
	})
	if err != nil {
		return perdure.Tree{}, err
	}
	return e.cfg.Store.CreateTree(ctx, *spec)
}

// newPlanning checks what can be checked of a request before its context is read.
func (e *Executor) newPlanning(req *LaunchRequest, res Resolver) (*planning, error) {
	if req.Kind != "" && req.Kind != KindRun {
		return nil, invalid(fmt.Sprintf("kind %q is not %q", req.Kind, KindRun), "")
	}
	cfg, err := ParseConfig(req.Config)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.Prompt) == "" {
		return nil, invalid("the prompt is empty", "say what is to be found or done")
	}
	cfg.useVersion2()
	p := &planning{e: e, cfg: cfg, req: req, resolver: res, mergeGiven: givesMerge(req.Config)}
	if p.team, err = findTeam(res, &cfg); err != nil {
		return nil, err
	}
	return p, cmp.Or(p.checkPrice(), p.checkExecInput())
}

// planning is what a launch finds out before it creates a tree.
type planning struct {
	team
	e      *Executor
	req    *LaunchRequest
	cfg    Config
	text   perdure.Context // zero without a context
	reader *pack.Reader
	head   int64 // bytes of the longest header that parts are shown with
	// resolver finds the models.
	resolver Resolver
	// mergeGiven is set if the request names a merge.
	mergeGiven bool
}

// givesMerge reports whether a configuration names a merge other than the plain one, which a search
// does not have.
func givesMerge(raw json.RawMessage) bool {
	var c struct {
		Merge string `json:"merge"`
	}
	return len(raw) > 0 && json.Unmarshal(raw, &c) == nil && c.Merge != "" && c.Merge != MergeUnion
}

// checkPrice refuses a budget in dollars for a model whose price is unknown: it
// could not be kept.
func (p *planning) checkPrice() error {
	if p.cfg.BudgetUSD == 0 {
		return nil
	}
	models := p.models[:]
	if p.judge != nil && p.judge.model != nil && !p.judge.program {
		models = append(models, p.judge.model)
	}
	if p.cfg.Planner == PlannerModel || p.cfg.Planner == PlannerRepl { // a plan, or code, may name any of them
		agents, _ := resolveAgents(p.resolver, &p.cfg)
		for _, name := range slices.Sorted(maps.Keys(agents)) {
			models = append(models, agents[name])
		}
	}
	for _, m := range append(models, p.escalate.models()...) {
		if _, known := p.e.price(m, model.Usage{InputTokens: 1}); !known {
			return invalid(fmt.Sprintf("budget_usd: the price of model %q is unknown", m.name),
				"add its price to the price file, or use --budget-tokens or --budget-calls")
		}
	}
	return nil
}

// plan plans the root and calls use while the context is open.
func (p *planning) plan(ctx context.Context, use func(root *node) error) (err error) {
	root := &node{Version: planVersion, Total: 1, Whole: true, Limited: true}
	if p.req.ContextID != "" {
		closer, err := p.openContext(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closer()) }()
		root.Manifest = p.text.Manifest
	} else if p.cfg.Batch {
		return invalid("batch: there are no files", "give the files to work on")
	}
	if err := p.decide(root); err != nil {
		return err
	}
	if f := p.cfg.Fork; f != nil {
		if _, err := p.e.loadOrigin(ctx, f); err != nil {
			return err
		}
	}
	if err := p.sample(root); err != nil {
		return err
	}
	if m := p.models[0]; p.reader == nil && m.ranked {
		return invalid(fmt.Sprintf("no context is given, and %s only quotes passages of one", m.name),
			"name files or folders with --context, or a model that writes text with --model")
	}
	if err := p.checkBudget(root); err != nil {
		return err
	}
	if err := p.checkGate(root); err != nil {
		return err
	}
	return use(root)
}

// treeSpec is the tree of a plan.
func (p *planning) treeSpec(root *node) (spec *perdure.TreeSpec, err error) {
	spec = &perdure.TreeSpec{Kind: KindRun, Name: p.req.Name, Limits: p.cfg.limits(), Owner: p.req.Owner,
		IdempotencyKey: p.req.IdempotencyKey, Request: p.req.Request, Vars: p.req.Vars}
	if p.reader != nil {
		spec.Contexts = []string{p.text.ID}
	}
	if spec.Config, err = encode("configuration", p.cfg); err != nil {
		return nil, err
	}
	if spec.Root, err = p.rootSpec(root); err != nil {
		return nil, err
	}
	f, err := p.forecast(root, perdure.Task{Prompt: spec.Root.Prompt, Context: spec.Root.Context,
		Agent: spec.Root.Agent, Merge: spec.Root.Merge})
	if err != nil {
		return nil, err
	}
	spec.Root.Work = f.attempt(f.run.root, root).plannedWork()
	return spec, nil
}

func (p *planning) openContext(ctx context.Context) (closer func() error, err error) {
	if p.text, err = p.e.cfg.Store.Context(ctx, p.req.ContextID); err != nil {
		return nil, err
	}
	r, c, err := p.e.openPack(ctx, p.text.Pack, p.text.Manifest)
	if err != nil {
		return nil, err
	}
	p.reader = r
	if m := r.Manifest(); m.Tokens() == 0 {
		why := "it has no files"
		if skipped := int64(len(m.Skipped)) + m.MoreSkipped; len(m.Files) > 0 {
			why = fmt.Sprintf("its %d files are empty", len(m.Files))
		} else if skipped > 0 {
			why = fmt.Sprintf("all %d files were left out, %q because: %s", skipped, m.Skipped[0].File, m.Skipped[0].Why)
		}
		return nil, errors.Join(invalid("the context contains no text: "+why, "pass files that contain text"), c.Close())
	}
	return c.Close, nil
}

// rootSpec is the record of the root task, which carries the whole plan.
func (p *planning) rootSpec(root *node) (perdure.TaskSpec, error) {
	raw, err := encode("plan", metadata{root})
	if err != nil {
		return perdure.TaskSpec{}, err
	}
	if len(raw) > perdure.MaxMetadataBytes {
		return perdure.TaskSpec{}, invalid(fmt.Sprintf("the plan of %d parts has %d bytes, the limit is %d",
			len(root.Chunks), len(raw), perdure.MaxMetadataBytes), "use larger parts (--chunk-tokens)")
	}
	spec := perdure.TaskSpec{
		Prompt: p.req.Prompt, MaxAttempts: p.cfg.MaxAttempts,
		Strategy: p.cfg.storeStrategy(), Policy: p.cfg.Policy, Merge: p.cfg.Merge, Metadata: raw, Agent: p.cfg.Agent,
	}
	if p.reader != nil {
		m := p.reader.Manifest()
		spec.Context = perdure.ContextRef{Type: "full", Source: p.text.ID, Length: m.Bytes, SizeTokens: m.Tokens(),
			Hash: p.text.Pack}
	}
	return spec, nil
}
