package rlm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// turns is a script whose model replies with code in turns, and answers sub-calls. Turn n is
// the reply to the message that announces it.
func turns(calls string, code ...string) string {
	var b strings.Builder
	b.WriteString("replies:\n" + calls)
	for i, c := range slices.Backward(code) {
		reply := strings.ReplaceAll(c, "'''", "```")
		fmt.Fprintf(&b, "- {match: 'Turn %d/', text: %q}\n", i+1, reply)
	}
	return b.String()
}

// block is a reply with code.
func block(lines ...string) string { return "'''repl\n" + strings.Join(lines, "\n") + "\n'''" }

// Runs of a REPL end with the answer that their code sets.
func TestReplRuns(t *testing.T) {
	t.Parallel()
	ok := "- {match: '^q', repeat: -1, text: \"ok\"}\n"
	for _, tt := range []struct {
		name, script, want string
		config             M
		note               string
	}{
		{"an answer", turns(ok, block("answer['content'] = llm_query('q')", "answer['ready'] "+
			"= True")), "ok", nil, ""},
		{"several blocks of a " +
			"reply", turns(ok, block("a = 1")+"\n"+block("b = a + 1", "FINAL(b)")+"\n"+block("FINAL(9)")),
			"2", nil, ""},
		{"a final of a block that " +
			"raised", turns(ok, block("x = 5", "FINAL('no')", "1/0"), block("FINAL(x)")), "5", nil, ""},
		{"text next to code is no " +
			"answer", turns(ok, block("x = 5")+"\nFINAL(invented)", "FINAL_VAR(x)"), "5", nil, ""},
		{"text alone is", turns(ok, block("x = 5"), "It is clear.\nFINAL(four (4))"), "four (4)", nil, ""},
		{"a name in text", turns(ok, block("x = 5"), "FINAL(x)"), "5", nil, "was read as FINAL_VAR"},
		{"a reply without anything", turns(ok, "I think.", block("FINAL('done')")), "done", nil, ""},
		{"turns run out", turns("- {match: 'The turns are over', text: \"FINAL(at last)\"}\n"+ok, block("x = 1"),
			block("x = 2")), "at last", M{"repl_turns": 2}, "after 2 turns"},
		{"replies without code", turns("- {match: 'The turns are over', text: \"FINAL(at last)\"}\n"+ok, block("x = 1"),
			"I think.", "So.", "Well.", "It is.", "It is."), "at last", nil, "after 5 replies in a row without new code"},
		{"the same code again", turns("- {match: 'The turns are over', text: \"FINAL(at last)\"}\n"+ok,
			slices.Repeat([]string{block("print(len(context))")}, 6)...), "at last", nil,
			"after 5 replies in a row without new code"},
		{"the same code that goes on", turns(ok, append(append([]string{block("n = 0")},
			slices.Repeat([]string{block("n += 1", "print('next')")}, 6)...), block("FINAL(n)"))...), "6", nil, ""},
		{"failed sub-calls", turns("- {match: '^q bad', repeat: -1, status: 400, message: no}\n"+ok,
			block("r = llm_query_batched(['q good', 'q bad', 'q fine'])", "FINAL([s[:6] for s in r])")),
			"['ok', 'Error:', 'ok']", nil, ""},
		{"a model that is not of the run", turns(ok, block("FINAL(llm_query('q', model='openai:other')[:24])")),
			"Error: model \"openai:oth", nil, ""},
		{"no prompts", turns(ok, block("FINAL(llm_query_batched([]))")), "[]", nil, ""},
		{"the tools", turns(ok, block("m = cite('a.txt', 2, 2)", "FINAL(lines('a.txt', 1, 1) + "+
			"str(len(files())) + m)")),
			"one2[^1]", nil, ""},
		{"what tools refuse", turns(ok, block("try:", "    lines('none', 1, 1)", "except RuntimeError as e:",
			"    FINAL(str(e))")), `lines: there is no file "none"`, nil, ""},
		{"the budget", turns(ok, block("b = budget()", "llm_query('q')", "FINAL((b['calls'], "+
			"budget()['calls'], b['turns']))")),
			"(9, 8, 29)", M{"budget_calls": 10}, ""},
		{"an engine that its code ended", turns(ok, block("x = 1"), block("x = 2", "import os", "os._exit(1)"),
			block("FINAL(x)")), "1", nil, ""},
		{"a call that failed in a block that was lost", turns("- {match: '^q', repeat: 1, status: 400, message: no}\n"+ok,
			block("llm_query('q')", "import os", "os._exit(1)"), block("FINAL(llm_query('q'))")), "ok", nil, ""},
		{"profile paper", turns(ok, block("x = 5"), "FINAL_VAR(x)"), "5", M{"repl_profile": "paper"}, ""},
		{"a schema", turns(ok, block("FINAL({'n': 3})")), `{"n":3}`, M{"schema": M{"type": "object",
			"required": []string{"n"}}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, m := endpoint(t, tt.script)
			b := newBench(t, m)
			config := replConfig("openai:m")
			for k, v := range tt.config {
				config[k] = v
			}
			config["max_attempts"] = 1
			tree := b.launch("What?", b.put(file{"a.txt", "one\ntwo\n"}, file{"b.txt", "three\n"}), config)
			got, root := b.finish(tree.ID, 2)
			if got.State != perdure.Completed || root.Result != tt.want {
				t.Fatalf("tree is %s with %q, want %q: %+v", got.State, root.Result, tt.want, root.Error)
			}
			notes := data(t, &root).Notes
			if tt.note != "" && !slices.ContainsFunc(notes,
				func(n string) bool { return strings.Contains(n, tt.note) }) {
				t.Errorf("notes %q", notes)
			}
			if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
				t.Errorf("replay: %+v, %v", r, err)
			}
		})
	}
}

