package perdure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestModel does random operations on a store and on a model of it, through two
// Stores on one database as two processes have them. Groups of operations are
// made in one transaction. Everything returned has to be equal at once, and
// everything stored now and then. PERDURE_MODEL_OPS sets how many operations,
// PERDURE_MODEL_SEED repeats a run.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := envNumber(t, "PERDURE_MODEL_SEED", int(rand.Uint32()))
	for database, most := range map[string]int{"sqlite": 2000, "postgres": 1000} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			ops := envNumber(t, "PERDURE_MODEL_OPS", effort.Of(most, 20_000))
			for done, i := 0, 0; done < ops; i++ {
				src := &randomSource{rand: rand.New(rand.NewPCG(uint64(seed), uint64(i))), left: min(250, ops-done)}
				done += src.left
				name := fmt.Sprintf("seed %d sequence %d", seed, i)
				if i == 0 {
					t.Log(name)
				}
				runModel(t, database, name, src)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// FuzzStore is TestModel with the fuzzer's choices.
func FuzzStore(f *testing.F) {
	for i := range uint64(8) {
		r := rand.New(rand.NewPCG(i, i))
		b := make([]byte, 400)
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { runModel(t, "sqlite", "fuzzed", &byteSource{b: b}) })
}

func envNumber(t testing.TB, name string, byDefault int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" || value == "0" {
		return byDefault
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, not a number", name, value)
	}
	return n
}

// source makes the choices of a run.
type source interface {
	// pick returns a number from 0 to n-1.
	pick(n int) int
	// more reports whether there is another step.
	more() bool
}

type randomSource struct {
	rand *rand.Rand
	left int
}

func (s *randomSource) pick(n int) int { return s.rand.IntN(n) }

func (s *randomSource) more() bool {
	s.left--
	return s.left >= 0
}

type byteSource struct{ b []byte }

func (s *byteSource) more() bool { return len(s.b) > 0 }

func (s *byteSource) pick(n int) int {
	v := 0
	for limit := 1; limit < n && len(s.b) > 0; limit *= 256 {
		v, s.b = v<<8|int(s.b[0]), s.b[1:]
	}
	return v % n
}

// world is a store and its model.
type world struct {
	source
	t        testing.TB
	cfg      perdure.Config
	m        *model
	stores   []*perdure.Store
	at       int // the store of the next operation
	grouped  bool
	sessions []*session
	leases   []*lease
	events   []perdure.Event
	history  []string
}

type session struct {
	ss    *perdure.Session
	m     *mSession
	store int
}

type lease struct {
	*perdure.Lease
	m *mLease
	s *session
}

func (l *lease) op(what string, run func(context.Context) string, want func() string) *op {
	return &op{name: fmt.Sprintf("%s: %s (fence %d)", what, l.Task.ID, l.Fence()), run: run, want: want}
}

func runModel(t *testing.T, database, name string, src source) {
	t.Helper()
	// The renewals of sessions would come between operations whose order in the
	// writer's queue the model knows, and a slow machine must not let leases run
	// out that the model holds for good.
	cfg := perdure.Config{Dir: t.TempDir(), LeaseTTL: time.Hour}
	if database == "postgres" {
		cfg.DSN = testdb.PostgresStore(t)
	}
	w := &world{source: src, t: t, cfg: cfg, m: newModel()}
	ctx := t.Context()
	for range 2 {
		s, err := perdure.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.stores = append(w.stores, s)
	}
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("panic: %v", v)
		}
		if t.Failed() {
			t.Errorf("%s; its last operations:\n%s", name, strings.Join(w.history[max(0, len(w.history)-60):], "\n"))
		}
		for _, s := range w.stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 3 {
		w.at = w.pick(2)
		w.do(ctx, w.openSession())
	}
	for step := 1; src.more() && !t.Failed(); step++ {
		w.step(ctx)
		if step%60 == 0 && !t.Failed() {
			w.verify(ctx)
		}
	}
	if !t.Failed() {
		w.verify(ctx)
	}
}

func (w *world) step(ctx context.Context) {
	w.at = w.pick(2)
	w.grouped = w.pick(3) == 0
	defer func() { w.grouped = false }()
	if !w.grouped {
		w.do(ctx, w.build(append(groupable(), single()...)))
		return
	}
	var ops []*op
	for range 2 + w.pick(8) {
		if o := w.build(groupable()); o != nil {
			ops = append(ops, o)
		}
	}
	w.group(ctx, ops)
}

