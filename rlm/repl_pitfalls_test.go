package rlm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/rlm"
)

// pitfall is a run whose result a death of the process must not change. Each is a way in which code
// that is repeated can do something else; docs/pitfalls.md lists them by number.
type pitfall struct {
	number int
	name   string
	// answer is the reply to sub-calls, "ok" if it is empty, and code the replies of the root.
	answer string
	code   []string
	// want is the result, after so many calls.
	want  string
	calls int64
	// kills are the requests at which the process dies, negative ones after the answer.
	kills []int
	// python is set for code that is no Starlark.
	python bool
	check  func(b *bench, tree *perdure.Tree, root *perdure.Task)
}

// pitfalls of the values that the code computes.
func pitfallsOfValues() []pitfall {
	return []pitfall{
		{number: 1, name: "clock, random numbers, addresses and orders", code: []string{
			block("import random, time, uuid, os, datetime", "def f():", "    return 1",
				"for name in 'cab':", "    open(name, 'w').close()",
				"x = [random.random(), time.time(), uuid.uuid4(), {'b', 'a', 'c'}, f, object(), os.urandom(3), id(f), hash('a'), "+
					"datetime.datetime.now(), os.listdir('.')]", "print(x)",
				"r = llm_query('q ' + str(x))", "FINAL(llm_query('q ' + r + str(random.random()) + str(time.time())))")},
			want: "ok", calls: 3, kills: []int{2, -2, 3}, python: true},
		{number: 1, name: "functions and dictionaries as text", code: []string{
			block("def f():\n    return 1", "x = str(f) + str({'b': 1, 'a': 2})", "r = llm_query('q ' + x)",
				"FINAL(llm_query('q ' + r + x))")}, want: "ok", calls: 3, kills: []int{-2, 3}},
		{number: 2, name: "threads", code: []string{
			block("import threading", "said = []", "def f():", "    try:", "        said.append(llm_query('q'))",
				"    except RuntimeError as e:", "        said.append(str(e))",
				"t = threading.Thread(target=f)", "t.start()", "t.join()", "FINAL(said[0][:43] + llm_query('q'))")},
			want: "llm_query can only be called by the main thok", calls: 2, kills: []int{2}, python: true},
		{number: 6, name: "a budget in prompts", code: []string{
			block("a = llm_query('q ' + str(budget()['calls']))",
				"b = llm_query('q ' + str(budget()['calls']) + str(budget()['turns']))", "FINAL(a + b)")},
			want: "okok", calls: 3, kills: []int{2, -2, 3}},
		{number: 8, name: "arguments that change after the call", code: []string{
			block("p = ['q 1', 'q 2']", "r = llm_query_batched(p)", "p[0] = 'changed'", "p.append(llm_query('q 3'))",
				"FINAL(','.join(p))")}, want: "changed,q 2,ok", calls: 4, kills: []int{3, 4},
			check: func(b *bench, tree *perdure.Tree, _ *perdure.Task) {
				b.Helper()
				if got := b.tasks(tree.ID)[1].Prompt; got != "q 1" {
					b.Errorf("the prompt of the sub-call is %q", got)
				}
			}},
		{number: 13, name: "a long output", code: []string{
			block("print('x' * 100000)", "print(llm_query('q'))"), block("FINAL(llm_query('q again'))")},
			want: "ok", calls: 4, kills: []int{2, 3, 4},
			check: func(b *bench, tree *perdure.Tree, root *perdure.Task) {
				b.Helper()
				calls, err := b.store.Calls(b.Context(), tree.Root)
				b.ok(err)
				list, err := rlm.Turns(b.Context(), b.store, root, calls)
				b.ok(err)
				if k := list[0].Blocks[0]; k.OutputBytes != 100_004 || int64(len(k.Output)) != k.OutputBytes {
					b.Errorf("%d of %d bytes are recorded", len(k.Output), k.OutputBytes)
				}
				if in := list[1].InputTokens; in > 20_000 {
					b.Errorf("the next request has %d tokens", in)
				}
			}},
		{number: 15, name: "lone surrogates and NUL", code: []string{
			block("s = chr(0xd800) + chr(0) + chr(0xdfff)", "print(s)", "r = llm_query('q ' + s)",
				"FINAL(r + s + str(len(s)) + llm_query('q ' + s + r))")},
			want: "ok\uFFFD\uFFFD\uFFFD3ok", calls: 3, kills: []int{2, -2, 3}, python: true},
	}
}