// ended returns a context that has ended.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// A REPL asks for no further reply when the worker is stopping, and ends the code that runs: its
// task is queued, and goes on there in the next worker.
func TestReplOfAStoppingWorker(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{1, 2} { // when the code of the second reply begins, and before the third reply
		m := script(t, turns("", block("x = 5"), block("x += 1"), block("FINAL(x)")))
		b := newBench(t, models{"mock:m": m})
		var asked atomic.Int64
		b.stopping = func() context.Context {
			if m.Ledger().Totals().Finished == 2 && asked.Add(1) == at {
				return ended(t.Context())
			}
			return t.Context()
		}
		tree := b.launch("What?", "", replConfig("mock:m"))
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Completed || root.Result != "6" || root.Attempts != 1 {
			t.Errorf("tree is %s with %q in attempt %d: %+v", got.State, root.Result, root.Attempts, root.Error)
		}
		if n := b.count(tree.ID, perdure.EventTaskReleased); n != 1 {
			t.Errorf("the task was released %d times", n)
		}
		if n := b.count(tree.ID, "repl.started"); n != 3-int(at) {
			t.Errorf("%d engines were started", n)
		}
		if u := b.usage(tree.ID); u.Calls != 3 || u.UncertainCalls != 0 {
			t.Errorf("used %+v", u)
		}
	}
}