// build makes one of the operations, nil when none of a few tries was possible.
func (w *world) build(builders []builder) *op {
	for range 5 {
		if o := builders[w.pick(len(builders))](w); o != nil {
			return o
		}
	}
	return nil
}

func (w *world) do(ctx context.Context, o *op) {
	if o == nil {
		return
	}
	w.judge(o, o.run(ctx))
}

func (w *world) judge(o *op, got string) {
	w.t.Helper()
	w.history = append(w.history, o.name+" -> "+got)
	if want := o.want(); short(got) != short(want) {
		w.t.Errorf("%s:\n%s, want\n%s", o.name, short(got), short(want))
	}
}

func short(s string) string {
	if len(s) > 300 {
		return fmt.Sprint(s[:300], "… of ", len(s))
	}
	return s
}

// group makes the operations in one transaction, in their order.
func (w *world) group(ctx context.Context, ops []*op) {
	s := w.store()
	release := perdure.HoldWriter(ctx, s)
	results := make([]chan string, len(ops))
	for i, o := range ops {
		results[i] = make(chan string, 1)
		go func() { results[i] <- o.run(ctx) }()
		awaitQueue(s, i+1)
	}
	w.history = append(w.history, fmt.Sprintf("%d together:", len(ops)))
	if err := release(); err != nil {
		w.t.Error(err)
	}
	for i, o := range ops {
		w.judge(o, <-results[i])
	}
}

func (w *world) store() *perdure.Store { return w.stores[w.at] }