// pitfalls of the course of a run.
func pitfallsOfTheCourse() []pitfall {
	return []pitfall{
		{number: 3, name: "the state after an exception", code: []string{
			block("kept = [1]", "kept.append(2)", "a = llm_query('q 1')", "1 // 0", "kept = 'lost'"),
			block("FINAL(str(kept) + a + llm_query('q 2'))")}, want: "[1, 2]okok", calls: 4, kills: []int{2, -2, 3, 4}},
		{number: 5, name: "the same prompt on purpose", answer: "ok {{n}}", code: []string{
			block("a = [llm_query('q') for i in range(3)]", "b = llm_query_batched(['q', 'q'])",
				"FINAL(len({x: 1 for x in a + b}))")}, want: "5", calls: 6, kills: []int{3, -3, 5, -6}},
		{number: 9, name: "a block whose engine ended", code: []string{
			block("x = 1"), block("x = 2", "y = llm_query('q 1')", "import os", "os._exit(1)"),
			block("FINAL(str(x) + llm_query('q 2'))")}, want: "1ok", calls: 5, kills: []int{4, -4, 5}, python: true},
		{number: 11, name: "a final answer before an exception", code: []string{
			block("FINAL('first')", "llm_query('q 1')", "1 // 0"), block("FINAL(llm_query('q 2'))")},
			want: "ok", calls: 4, kills: []int{2, -2, 4}},
		{number: 11, name: "a final answer before the engine ended", code: []string{
			block("FINAL('first')", "import os", "os._exit(1)"), block("FINAL(llm_query('q 2'))")},
			want: "ok", calls: 3, kills: []int{2, 3}, python: true},
		{number: 11, name: "a final answer twice", code: []string{
			block("FINAL('first')", "FINAL(llm_query('q 1'))")}, want: "first", calls: 2, kills: []int{2, -2}},
		{number: 12, name: "several blocks of a reply", code: []string{
			block("a = llm_query('q 1')") + "\n" + block("a += llm_query('q 2')") + "\n" +
				block("a += llm_query('q 3')", "FINAL(a)")}, want: "okokok", calls: 4, kills: []int{2, 3, 4, -4}},
		{number: 14, name: "functions with an effect", code: []string{
			block("m = cite('a.txt', 1, 1)", "r = llm_query('q')", "FINAL(m + cite('a.txt', 1, 1) + r)")},
			want: "[^1][^1]ok", calls: 2, kills: []int{2, -2},
			check: func(b *bench, _ *perdure.Tree, root *perdure.Task) {
				b.Helper()
				var d rlm.Data
				if err := json.Unmarshal(root.Data, &d); err != nil || len(d.Citations) != 1 {
					b.Errorf("there are %d citations, %v", len(d.Citations), err)
				}
			}},
		{number: 16, name: "what errors say", code: []string{
			block("x = lines('none', 1, 1)"), block("y = 1 // 0"), block("z = nothing"), block("FINAL(llm_query('q'))")},
			want: "ok", calls: 5, kills: []int{2, 3, 4, 5}},
	}
}

// TestReplPitfalls kills the process at requests of runs in both languages. The resumed run has
// the same answer and asks nothing twice, nothing differs from the records, and a replay does
// not either.
func TestReplPitfalls(t *testing.T) {
	t.Parallel()
	for _, p := range append(pitfallsOfValues(), pitfallsOfTheCourse()...) {
		engines := []string{rlm.EnginePython, rlm.EngineStarlark}
		if p.python {
			engines = engines[:1]
		}
		for _, engine := range engines {
			for _, at := range append([]int{0}, p.kills...) {
				t.Run(fmt.Sprintf("%d %s/%s at %d", p.number, p.name, engine, at), func(t *testing.T) {
					t.Parallel()
					p.run(t, engine, at)
				})
			}
		}
	}
}

// run runs the code, with a death at a request; 0: without one.
func (p *pitfall) run(t *testing.T, engine string, at int) {
	t.Helper()
	answer := p.answer
	if answer == "" {
		answer = "ok"
	}
	m := &mortal{Model: script(t, turns(fmt.Sprintf("- {match: '^q', repeat: -1, text: %q}\n", answer), p.code...))}
	b := newBench(t, models{"mock:m": m})
	config := replConfig("mock:m")
	config["repl_engine"], config["budget_calls"] = engine, 50
	tree := b.launch("What?", b.put(file{"a.txt", "one\n"}, file{"b.txt", "two\n"}), config)
	for !b.die(m, tree.ID, max(at, -at), at < 0) {
		b.close()
		b.open()
		at = 0
	}
	root, err := b.store.Task(t.Context(), tree.Root)
	b.ok(err)
	if root.State != perdure.Completed || root.Result != p.want {
		t.Errorf("the root is %s with %q, want %q; %+v", root.State, root.Result, p.want, root.Error)
	}
	if u := b.usage(tree.ID); u.Calls != p.calls+u.UncertainCalls {
		t.Errorf("%d calls, %d of them uncertain; want %d", u.Calls, u.UncertainCalls, p.calls)
	}
	if n := b.count(tree.ID, "repl.diverged") + b.count(tree.ID, perdure.EventCallDiverged); n != 0 {
		t.Errorf("%d divergences", n)
	}
	if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
		t.Errorf("replay: %+v, %v", r, err)
	}
	if p.check != nil {
		p.check(b, &tree, &root)
	}
}