// Code that does not end by itself ends when the worker is stopping.
func TestEndlessCodeOfAStoppingWorker(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{rlm.EnginePython, rlm.EngineStarlark} {
		b := newBench(t, models{"mock:m": script(t, turns("", block("x = 5"),
			block("x += 1", "files()", "while True: pass")))})
		config := replConfig("mock:m")
		config["repl_engine"] = engine
		tree := b.launch("What?", b.put(file{"a.txt", "text"}), config)
		session, err := b.store.OpenSession(t.Context(), "test")
		b.ok(err)
		leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
		b.ok(err)
		worker, stop := context.WithCancel(t.Context())
		var asked atomic.Int64
		b.stopping = func() context.Context {
			if asked.Add(1) == 6 { // the code goes on after files()
				go stop()
			}
			return worker
		}
		b.ok(b.exec.Handle(t.Context(), leases[0]))
		root, err := b.store.Task(t.Context(), tree.Root)
		b.ok(err)
		if root.State != perdure.Queued || root.Attempts != 1 || asked.Load() != 6 {
			t.Errorf("%s: the task is %s in attempt %d after %d requests, %+v", engine, root.State, root.Attempts, asked.Load(),
				root.Error)
		}
		b.ok(session.Close(t.Context()))
	}
}

// The prompt of rlm_query is the context of a REPL of its own, down to the depth of the run.
func TestReplInARepl(t *testing.T) {
	t.Parallel()
	script := "replies:\n- {match: 'inner text[\\s\\S]*Turn 1/', " +
		"text: \"" + "```repl\\nFINAL(context.upper() + llm_query('plain'))\\n```\"}\n" +
		"- {match: '^plain', repeat: -1, text: \"!\"}\n" +
		"- {match: 'Which letters', text: \"" + "```repl\\nFINAL(rlm_query_batched(['inner text', 'inner " +
		"text 2']))\\n```\"}\n" +
		"- {match: '^inner text', repeat: -1, text: \"plain answer\"}\n"
	for depth, want := range map[int]string{3: "['INNER TEXT!', 'INNER TEXT 2!']", 1: "['plain answer', " +
		"'plain answer']"} {
		_, m := endpoint(t, strings.Replace(script, "text: \"```repl\\nFINAL(context", "repeat: -1, text: "+
			"\"```repl\\nFINAL(context", 1))
		b := newBench(t, m)
		config := replConfig("openai:m")
		config["max_depth"] = depth
		tree := b.launch("Which letters?", "", config)
		got, root := b.finish(tree.ID, 1) // a waiting REPL holds no slot
		if got.State != perdure.Completed || root.Result != want {
			t.Errorf("depth %d: tree is %s with %q: %+v", depth, got.State, root.Result, root.Error)
		}
	}
}

// What a REPL takes is not known before: an estimate says so.
func TestReplEstimate(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("", block("FINAL(1)")))
	b := newBench(t, m)
	raw, err := json.Marshal(replConfig("openai:m"))
	b.ok(err)
	e, err := b.exec.Estimate(t.Context(), rlm.LaunchRequest{Prompt: "What?", Config: raw})
	b.ok(err)
	if e.Planner != rlm.PlannerRepl || e.Calls != nil || e.LeastCalls != 2 {
		t.Errorf("estimate %+v", e)
	}
}

// A budget that ends within a batch makes the run partial, with the best answer so far; resumed
// with a larger one, it asks what is missing and nothing twice.
func TestReplWithinABudget(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct {
		name  string
		calls int64
		why   string
	}{{"budget_calls", 10, "10 of 10 calls used"}, {"max_nodes", 2, "llm_query_batched of 20 prompts: check limits: " +
		"task limit reached: 20 tasks requested, 9 of 10 left; --max-nodes 21 is enough"}} {
		server, m := endpoint(t, turns("- {match: '^q', repeat: -1, text: \"ok {{n}}\"}\n",
			block("answer['content'] = 'a guess'"),
			block("r = llm_query_batched([f'q {i}' for i in range(20)])", "print(len(r))"), block("FINAL(len(set(r)))")))
		b := newBench(t, m)
		config := replConfig("openai:m")
		config[limit.name] = 10
		tree := b.launch("What?", "", config)
		got, root := b.finish(tree.ID, 3)
		if got.State != perdure.Partial || root.Result != "a guess" || b.usage(tree.ID).Calls != limit.calls {
			t.Fatalf("%s: tree is %s with %q after %+v: %+v", limit.name, got.State, root.Result, b.usage(tree.ID),
				root.Error)
		}
		if notes := strings.Join(data(t, &root).Notes, "; "); !strings.Contains(notes, limit.why) {
			t.Errorf("%s: notes %q", limit.name, notes)
		}
		root = b.resumed(tree.ID, M{limit.name: 100})
		if root.Result != "20" {
			t.Errorf("%s: the result is %q, %+v", limit.name, root.Result, root.Error)
		}
		b.asks(server, tree.ID, 20+3)
	}
}