// session picks a living session of the current store.
func (w *world) session() *session {
	var own []*session
	for _, s := range w.sessions {
		if s.store == w.at {
			own = append(own, s)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return own[w.pick(len(own))]
}

// lease picks one of the current store's leases, mostly one that is held.
func (w *world) lease() *lease {
	var held, stale []*lease
	for _, l := range w.leases {
		switch {
		case l.s.store != w.at:
		case w.m.held(l.m):
			held = append(held, l)
		default:
			stale = append(stale, l)
		}
	}
	if len(stale) > 0 && w.pick(12) == 0 {
		return stale[len(stale)-1-w.pick(min(10, len(stale)))]
	}
	if len(held) == 0 {
		return nil
	}
	return held[w.pick(len(held))]
}

// calling picks a lease with a call under way.
func (w *world) calling() *lease {
	var found []*lease
	for _, l := range w.leases {
		open := func(c *mCall) bool { return c.state == perdure.CallStarted }
		if l.s.store == w.at && w.m.held(l.m) && slices.ContainsFunc(l.m.task.calls, open) {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[w.pick(len(found))]
}

// task picks a task, now and then one that is gone or never was.
func (w *world) task() (perdure.TaskID, bool) {
	if n := len(w.m.gone); n > 0 && w.pick(30) == 0 {
		return w.m.gone[w.pick(n)], true
	}
	var ids, open []perdure.TaskID
	for id, t := range w.m.tasks {
		ids = append(ids, id)
		if !t.state.Terminal() {
			open = append(open, id)
		}
	}
	if len(open) > 0 && w.pick(6) > 0 {
		ids = open
	}
	if len(ids) == 0 {
		return 0, false
	}
	slices.Sort(ids)
	if w.pick(60) == 0 {
		return ids[len(ids)-1] + 1000, true
	}
	return ids[w.pick(len(ids))], true
}

func (w *world) failed() (perdure.TaskID, bool) {
	var ids []perdure.TaskID
	for id, t := range w.m.tasks {
		if t.state == perdure.Failed {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return 0, false
	}
	slices.Sort(ids)
	return ids[w.pick(len(ids))], true
}

// bury marks sessions dead.
func (w *world) bury(dead func(*session) bool) {
	w.sessions = slices.DeleteFunc(w.sessions, func(s *session) bool {
		if dead(s) {
			s.m.dead = true
		}
		return s.m.dead
	})
}

// follow reads the events behind the last one seen and wants no gap.
func (w *world) follow(ctx context.Context) {
	for {
		var after int64
		if n := len(w.events); n > 0 {
			after = w.events[n-1].Seq
		}
		page, err := w.store().Events(ctx, perdure.EventFilter{After: after, Limit: 1 + w.pick(1000)})
		if err != nil {
			w.t.Error(err)
		}
		if len(page) == 0 {
			return
		}
		for i, e := range page {
			if e.Seq != after+int64(i)+1 {
				w.t.Errorf("event %d follows %d", e.Seq, after+int64(i))
			}
		}
		w.events = append(w.events, page...)
	}
}

// replay tells the states of trees and tasks from the events alone.
func (w *world) replay() (map[perdure.TaskID]perdure.State, map[perdure.TreeID]perdure.State) {
	tasks, trees := make(map[perdure.TaskID]perdure.State), make(map[perdure.TreeID]perdure.State)
	for _, e := range w.events {
		switch e.Kind {
		case perdure.EventTaskCreated, perdure.EventTaskQueued, perdure.EventTaskReleased, perdure.EventTaskRetried:
			tasks[e.Task] = perdure.Queued
			if trees[e.Tree].Terminal() {
				trees[e.Tree] = perdure.Running // the task was retried
			}
		case perdure.EventTaskStarted:
			tasks[e.Task] = perdure.Running
			trees[e.Tree] = perdure.Running
		case perdure.EventTaskWaiting:
			tasks[e.Task] = perdure.Waiting
		case perdure.EventTaskCompleted:
			tasks[e.Task] = perdure.Completed
		case perdure.EventTaskFailed:
			tasks[e.Task] = perdure.Failed
		case perdure.EventTaskCancelled:
			tasks[e.Task] = perdure.Cancelled
		case perdure.EventTreeCreated:
			trees[e.Tree] = perdure.Queued
		case perdure.EventTreeCompleted, perdure.EventTreeFailed, perdure.EventTreeCancelled:
			trees[e.Tree] = endOf(&e)
		default:
		}
	}
	return tasks, trees
}

// verify compares everything.
func (w *world) verify(ctx context.Context) {
	w.t.Helper()
	w.at = w.pick(2)
	problems, err := w.store().Check(ctx)
	if err != nil || len(problems) > 0 {
		w.t.Errorf("check: %v %v", problems, err)
	}
	w.follow(ctx)
	tasks, trees := w.replay()
	w.verifyTrees(ctx, trees)
	for id, t := range w.m.tasks {
		if tasks[id] != t.state {
			w.t.Errorf("by its events %s is %s, want %s", id, tasks[id], t.state)
		}
		w.verifyTask(ctx, t)
	}
	for _, id := range w.m.gone[max(0, len(w.m.gone)-3):] {
		if _, err := w.store().Task(ctx, id); perdure.CodeOf(err) != perdure.CodeNotFound {
			w.t.Errorf("removed task %s: %v", id, err)
		}
	}
	w.verifyLost(ctx)
}

func (w *world) verifyTrees(ctx context.Context, replayed map[perdure.TreeID]perdure.State) {
	var want, got []perdure.TreeID
	for _, t := range slices.Backward(w.m.trees) {
		want = append(want, t.id)
		w.verifyTree(ctx, t)
		if replayed[t.id] != t.state {
			w.t.Errorf("by its events %s is %s, want %s", t.id, replayed[t.id], t.state)
		}
	}
	for before := perdure.TreeID(""); ; before = got[len(got)-1] {
		page, err := w.store().Trees(ctx, perdure.TreeFilter{Before: before, Limit: 3})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, t := range page {
			got = append(got, t.ID)
		}
		if len(page) < 3 {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("trees: -want +got\n%s", diff)
	}
}

func (w *world) verifyTree(ctx context.Context, t *mTree) {
	p, err := w.store().Progress(ctx, t.id)
	if err != nil {
		w.t.Fatal(err)
	}
	want := perdure.Progress{Tree: t.id, State: t.state, Partial: t.state == perdure.Partial, Total: t.total,
		Usage: perdure.Usage{Calls: t.calls,
			InputTokens: t.input, OutputTokens: t.output, CachedTokens: t.cached, CostUSD: float64(t.cost) / 1e6,
			UnpricedCalls: t.unpriced, UncertainCalls: t.uncertain,
			UncertainTokens: t.lostTokens, UncertainCostUSD: float64(t.lostCost) / 1e6}}
	for _, task := range w.m.tasks {
		if task.tree != t {
			continue
		}
		switch task.state {
		case perdure.Queued:
			want.Queued++
		case perdure.Running:
			if task.session.dead {
				want.Queued++
			} else {
				want.Running++
			}
		case perdure.Waiting:
			want.Waiting++
		case perdure.Completed:
			want.Completed++
		case perdure.Failed:
			want.Failed++
		case perdure.Cancelled:
			want.Cancelled++
		}
	}
	got := perdure.Progress{Tree: p.Tree, State: p.State, Partial: p.Partial, Total: p.Total, Usage: p.Usage,
		Queued:  p.Queued,
		Running: p.Running, Waiting: p.Waiting, Completed: p.Completed, Failed: p.Failed, Cancelled: p.Cancelled}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("progress of %s: -want +got\n%s", t.id, diff)
	}
}

// seen is a task as both sides show it.
type seen struct {
	Task     perdure.Task
	Ready    bool
	Children string
	Calls    []string
}

func (w *world) verifyTask(ctx context.Context, m *mTask) {
	s := w.store()
	t, err := s.Task(ctx, m.id)
	if err != nil {
		w.t.Fatal(err)
	}
	children, err := s.Tasks(ctx, perdure.TaskFilter{Tree: m.tree.id, Parent: &m.id, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	calls, err := s.Calls(ctx, m.id)
	if err != nil {
		w.t.Fatal(err)
	}
	got := seen{Task: perdure.Task{ID: t.ID, Tree: t.Tree, Parent: t.Parent, Depth: t.Depth, Position: t.Position,
		Prompt:   t.Prompt,
		Priority: t.Priority, State: t.State, Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Pending: t.Pending,
		Partial: t.Partial, WaitsFor: t.WaitsFor, Result: t.Result, Data: t.Data, Error: t.Error, Output: t.Output,
		Usage: t.Usage},
		Ready: !t.ReadyAt.IsZero()}
	if t.Lease != nil {
		got.Task.Lease = &perdure.LeaseInfo{Session: t.Lease.Session, Fence: t.Lease.Fence, Lost: t.Lease.Lost}
	}
	for _, c := range children {
		got.Children += " " + c.ID.String()
	}
	for _, c := range calls {
		got.Calls = append(got.Calls, fmt.Sprint(c.ID, " ", c.Attempt, " ", c.Position, " ", c.State, " ", c.RequestHash,
			" ", c.Response))
	}
	if diff := cmp.Diff(m.seen(), got); diff != "" {
		w.t.Errorf("%s: -want +got\n%s", m.id, short(diff))
	}
}

func (t *mTask) seen() seen {
	s := seen{Task: perdure.Task{ID: t.id, Tree: t.tree.id, Depth: t.depth, Position: t.position, Prompt: t.spec.Prompt,
		Priority: t.spec.Priority, State: t.state, Attempts: t.attempt, MaxAttempts: t.max, Pending: t.pending(),
		Partial: t.partial, Result: t.result, Error: t.err, Output: t.text, Usage: t.usage}, Ready: t.ready}
	s.Task.Usage.CostUSD /= 1e6
	if t.data != "" {
		s.Task.Data = json.RawMessage(t.data)
	}
	if t.parent != nil {
		s.Task.Parent = t.parent.id
	}
	if t.waitsFor != nil {
		s.Task.WaitsFor = t.waitsFor.id
	}
	if t.session != nil {
		s.Task.Lease = &perdure.LeaseInfo{Session: t.session.id, Fence: t.fence, Lost: t.session.dead}
	}
	for _, c := range t.children {
		s.Children += " " + c.id.String()
	}
	calls := slices.Clone(t.calls)
	slices.SortStableFunc(calls, func(a, b *mCall) int {
		return slices.Compare([]int{a.attempt, a.position}, []int{b.attempt, b.position})
	})
	for _, c := range calls {
		s.Calls = append(s.Calls, fmt.Sprint(perdure.CallID(c.id), " ", c.attempt, " ", c.position, " ", c.state, " ",
			c.hash, " ", c.response))
	}
	return s
}

func (w *world) verifyLost(ctx context.Context) {
	for _, s := range w.sessions {
		var all []*perdure.Lease
		var want, got []string
		for _, l := range w.leases {
			if l.s != s {
				continue
			}
			all = append(all, l.Lease)
			if !w.m.held(l.m) {
				want = append(want, fmt.Sprint(l.Task.ID, l.Fence()))
			}
		}
		lost, err := s.ss.Lost(ctx, all)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, l := range lost {
			got = append(got, fmt.Sprint(l.Task.ID, l.Fence()))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("lost leases of %s: -want +got\n%s", s.m.id, diff)
		}
	}
}