// reversed is a model whose sub-calls are answered in the reverse order.
type reversed struct {
	*mock.Model
	next []chan struct{} // closed when the answer of the sub-call may go
}

func (m *reversed) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	number, isCall := strings.CutPrefix(req.Prompt, "q ")
	if !isCall {
		return m.Model.Generate(ctx, req)
	}
	i := int(number[0] - '0')
	select {
	case <-m.next[i]:
	case <-ctx.Done():
		return nil, model.Canceled(ctx)
	}
	if i > 0 {
		defer close(m.next[i-1])
	}
	resp, err := m.Model.Generate(ctx, req)
	if err == nil {
		resp.Text = "answer " + number
	}
	return resp, err
}

// Answers of a batch have the places of their prompts, whatever the order in which they come.
// Pitfall 2.
func TestBatchAnsweredInReverse(t *testing.T) {
	t.Parallel()
	m := &reversed{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok\"}\n",
		block("r = llm_query_batched(['q 0', 'q 1', 'q 2'])", "print(r)", "FINAL(', '.join(r))")))}
	for range 3 {
		m.next = append(m.next, make(chan struct{}))
	}
	close(m.next[2])
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	_, root := b.finish(tree.ID, 3)
	if root.Result != "answer 0, answer 1, answer 2" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
	if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
		t.Errorf("replay: %+v, %v", r, err)
	}
}

// The profile and the engine of a run are pinned: what this version does not know is refused with
// the kind of the error, and nothing is asked. Pitfall 7.
func TestPinnedProfile(t *testing.T) {
	t.Parallel()
	for old, kind := range map[string]string{"native-2026-12": rlm.KindPlan, `"engine":"python"`: rlm.KindEngine} {
		m := &mortal{Model: script(t, turns("", block("FINAL(1)")))}
		b := newBench(t, models{"mock:m": m})
		config := replConfig("mock:m")
		config["max_attempts"] = 1
		tree := b.launch("What?", "", config)
		b.change("UPDATE task SET metadata = REPLACE(metadata, '" + old + "', '" +
			strings.NewReplacer("native", "later", "python", "later").Replace(old) + "')")
		b.close()
		b.open()
		_, root := b.finish(tree.ID, 1)
		if e := root.Error; e == nil || e.Kind != kind || !strings.Contains(e.Message, "not known to this version") {
			t.Errorf("%s: %+v", old, root.Error)
		}
		if diff := cmp.Diff(perdure.Usage{}, b.usage(tree.ID)); diff != "" {
			t.Errorf("%s: %s", old, diff)
		}
	}
}

// held is a model that answers no prompt that begins with q until it is released.
type held struct {
	*mock.Model
	reached, released chan struct{}
}

func (m *held) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if strings.HasPrefix(req.Prompt, "q") {
		select {
		case <-m.released:
		default:
			close(m.reached)
			<-ctx.Done()
			return nil, model.Canceled(ctx)
		}
	}
	return m.Model.Generate(ctx, req)
}

// What a sub-call delivered counts, not what its task has later: the error that the code received
// is recorded, and another error in the store changes neither a run that goes on nor a replay.
// Pitfall 4.
func TestDeliveredError(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{rlm.EnginePython, rlm.EngineStarlark} {
		m := &held{script(t, turns("- {match: '^fail', repeat: -1, status: 400, message: refused}\n"+
			"- {match: '^q', repeat: -1, text: \"ok\"}\n",
			block("r = llm_query('fail')", "FINAL(r + llm_query('q'))"))),
			make(chan struct{}), make(chan struct{})}
		b := newBench(t, models{"mock:m": m})
		config := replConfig("mock:m")
		config["repl_engine"] = engine
		tree := b.launch("What?", "", config)
		stop := b.work(2)
		<-m.reached
		stop()
		close(m.released)
		b.change("UPDATE task_end SET error = 'another' WHERE error LIKE '%refused%'")
		b.close()
		b.open()
		_, root := b.finish(tree.ID, 2)
		if !strings.HasPrefix(root.Result, "Error: ") || !strings.HasSuffix(root.Result, "refusedok") {
			t.Errorf("the result is %q, %+v", root.Result, root.Error)
		}
		if failed := b.tasks(tree.ID)[1]; failed.Error == nil || failed.Error.Message != "another" {
			t.Errorf("the error in the store is %+v", failed.Error)
		}
		if n := b.count(tree.ID, "repl.diverged"); n != 0 {
			t.Errorf("%d divergences", n)
		}
		if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
			t.Errorf("replay: %+v, %v", r, err)
		}
	}
}