// A time limit that passes while a REPL waits for its sub-calls is a budget like any other, also
// for the process that takes the run up.
func TestReplWithinATimeLimit(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok {{n}}\"}\n",
		block("answer['content'] = 'a guess'"), block("x = 1"),
		block("r = llm_query_batched([f'q {i}' for i in range(20)])", "print(len(r))"), block("FINAL(len(set(r)))")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	if b.die(m, tree.ID, 8, true) { // in the batch
		t.Fatal("the tree ended")
	}
	b.close()
	b.open()
	b.ok(b.store.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree.ID)
		if err != nil {
			return err
		}
		return tx.SetLimits(ctx, key, perdure.Limits{WallTime: time.Microsecond})
	}))
	got, root := b.finish(tree.ID, 3)
	if got.State != perdure.Partial || root.Result != "a guess" || !strings.Contains(string(root.Data), "time limit") {
		t.Fatalf("tree is %s with %q: %+v, %s", got.State, root.Result, root.Error, root.Data)
	}
	root = b.resumed(tree.ID, M{"timeout": "1h"})
	if root.Result != "20" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
	if got := m.Ledger().Repeated(); len(got) != 0 {
		t.Errorf("asked again: %+v", got)
	}
}

// A partial run stays partial, with its best answer, if its next time limit passes before it is
// where it was: while it starts, while it repeats its turns, and after a reply without code.
func TestReplResumedWithAShortTimeLimit(t *testing.T) {
	t.Parallel()
	for want, first := range map[string]string{"a guess": block("answer['content'] = 'a guess'"),
		"(no answer: the budget ended before the code had set one)": "I think."} {
		_, m := endpoint(t, turns("", first, block("x = 2"), block("FINAL(x)")))
		b := newBench(t, m)
		config := replConfig("openai:m")
		config["budget_calls"] = 2
		tree := b.launch("What?", "", config)
		got, root := b.finish(tree.ID, 1)
		for _, limit := range []string{"1us", "50ms", "100ms", "150ms", "200ms"} {
			if got.State != perdure.Partial || root.Result != want {
				t.Fatalf("before limit %s the tree is %s with %q, %+v", limit, got.State, root.Result, root.Error)
			}
			_, err := b.resume(tree.ID, M{"timeout": limit})
			b.ok(err)
			got, root = b.finish(tree.ID, 1)
		}
		if got.State != perdure.Partial || root.Result != want {
			t.Errorf("the tree is %s with %q, %+v", got.State, root.Result, root.Error)
		}
		if root = b.resumed(tree.ID, M{"timeout": "1h", "budget_calls": 9}); root.Result != "2" {
			t.Errorf("the result is %q, %+v", root.Result, root.Error)
		}
	}
}

// A task whose work is cancelled while its only sub-call is to be tried again waits for it: it
// can neither end before it nor be tried again itself.
func TestSubCallTriedAgainAtTheEnd(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("- {match: '^q', repeat: -1, text: \"ok\"}\n", block("FINAL(llm_query('q'))")))
	b := newBench(t, m)
	tree := b.launch("What?", "", replConfig("openai:m"))
	session, err := b.store.OpenSession(t.Context(), "test")
	b.ok(err)
	leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
	b.ok(err)
	ctx, cancel := context.WithCancel(t.Context())
	b.here = func(child *perdure.Lease) {
		_, err := child.Fail(t.Context(), perdure.Failure{Kind: "test", Retry: true})
		b.ok(err)
		cancel()
	}
	b.ok(b.exec.Handle(ctx, leases[0]))
	if root, err := b.store.Task(t.Context(), tree.Root); err != nil || root.State != perdure.Waiting {
		t.Errorf("the task is %s, %v", root.State, err)
	}
	b.here = nil
	b.ok(session.Close(t.Context()))
	if _, root := b.finish(tree.ID, 1); root.Result != "ok" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
}

