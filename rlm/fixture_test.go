package rlm_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
	"github.com/perdure/perdure/worker"
)

func TestMain(m *testing.M) {
	guard.Enter()
	rlm.EnterEngine()
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// models resolves names from a map; "builtin:extract" is always there.
type models map[string]model.Model

func (m models) Resolve(name string, _ rlm.ModelOptions) (model.Model, error) {
	if name == extract.Name {
		return extract.New(extract.Config{}), nil
	}
	if found, ok := m[name]; ok {
		return found, nil
	}
	return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find model", Msg: "there is no model " + name}
}

// script returns a model that plays a YAML script.
func script(t *testing.T, text string) *mock.Model {
	t.Helper()
	s, err := mock.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return mock.New(s)
}

// echo answers each request with its hash: different for each part.
func echo(t *testing.T) *mock.Model { return script(t, "replies: [{text: '{{hash}}', repeat: -1}]") }

// bench is a store with an executor.
type bench struct {
	*testing.T
	dir    string
	store  *perdure.Store
	exec   *rlm.Executor
	here   func(*perdure.Lease) // does the work of a child; nil: worker, the one of work, does
	worker *worker.Worker
	models models
	// stopping returns a context that ends when the worker is stopping; nil: never.
	stopping func() context.Context
}

func newBench(t *testing.T, m models) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir(), models: m}
	testdb.Seed(t, b.dir)
	b.open()
	t.Cleanup(func() { b.close() })
	return b
}

func (b *bench) open() {
	b.Helper()
	s, err := perdure.Open(b.Context(), perdure.Config{Dir: b.dir})
	b.ok(err)
	b.store = s
	b.exec, err = rlm.New(rlm.ExecutorConfig{Store: s, Resolver: b.models, Do: b.do,
		Stopping: func() context.Context {
			if b.stopping != nil {
				return b.stopping()
			}
			return b.Context()
		}})
	b.ok(err)
	b.exec.SharePython(sharedPython())
}

// sharedPython is the engine of all benches.
var sharedPython = sync.OnceValue(func() *python.Engine { return new(python.Engine) })

func (b *bench) do(l, child *perdure.Lease) {
	if b.here != nil {
		b.here(child)
	} else {
		b.worker.Do(l, child)
	}
}

func (b *bench) close() {
	b.Helper()
	b.ok(b.exec.Close())
	b.ok(b.store.Close())
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// file is a file of a context.
type file struct{ name, text string }

// put stores a context and returns its ID.
func (b *bench) put(files ...file) string {
	b.Helper()
	return b.putSkipping(func(*pack.Builder) {}, files...)
}

// putSkipping is put for a context of which files were left out.
func (b *bench) putSkipping(skip func(*pack.Builder), files ...file) string {
	b.Helper()
	var data bytes.Buffer
	builder := pack.NewBuilder(&data, pack.Limits{})
	skip(builder)
	for _, f := range files {
		b.ok(builder.Add(f.name, strings.NewReader(f.text)))
	}
	m, err := builder.Manifest()
	b.ok(err)
	raw, err := m.Encode()
	b.ok(err)
	spec := perdure.ContextSpec{Files: int64(len(files)), Bytes: m.Bytes, Tokens: m.Tokens()}
	spec.Pack, err = b.store.PutBlob(b.Context(), &data)
	b.ok(err)
	spec.Manifest, err = b.store.PutBlob(b.Context(), bytes.NewReader(raw))
	b.ok(err)
	c, err := b.store.PutContext(b.Context(), spec)
	b.ok(err)
	return c.ID
}

// numbered is a text of n lines, each different, of 40 bytes.
func numbered(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "line %06d of a text without any meaning\n", i+1)
	}
	return s.String()
}

func (b *bench) tryLaunch(prompt, contextID string, config any) (perdure.Tree, error) {
	b.Helper()
	raw, err := json.Marshal(config)
	b.ok(err)
	return b.exec.Launch(b.Context(), rlm.LaunchRequest{Prompt: prompt, ContextID: contextID, Config: plainMerge(raw)})
}

// plainMerge sets merge to "merge", which asks no model, in a configuration that does not have it: most
// tests are not about merges. An empty one stays, for the default.
func plainMerge(raw []byte) []byte {
	var c map[string]json.RawMessage
	if json.Unmarshal(raw, &c) != nil || string(c["planner"]) == `"model"` || c == nil {
		return raw
	}
	for _, field := range []string{"merge", "batch", "samples"} {
		if _, there := c[field]; there {
			return raw
		}
	}
	c["merge"] = json.RawMessage(`"merge"`)
	changed, err := json.Marshal(c)
	if err != nil {
		return raw
	}
	return changed
}

func (b *bench) launch(prompt, contextID string, config any) perdure.Tree {
	b.Helper()
	tree, err := b.tryLaunch(prompt, contextID, config)
	b.ok(err)
	return tree
}

// work runs a worker until the returned function is called.
func (b *bench) work(concurrency int) (stop func()) {
	b.Helper()
	session, err := b.store.OpenSession(b.Context(), "test")
	b.ok(err)
	w, err := worker.New(worker.Config{Store: b.store, Session: session, Concurrency: concurrency, DrainTimeout: -1,
		Handlers: map[string]worker.Handler{rlm.KindRun: b.exec}})
	b.ok(err)
	b.worker = w
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			b.ok(<-done)
			b.ok(session.Close(context.WithoutCancel(ctx)))
		})
	}
}

// finish works until the tree is terminal and returns it with its root.
func (b *bench) finish(id perdure.TreeID, concurrency int) (perdure.Tree, perdure.Task) {
	b.Helper()
	stop := b.work(concurrency)
	defer stop()
	tree := b.wait(id)
	root, err := b.store.Task(b.Context(), tree.Root)
	b.ok(err)
	return tree, root
}

func (b *bench) wait(id perdure.TreeID) perdure.Tree {
	b.Helper()
	for {
		changed := b.store.Changed()
		tree, err := b.store.Tree(b.Context(), id)
		b.ok(err)
		if tree.State.Terminal() {
			return tree
		}
		<-changed
	}
}

func (b *bench) tasks(id perdure.TreeID) []perdure.Task {
	b.Helper()
	var all []perdure.Task
	f := perdure.TaskFilter{Tree: id, Limit: 1000}
	for {
		got, err := b.store.Tasks(b.Context(), f)
		b.ok(err)
		all = append(all, got...)
		if len(got) < f.Limit {
			return all
		}
		f.After = got[len(got)-1].ID
	}
}

// leaves are the tasks below which there is nothing, in the order of the text.
func (b *bench) leaves(id perdure.TreeID) []perdure.Task {
	b.Helper()
	all := b.tasks(id)
	parents := make(map[perdure.TaskID]bool)
	for _, t := range all {
		parents[t.Parent] = true
	}
	var out []perdure.Task
	for _, t := range all {
		if !parents[t.ID] {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(x, y perdure.Task) int { return cmp.Compare(x.Context.Offset, y.Context.Offset) })
	return out
}

func (b *bench) usage(id perdure.TreeID) perdure.Usage {
	b.Helper()
	p, err := b.store.Progress(b.Context(), id)
	b.ok(err)
	return p.Usage
}

func data(t *testing.T, task *perdure.Task) rlm.Data {
	t.Helper()
	var d rlm.Data
	if err := json.Unmarshal(task.Data, &d); err != nil {
		t.Fatalf("data %q of task %q: %v", task.Data, task.ID, err)
	}
	return d
}

// M is a configuration in a test.
type M = map[string]any
