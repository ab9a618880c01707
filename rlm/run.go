package rlm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/index"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
)

// maxIdleRuns is how many idle trees stay loaded.
const maxIdleRuns = 8

// run is what all tasks of a tree share, loaded once: the configuration, the
// models and the open context.
type run struct {
	cfg  Config
	root perdure.Task
	plan *node // of the root
	// planned is the limit for answers with which the tree was launched.
	planned int64
	shape   *jsonreply.Shape // of the answer; nil without a schema
	team
	agents map[string]*asked // those with a model of their own
	// unavailable says why the model of an agent is not to be had here.
	unavailable map[string]error
	reader      *pack.Reader // nil without a context
	origin      *origin      // nil unless the run goes on from another tree
	blob        io.Closer
	faults      *model.Faults // of the run's models

	indexing chan struct{} // has a value while one task opens or builds the index
	index    *index.Index  // of the reader's text, when first needed

	notebooks notebooks

	mu      sync.Mutex       // guards the fields below
	tooLong map[string]int64 // by model, the tokens of the shortest request that it refused
	fits    map[string]int64 // by model, the tokens of a request that it reads
	retried int              // the last gate at which the user had the models be asked again
}

// asked is a model as this run asks it.
type asked struct {
	model.Model
	name string
	// ranked models find passages and score them: parts are merged by score.
	ranked bool
	// quiet models write no answer of a task: what they say is not shown while
	// it arrives.
	quiet bool
	// tool is the name of the tool that this is; empty for a model.
	tool string
	// again, when set, is called before a request is sent again. An error ends the call.
	again func(ctx context.Context) error
}

// model returns what answers for a task.
func (r *run) model(t *perdure.Task) *asked {
	if m := r.agents[t.Agent]; m != nil && t.Agent != r.cfg.Agent {
		return m
	}
	if t.Depth == 0 {
		return r.models[0]
	}
	return r.models[1]
}

// modelOptions is how the run wants to ask its models.
func (c *Config) modelOptions() ModelOptions {
	opt := ModelOptions{BaseURL: c.BaseURL, Timeout: c.CallTimeout, Concurrency: c.Concurrency, Cache: c.Cache,
		Params: c.Params, Headers: c.Headers, Patience: orNegative(c.Patience), MaxWait: orNegative(c.MaxWait)}
	if c.CallRetries != nil {
		opt.Tries = 1 + *c.CallRetries
	}
	return opt
}

// orNegative returns a duration as model.Guarded takes it: 0 if it is not set, negative if it is 0.
func orNegative(d *Duration) Duration {
	switch {
	case d == nil:
		return 0
	case *d == 0:
		return -1
	}
	return *d
}

// team are the models of a run.
type team struct {
	models   [2]*asked // of the root, and of the tasks below
	tools    map[string]*tool
	judge    *judge // nil when nothing is scored
	merger   *asked // the program that merges results; nil without one
	escalate escalation
}

// findTeam finds the models of a run.
func findTeam(res Resolver, cfg *Config) (t team, err error) {
	if t.models[0], err = resolveModel(res, cfg.Model, cfg.modelOptions()); err != nil {
		return t, err
	}
	t.models[1] = t.models[0]
	if cfg.SubModel != cfg.Model {
		if t.models[1], err = resolveModel(res, cfg.SubModel, cfg.modelOptions()); err != nil {
			return t, err
		}
	}
	for _, name := range sortedNames(cfg.SubModels) { // a missing key shows at the start
		if _, err := resolveModel(res, cfg.SubModels[name], cfg.modelOptions()); err != nil {
			return t, withTitle("sub-model "+name, err)
		}
	}
	if t.tools, err = findTools(res, cfg); err != nil {
		return t, err
	}
	if t.judge, err = findJudge(res, cfg); err != nil {
		return t, err
	}
	if name := cfg.MergeCommand(); name != "" {
		if t.merger, err = resolveModel(res, name, cfg.modelOptions()); err != nil {
			return t, err
		}
		t.merger.quiet = true
	}
	t.escalate, err = findEscalation(res, cfg)
	return t, err
}