// A failed sub-call can be retried while its caller repeats its code: the caller waits for it, and
// the code receives what it did before.
func TestRetriedSubCall(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: script(t, turns("- {match: '^q', text: \"late\"}\n", block("r = llm_query('q')"),
		block("FINAL(r[:5])")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	b.here = func(child *perdure.Lease) {
		_, err := child.Fail(t.Context(), perdure.Failure{Kind: "test", Message: "no"})
		b.ok(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.left, m.kill = 2, cancel // at the request for the second reply
	for _, retry := range []bool{false, true} {
		session, err := b.store.OpenSession(t.Context(), "test")
		b.ok(err)
		leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
		b.ok(err)
		if retry {
			b.ok(b.store.RetryTask(t.Context(), tree.Root+1))
			b.ok(b.exec.Handle(t.Context(), leases[0]))
		} else if err := b.exec.Handle(ctx, leases[0]); err == nil {
			t.Fatal("the process did not die")
		}
		b.ok(session.Close(t.Context()))
	}
	b.here = nil
	_, root := b.finish(tree.ID, 1)
	call, err := b.store.Task(t.Context(), tree.Root+1)
	b.ok(err)
	if root.Result != "Error" || call.Result != "late" {
		t.Errorf("the result is %q, %+v; that of the sub-call %q, %+v", root.Result, root.Error, call.Result, call.Error)
	}
}

// A child that a user retries while its task makes its result does not fail the task, which waits
// for it: a REPL then ends with what its code received before, a merge with the new answer.
func TestChildRetriedAtTheEnd(t *testing.T) {
	t.Parallel()
	refused := "- {match: '^q', repeat: 1, status: 400, message: no}\n"
	for _, tt := range []struct {
		name, script, want string
		config             M
		at                 int
		context            []file
	}{
		{"a sub-call", turns(refused+"- {match: '^q', text: \"late\"}\n", block("r = llm_query('q')"),
			block("FINAL(r[:5])")), "Error", replConfig("mock:m"), 3, nil},
		{"a part", "replies: [{status: 400, message: no}, {text: one}, {text: two}, {text: three}, {text: half}, " +
			"{text: four}, {text: whole}]", "whole",
			M{"model": "mock:m", "chunk_tokens": 500, "merge": "summarize"}, 5,
			[]file{{"a.txt", numbered(150)}}},
	} {
		m := &mortal{Model: script(t, tt.script)}
		b := newBench(t, models{"mock:m": m})
		contextID := ""
		if tt.context != nil {
			contextID = b.put(tt.context...)
		}
		tree := b.launch("What?", contextID, tt.config)
		m.left, m.after = tt.at, true
		m.kill = func() {
			failed, err := b.store.Tasks(t.Context(), perdure.TaskFilter{Tree: tree.ID, Limit: 10,
				States: []perdure.State{perdure.Failed}})
			if err == nil && len(failed) == 1 {
				err = b.store.RetryTask(t.Context(), failed[0].ID)
			}
			if err != nil || len(failed) != 1 {
				t.Errorf("%s: retry of %d tasks: %v", tt.name, len(failed), err)
			}
		}
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Completed || root.Result != tt.want {
			t.Errorf("%s: the tree is %s with %q, %+v", tt.name, got.State, root.Result, root.Error)
		}
		notes := strings.Join(data(t, &root).Notes, "; ")
		if strings.Contains(notes, "does not use its result") != (tt.context == nil) {
			t.Errorf("%s: notes %q", tt.name, notes)
		}
		if failed := b.tasks(tree.ID)[1]; failed.State != perdure.Completed {
			t.Errorf("%s: the child is %s, %+v", tt.name, failed.State, failed.Error)
		}
		b.sound()
	}
}

// A tree that is reopened while its REPL runs, because its session seemed dead, has its new
// configuration from the next sub-call on.
func TestReopenedWhileAReplRuns(t *testing.T) {
	t.Parallel()
	first := script(t, turns("- {match: '^q', text: \"old\"}\n", block("FINAL(llm_query('q 1') + llm_query('q 2'))")))
	b := newBench(t, models{"mock:m": first, "mock:other": script(t, "replies: [{match: '^q', text: ' new'}]")})
	tree := b.launch("What?", "", replConfig("mock:m"))
	session, err := b.store.OpenSession(t.Context(), "test")
	b.ok(err)
	leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
	b.ok(err)
	b.here = func(child *perdure.Lease) {
		b.ok(b.exec.Handle(t.Context(), child))
		b.ok(session.Close(t.Context()))
		_, err := b.resume(tree.ID, M{"model": "mock:other"})
		b.ok(err)
	}
	b.ok(b.exec.Handle(t.Context(), leases[0]))
	b.here = nil
	if _, root := b.finish(tree.ID, 1); root.Result != "old new" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
}

// Answers that a block had received before its engine ended twice are not asked for again: a later
// block that asks the same receives them, each once, also after a death.
func TestAnswersOfALostBlock(t *testing.T) {
	t.Parallel()
	for at := range 10 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"{{n}}\"}\n",
				block("llm_query('q 0')", "r = llm_query_batched(['q 1', 'q 2', 'q 1'])", "import os", "os._exit(1)"),
				block("r = llm_query_batched(['q 1', 'q 2', 'q 1', 'q 1', 'q 3'])"),
				block("FINAL(' '.join(r + [llm_query('q 0')]))")))}
			b := newBench(t, models{"mock:m": m})
			tree := b.launch("What?", "", replConfig("mock:m"))
			for !b.die(m, tree.ID, at, true) {
				b.close()
				b.open()
				at = 0
			}
			root, err := b.store.Task(t.Context(), tree.Root)
			b.ok(err)
			if want := "3 4 5 7 8 2"; root.Result != want || b.usage(tree.ID).Calls != 9 {
				t.Errorf("the result is %q, want %q, after %+v; %+v", root.Result, want, b.usage(tree.ID), root.Error)
			}
			if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
				t.Errorf("replay: %+v, %v", r, err)
			}
		})
	}
}

