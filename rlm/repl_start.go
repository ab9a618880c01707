package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
	"github.com/perdure/perdure/rlm/internal/repl/engine/starlark"
	"github.com/perdure/perdure/rlm/internal/repl/lookup"
	"github.com/perdure/perdure/rlm/internal/repl/record"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

const (
	// maxParked is how many consoles of waiting tasks keep their engines. The others are started
	// again from their records.
	maxParked = 16
	// parkedFor is how long a console of a waiting task keeps its engine.
	parkedFor = 10 * time.Minute
	// shownFiles is how many files the first message lists, previewLength how much of the context
	// it shows.
	shownFiles    = 50
	previewLength = 500
)

// consoles are the consoles of tasks that wait for sub-calls. Its methods may be called from
// many goroutines.
type consoles struct {
	log *slog.Logger

	mu   sync.Mutex
	list []*parked // oldest first
}

// parked is the console of a task that waits, or is about to.
type parked struct {
	tree perdure.TreeID
	task perdure.TaskID
	// left is closed when the goroutine that parked the console does not use it any more. Its
	// task can be claimed before that.
	left  chan struct{}
	c     *console
	timer *time.Timer
}

func newConsoles(log *slog.Logger) *consoles { return &consoles{log: log} }

// park keeps a console for the next lease of its task. It is called before this lease ends; the
// caller then calls leave, or withdraw if the lease did not end.
func (p *consoles) park(l *perdure.Lease, c *console) *parked {
	c.fence = l.Fence()
	entry := &parked{tree: l.Tree.ID, task: l.Task.ID, c: c, left: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, entry)
	return entry
}

// leave hands a console over, and closes the one that waits longest if there are too many.
func (p *consoles) leave(entry *parked) {
	p.mu.Lock()
	entry.timer = time.AfterFunc(parkedFor, func() { p.drop(entry) })
	close(entry.left)
	var oldest *parked
	if len(p.list) > maxParked {
		oldest = p.list[0]
	}
	p.mu.Unlock()
	if oldest != nil {
		p.drop(oldest)
	}
}

// withdraw takes a console back.
func (p *consoles) withdraw(entry *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(o *parked) bool { return o == entry })
	entry.c = nil
	close(entry.left)
}

// take returns the console of a task, nil if there is none, or if another process had the task
// since.
func (p *consoles) take(l *perdure.Lease) *console {
	p.mu.Lock()
	at := slices.IndexFunc(p.list, func(o *parked) bool { return o.tree == l.Tree.ID && o.task == l.Task.ID })
	if at < 0 {
		p.mu.Unlock()
		return nil
	}
	entry := p.list[at]
	p.list = slices.Delete(p.list, at, at+1)
	p.mu.Unlock()
	<-entry.left
	if entry.timer != nil {
		entry.timer.Stop()
	}
	if entry.c == nil || entry.c.fence+1 == l.Fence() {
		return entry.c
	}
	p.end(entry)
	return nil
}

// drop closes a console that is parked and left.
func (p *consoles) drop(entry *parked) {
	p.mu.Lock()
	at := slices.Index(p.list, entry)
	if at >= 0 {
		select {
		case <-entry.left:
			p.list = slices.Delete(p.list, at, at+1)
		default:
			at = -1 // it is in use; its leave comes later
		}
	}
	p.mu.Unlock()
	if at >= 0 {
		entry.timer.Stop()
		p.end(entry)
	}
}

func (p *consoles) end(entry *parked) {
	if err := entry.c.close(); err != nil {
		p.log.Warn("close engine of REPL", "task_id", entry.task.String(), "error", err)
	}
}

// close closes all parked consoles, none of which is in use.
func (p *consoles) close() {
	p.mu.Lock()
	all := slices.Clone(p.list)
	p.mu.Unlock()
	for _, entry := range all {
		p.drop(entry)
	}
}