// withTitle returns an error with what it is about.
func withTitle(what string, err error) error {
	return &perdure.Error{Code: perdure.CodeOf(err), Op: what, Msg: err.Error(), Hint: perdure.HintOf(err)}
}

func resolveModel(res Resolver, name string, opt ModelOptions) (*asked, error) {
	m, err := res.Resolve(name, opt)
	if err != nil {
		return nil, fmt.Errorf("find model %q: %w", name, err)
	}
	return &asked{Model: m, name: name, ranked: name == extract.Name}, nil
}

// Close closes the context.
func (r *run) Close() error {
	var err error
	if r.index != nil {
		err = r.index.Close()
	}
	if r.blob != nil {
		err = errors.Join(err, r.blob.Close())
	}
	return err
}

// load reads what the tasks of a tree share.
func (e *Executor) load(ctx context.Context, tree *perdure.Tree) (*run, error) {
	cfg, err := ParseConfig(tree.Config)
	if err != nil {
		return nil, &attemptError{kind: KindPlan, err: err}
	}
	r := &run{cfg: cfg, indexing: make(chan struct{}, 1), tooLong: make(map[string]int64), fits: make(map[string]int64),
		faults: new(model.Faults)}
	if r.shape, err = cfg.shape(); err != nil {
		return nil, &attemptError{kind: KindPlan, err: err}
	}
	if r.team, err = findTeam(e.cfg.Resolver, &cfg); err != nil {
		return nil, &attemptError{kind: KindUnavailable, retry: true, err: err}
	}
	r.agents, r.unavailable = resolveAgents(e.cfg.Resolver, &cfg)
	if r.root, err = e.cfg.Store.Task(ctx, tree.Root); err != nil {
		return nil, err
	}
	if r.plan, err = nodeOf(&r.root); err != nil {
		return nil, err
	}
	r.planned = r.plan.Answer
	if n := cfg.AnswerTokens; n > 0 { // a resumed tree can have another limit than its plan
		r.plan.Answer = int64(n)
	}
	if cfg.Fork != nil {
		if r.origin, err = e.originOf(ctx, cfg.Fork); err != nil {
			return nil, err
		}
	}
	if r.root.Context.Hash == "" {
		return r, nil
	}
	r.reader, r.blob, err = e.openPack(ctx, r.root.Context.Hash, r.plan.Manifest)
	return r, err
}

// openPack opens a context by the hashes of its pack and its manifest.
func (e *Executor) openPack(ctx context.Context, packHash, manifestHash string) (*pack.Reader, io.Closer, error) {
	m, err := e.readManifest(ctx, manifestHash)
	if err != nil {
		return nil, nil, err
	}
	b, err := e.cfg.Store.OpenBlob(ctx, packHash)
	if err != nil {
		return nil, nil, fmt.Errorf("open context: %w", err)
	}
	r, err := pack.NewReader(m, b)
	if err != nil {
		return nil, nil, errors.Join(damaged(err), b.Close())
	}
	return r, b, nil
}

func (e *Executor) readManifest(ctx context.Context, hash string) (*pack.Manifest, error) {
	b, err := e.cfg.Store.OpenBlob(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("open manifest: %w", err)
	}
	defer b.Close()
	if b.Size() > pack.MaxManifestBytes {
		return nil, damaged(fmt.Errorf("the manifest has %d bytes", b.Size()))
	}
	raw, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m, err := pack.Decode(raw)
	if err != nil {
		return nil, damaged(err)
	}
	return m, nil
}

// damaged is the error of a stored context that is not what was put there. The
// task fails with it: the store as such may be fine.
func damaged(err error) error {
	return &attemptError{kind: string(perdure.CodeDamaged),
		err: &perdure.Error{Code: perdure.CodeDamaged, Op: "open context",
			Err: err, Hint: "the stored context is not what was put there; start the run again"}}
}