// REPLs that wait for sub-calls read their contexts afterwards, also if there are more of them than
// contexts that are kept open.
func TestContextsOfManyWaitingRepls(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, "replies:\n- {match: '^q', repeat: -1, text: ok}\n- {repeat: -1, text: "+
		fmt.Sprintf("%q}\n", strings.ReplaceAll(block("r = llm_query_batched(['q 1', 'q 2'])",
			"FINAL(lines('a.txt', 1, 1) + r[1])"), "'''", "```")))
	b := newBench(t, m)
	var trees []perdure.Tree
	for i := range 12 {
		trees = append(trees, b.launch("What?", b.put(file{"a.txt", fmt.Sprintf("line of %d", i)}, file{"b.txt", "text"}),
			replConfig("openai:m")))
	}
	stop := b.work(1)
	defer stop()
	for i, tree := range trees {
		got := b.wait(tree.ID)
		root, err := b.store.Task(t.Context(), got.Root)
		b.ok(err)
		if want := fmt.Sprintf("line of %dok", i); root.Result != want {
			t.Errorf("the result is %q, want %q; %+v", root.Result, want, root.Error)
		}
	}
}

// A variable that a person sets is set in the code before its next block, also when the blocks
// are run again.
func TestEditedVariables(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok\"}\n", block("limit = 1"),
		block("x = llm_query('q')"), block("FINAL(limit)")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	if b.die(m, tree.ID, 2, true) { // after the second reply
		t.Fatal("the tree ended")
	}
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
	_, err := b.store.SetVar(t.Context(), ref, perdure.VarSpec{Name: "limit", Value: []byte("7")})
	b.ok(err)
	b.close()
	b.open()
	if b.die(m, tree.ID, 2, false) { // the edit is recorded; it is taken up again
		t.Fatal("the tree ended")
	}
	b.close()
	b.open()
	_, root := b.finish(tree.ID, 2)
	if root.Result != "7" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
}