// takeConsole returns the console of the task: the one that waited for its sub-calls, or a new
// one, which begins with the first turn.
func (a *attempt) takeConsole(ctx context.Context) (*console, error) {
	if c := a.e.consoles.take(a.l); c != nil {
		a.setReader(c) // that of the earlier lease may be closed
		return c, nil
	}
	c, err := a.newConsole(ctx)
	if err != nil {
		return nil, err
	}
	confined := c.engine.Sandbox()
	err = a.l.AppendEvent(ctx, record.EventStarted, map[string]any{"engine": a.node.Repl.Engine,
		"sandbox": append([]string{}, confined.Layers...), "checks": append([]string{}, confined.Checks...)})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// newConsole starts a console.
func (a *attempt) newConsole(ctx context.Context) (*console, error) {
	c := &console{vars: make(map[string]engine.Var), versions: make(map[string]perdure.MutationID)}
	profile, ok := turn.Find(a.node.Repl.Profile)
	if !ok {
		return nil, failf(KindPlan, "profile %q of the REPL is not known to this version", a.node.Repl.Profile)
	}
	c.profile = profile
	contents, err := a.openContents(c)
	if err != nil {
		return nil, err
	}
	if err := a.describe(c, &contents); err != nil {
		return nil, err
	}
	c.engine, err = a.startEngine(ctx, contents)
	return c, a.engineFailure(err)
}

// startEngine starts the engine of a REPL, again if it was killed meanwhile.
func (a *attempt) startEngine(ctx context.Context, contents engine.Contents) (engine.Session, error) {
	s, err := a.tryEngine(ctx, contents)
	if e, ok := isEngine(err); ok && e.Kind == engine.KindKilled {
		s, err = a.tryEngine(ctx, contents)
	}
	return s, err
}

func (a *attempt) tryEngine(ctx context.Context, contents engine.Contents) (engine.Session, error) {
	hidden := append([]string{a.e.cfg.Store.Dir()}, a.e.cfg.Hidden...)
	profile, _ := turn.Find(a.node.Repl.Profile) // it was found before
	keep := profile.KeepsNames()
	switch name := a.node.Repl.Engine; name {
	case EnginePython:
		return a.e.python.Start(ctx, python.Config{Program: a.e.cfg.Python, Contents: contents,
			Tools: sortedNames(a.run.tools), Hidden: hidden, Unsandboxed: a.e.cfg.Unsandboxed, KeepNames: keep})
	case EngineStarlark:
		return starlark.Start(ctx, starlark.Config{Contents: contents, Tools: sortedNames(a.run.tools), Hidden: hidden,
			Unsandboxed: a.e.cfg.Unsandboxed, KeepNames: keep})
	default:
		return nil, failf(KindEngine, "engine %q of the REPL is not known to this version", name)
	}
}

// openContents opens the context of a REPL: that of the run, or the prompt of rlm_query.
func (a *attempt) openContents(c *console) (contents engine.Contents, err error) {
	if a.node.Call != nil {
		c.context, err = lookup.Text(a.l.Task.Prompt)
		contents.Text = &engine.File{Name: lookup.TextName, Bytes: int64(len(a.l.Task.Prompt)), Chars: -1}
		return contents, err
	}
	c.context = &lookup.Context{}
	a.setReader(c)
	if a.run.reader == nil {
		return contents, nil
	}
	files := a.run.reader.Manifest().Files
	list := make([]engine.File, len(files))
	for i, f := range files {
		list[i] = engine.File{Name: f.Name, Bytes: f.Length, Chars: -1}
	}
	if len(list) == 1 {
		contents.Text = &list[0]
	} else {
		contents.Files = list
	}
	return contents, nil
}

// setReader has the console read the context as this attempt has it open. The prompt of rlm_query
// is held by the console itself.
func (a *attempt) setReader(c *console) {
	if a.node.Call == nil {
		c.context.Reader, c.context.Find = a.run.reader, a.find
		if p, ok := turn.Find(a.node.Repl.Profile); ok {
			c.context.Columns = p.KeepsNames()
		}
	}
}

// describe makes the facts on the task and its context that the model reads.
func (a *attempt) describe(c *console, contents *engine.Contents) error {
	plan := a.node.Repl
	f := turn.Facts{Question: a.prompt(), System: a.system(), Language: "Python", Turns: plan.Turns,
		SubCallBytes: plan.SubCallBytes, Models: sortedNames(a.run.cfg.SubModels),
		Tools: a.run.describeTools(), Recursive: a.l.Task.Depth+1 < *a.run.cfg.MaxDepth}
	if plan.Engine == EngineStarlark {
		f.Language = "Starlark"
	}
	if a.node.Call != nil {
		f.Question = ""
	}
	if before := a.furthers(); before != nil {
		f.Question, f.Turns = before.Questions[0].Prompt, before.Questions[0].Turns
	}
	files := contents.Files
	switch {
	case contents.Text != nil:
		f.Kind, files = "string", []engine.File{*contents.Text}
	case files != nil:
		f.Kind = "dictionary"
	}
	for _, file := range files {
		f.Bytes += file.Bytes
		if len(f.Files) < shownFiles {
			f.Files = append(f.Files, turn.File{Name: file.Name, Bytes: file.Bytes})
		}
	}
	f.MoreFiles = len(files) - len(f.Files)
	if f.Kind == "string" && a.node.Call != nil {
		f.Files = nil
	}
	if f.Kind == "string" {
		preview, err := c.context.Preview(previewLength)
		if err != nil {
			return damaged(err)
		}
		f.Preview = preview
	}
	c.facts = f
	c.system, c.first = c.profile.System(&f), c.profile.First(&f)
	return nil
}

// budget is what is left of the run's limits, for the code; nil figures have no limit.
type budget struct {
	Calls    *int64   `json:"calls"`
	Tokens   *int64   `json:"tokens"`
	USD      *float64 `json:"usd"`
	Tasks    *int64   `json:"tasks"`
	Seconds  *float64 `json:"seconds"`
	Turns    int      `json:"turns"`
	Levels   int      `json:"levels"`
	CallsNow int64    `json:"calls_made"`
}

// tellBudget returns what is left of the limits: what the code received at this place before,
// or what it is now.
func (a *attempt) tellBudget(ctx context.Context, c *console) (json.RawMessage, error) {
	if raw, known := c.toldValue(0); known {
		return raw, nil
	}
	p, err := a.e.cfg.Store.Progress(ctx, a.l.Tree.ID)
	if err != nil {
		return nil, err
	}
	b := budget{Turns: a.node.Repl.Turns - c.number, Levels: max(*a.run.cfg.MaxDepth-a.l.Task.Depth-1, 0),
		CallsNow: p.Usage.Calls}
	for _, l := range p.Limits {
		left := max(l.Value-l.Used, 0)
		switch l.Limit {
		case "calls":
			b.Calls = &left
		case "tokens":
			b.Tokens = &left
		case "cost_micros":
			usd := float64(left) / microsPerDollar
			b.USD = &usd
		case "nodes":
			b.Tasks = &left
		}
	}
	if d := a.l.Tree.Deadline(); !d.IsZero() {
		s := math.Round(time.Until(d).Seconds())
		b.Seconds = &s
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode budget: %w", err)
	}
	return raw, c.tell(ctx, a, []record.Told{{Ordinal: c.ordinal, Value: raw}})
}