// Code that does something else than what is recorded is a divergence, and an error in mode
// strict.
func TestReplDiverges(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{rlm.ModeDefault, rlm.ModeStrict} {
		m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: "+
			"\"ok\"}\n", block("x = llm_query('q 1')"),
			block("FINAL(x)")))}
		b := newBench(t, models{"mock:m": m})
		config := replConfig("mock:m")
		config["mode"], config["max_attempts"], config["seed"] = mode, 1, 7
		tree := b.launch("What?", "", config)
		if b.die(m, tree.ID, 3, false) { // before the second reply
			t.Fatal("the tree ended")
		}
		b.change("UPDATE task_end SET result = 'other' WHERE result = 'ok'")
		b.close()
		b.open()
		got, root := b.finish(tree.ID, 2)
		diverged := b.count(tree.ID, "repl.diverged") + b.count(tree.ID, perdure.EventCallDiverged)
		if mode == rlm.ModeStrict && (got.State != perdure.Failed || root.Error.Kind != rlm.KindDiverged) ||
			mode == rlm.ModeDefault && (got.State != perdure.Completed || diverged == 0) {
			t.Errorf("mode %s: tree is %s with %q, %+v, %d "+
				"divergences", mode, got.State, root.Result, root.Error, diverged)
		}
	}
}

// Code that asks the same several times where it differs from its record receives an answer for each.
func TestRepeatsOfDivergedCode(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: script(t, turns("- {match: '^first', text: q a}\n- {match: '^q', repeat: -1, text: \"{{n}}\"}\n",
		block("x = llm_query('first')", "r = llm_query_batched([x, 'q b', x])", "FINAL(' '.join(r))")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	if b.die(m, tree.ID, 5, true) { // after all answers
		t.Fatal("the tree ended")
	}
	b.change("UPDATE task_end SET result = 'q b' WHERE result = 'q a'")
	b.close()
	b.open()
	_, root := b.finish(tree.ID, 1)
	if root.Result != "6 4 7" || b.count(tree.ID, "repl.diverged") == 0 {
		t.Errorf("the result is %q, %+v, with %d divergences", root.Result, root.Error, b.count(tree.ID, "repl.diverged"))
	}
}

// count counts the events of a kind.
func (b *bench) count(tree perdure.TreeID, kind perdure.EventKind) (n int) {
	b.Helper()
	events, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: tree})
	b.ok(err)
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// An answer of a run in which no code ran was computed by nothing: the run is partial, with the answer.
func TestAnAnswerWithoutAnyCodeIsPartial(t *testing.T) {
	t.Parallel()
	text := "The answer is 42."
	b := newBench(t, models{"mock:m": script(t, turns("- {match: 'is asked|are over', text: \"The answer is 42.\"}\n",
		text, text, text, text, text))})
	tree := b.launch("What?", b.put(file{"a.txt", "one\n"}), replConfig("mock:m"))
	got, root := b.finish(tree.ID, 8)
	if notes := strings.Join(data(t, &root).Notes, "; "); got.State != perdure.Partial || root.Result != text ||
		!strings.Contains(notes, "no code ran") {
		t.Errorf("the tree is %s with %q: %s, %+v", got.State, root.Result, notes, root.Error)
	}
}
