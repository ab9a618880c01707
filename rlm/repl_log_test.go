package rlm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// logOf writes the log of a tree.
func (b *bench) logOf(tree perdure.TreeID, withoutContext bool) string {
	b.Helper()
	var out bytes.Buffer
	l := &rlm.Log{Store: b.store, Tree: tree, WithoutContext: withoutContext}
	b.ok(l.Write(b.Context(), &out))
	return out.String()
}

// The log of a run has what the public viewer reads, each message and the context once, and its
// code does the same when it is run from the log alone.
func TestLog(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, counting)
	b := newBench(t, m)
	text := strings.Repeat("banana and ", 10)
	tree := b.launch("How many a are there?", b.put(file{"a.txt", text}), replConfig("openai:m"))
	b.finish(tree.ID, 4)
	log := b.logOf(tree.ID, false)
	if log != b.logOf(tree.ID, false) {
		t.Error("a second log is another one")
	}
	if n := strings.Count(log, `"context":"`+text+`"`); n != 1 {
		t.Errorf("the log has the context %d times:\n%s", n, log)
	}
	if n := strings.Count(log, `"role":"system"`); n != 1 {
		t.Errorf("the log has the instructions %d times", n)
	}
	for _, want := range []string{"Turn 1/30", "Turn 2/30", "Turn 3/30"} {
		if n := strings.Count(log, want); n != 1 {
			t.Errorf("the log has %q %d times", want, n)
		}
	}
	s, err := rlm.CheckLog(strings.NewReader(log))
	b.ok(err)
	if want := (rlm.LogSummary{Iterations: 3, Blocks: 3, Calls: 11, Answer: "33"}); s != want {
		t.Errorf("the log has %+v, want %+v", s, want)
	}
	checkViewed(t, log)
	r, err := (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(log))
	b.ok(err)
	if r.Blocks != 3 || r.Calls != 11 || len(r.Differences) > 0 || r.Model != "openai:m" {
		t.Errorf("replay of the log: %+v", r)
	}
	changed := strings.Replace(log, `"response":"3"`, `"response":"4"`, 1)
	r, err = (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(changed))
	b.ok(err)
	if len(r.Differences) == 0 || r.Differences[0].Line != 3 || !strings.Contains(r.Differences[0].What, "output") {
		t.Errorf("replay of a changed log: %+v", r)
	}
	if strings.Contains(b.logOf(tree.ID, true), `"context":`) {
		t.Error("the log has a context that was to be left out")
	}
	other := b.launch("Read.", b.put(file{"b.txt", "text"}), M{"model": "openai:m"})
	err = (&rlm.Log{Store: b.store, Tree: other.ID}).Write(t.Context(), new(bytes.Buffer))
	if perdure.CodeOf(err) != perdure.CodeInvalid {
		t.Errorf("log of a run without a REPL: %v", err)
	}
}

// checkViewed checks the members of a log that the viewer reads without a test for absence.
func checkViewed(t *testing.T, log string) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
		var v struct {
			Type      string           `json:"type"`
			Number    *int             `json:"iteration"`
			Timestamp *string          `json:"timestamp"`
			Prompt    []map[string]any `json:"prompt"`
			Response  *string          `json:"response"`
			Blocks    []struct {
				Code   *string `json:"code"`
				Result *struct {
					Stdout *string        `json:"stdout"`
					Stderr *string        `json:"stderr"`
					Locals map[string]any `json:"locals"`
					Time   *float64       `json:"execution_time"`
					Calls  []struct {
						Prompt   *string  `json:"prompt"`
						Response *string  `json:"response"`
						In       *int     `json:"prompt_tokens"`
						Out      *int     `json:"completion_tokens"`
						Time     *float64 `json:"execution_time"`
					} `json:"rlm_calls"`
				} `json:"result"`
			} `json:"code_blocks"`
			Time *float64 `json:"iteration_time"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if v.Type != "metadata" {
				t.Errorf("the first line is %s", v.Type)
			}
			continue
		}
		if v.Type != "iteration" || v.Number == nil || *v.Number != i || v.Timestamp == nil || len(v.Prompt) == 0 ||
			v.Response == nil || v.Blocks == nil || v.Time == nil {
			t.Errorf("line %d: %s", i+1, line)
		}
		for _, b := range v.Blocks {
			if r := b.Result; b.Code == nil || r == nil || r.Stdout == nil || r.Stderr == nil || r.Locals == nil ||
				r.Time == nil || r.Calls == nil {
				t.Errorf("line %d: %+v", i+1, b)
				continue
			}
			for _, c := range b.Result.Calls {
				if c.Prompt == nil || c.Response == nil || c.In == nil || c.Out == nil || c.Time == nil {
					t.Errorf("line %d: call %+v", i+1, c)
				}
			}
		}
	}
}

// Logs of runs with exceptions, failed sub-calls, answers in text and several files.
func TestLogsOfRuns(t *testing.T) {
	t.Parallel()
	ok := "- {match: '^q', repeat: -1, text: \"ok\"}\n"
	for _, tt := range []struct{ name, script, want string }{
		{"an exception", turns(ok, block("x = 5", "print(x)", "1/0"), block("FINAL(x)")), "5"},
		{"an answer in text", turns(ok, block("x = 5"), "FINAL(four)"), "four"},
		{"a failed sub-call", turns("- {match: '^q bad', repeat: -1, status: 400, message: no}\n"+ok,
			block("r = llm_query_batched(['q bad', 'q good'])", "print(r)", "FINAL(r[1])")), "ok"},
		{"the same prompt again", turns(ok,
			block("a = [llm_query('q') for i in range(3)]", "print(a)", "FINAL(len(a))")), "3"},
		{"several files", turns(ok, block("print(context)", "FINAL(context['a.txt'])")), "one\n"},
		{"a variable of its own", turns(ok, block("d = {}", "d['x'] = 1", "print(d)", "FINAL(d['x'])")), "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, m := endpoint(t, tt.script)
			b := newBench(t, m)
			config := replConfig("openai:m")
			config["max_attempts"] = 1
			tree := b.launch("What?", b.put(file{"a.txt", "one\n"}, file{"b.txt", "two\n"}), config)
			b.finish(tree.ID, 2)
			log := b.logOf(tree.ID, false)
			checkViewed(t, log)
			s, err := rlm.CheckLog(strings.NewReader(log))
			if err != nil || s.Answer != tt.want {
				t.Errorf("the log has %+v, %v", s, err)
			}
			r, err := (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(log))
			if err != nil || len(r.Differences) > 0 {
				t.Errorf("replay: %+v, %v\n%s", r, err, log)
			}
		})
	}
}

// The messages of a log are those that the model read, also after a block that was lost.
func TestLogOfALostBlock(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, turns("- {match: '^q', repeat: -1, text: \"ok\"}\n",
		block("llm_query('q')", "import os", "os._exit(1)"), block("FINAL(1)")))})
	config := replConfig("mock:m")
	config["mode"] = rlm.ModeLogged
	tree := b.launch("What?", "", config)
	_, root := b.finish(tree.ID, 1)
	calls, err := b.store.Calls(t.Context(), root.ID)
	b.ok(err)
	var sent struct {
		Request struct {
			Messages []struct{ Text string }
		}
	}
	b.ok(json.Unmarshal(calls[len(calls)-1].Data, &sent))
	if len(sent.Request.Messages) != 2 {
		t.Fatalf("the last request has %d messages", len(sent.Request.Messages))
	}
	var log struct{ Prompt []struct{ Content string } }
	lines := strings.Split(strings.TrimSpace(b.logOf(tree.ID, false)), "\n")
	b.ok(json.Unmarshal([]byte(lines[2]), &log))
	if got, want := log.Prompt[len(log.Prompt)-1].Content, sent.Request.Messages[1].Text; got != want {
		t.Errorf("the log has %q, the model read %q", got, want)
	}
}

// referenceLog is a log as the reference implementation writes one: all messages and variables
// in each iteration.
const referenceLog = `{"type": "metadata", "timestamp": "2026-03-01T10:00:00.123456", "root_model": "m", "max_depth": 1, ` +
	`"max_iterations": 30, "backend": "openai", "backend_kwargs": {"model_name": "m"}, "environment_type": "local", ` +
	`"environment_kwargs": {}, "other_backends": null}
{"type": "iteration", "iteration": 1, "timestamp": "2026-03-01T10:00:01.5", "prompt": [{"role": "system", "content": ` +
	`"s"}], "response": "r", "code_blocks": [{"code": "n = len(context)\nprint(n, context_0 == context)", "result": ` +
	`{"stdout": "4 True\n", "stderr": "", "locals": {"context_0": "text", "context": "text", "n": 4}, "execution_time": ` +
	`0.1, "rlm_calls": [], "final_answer": null}}], "final_answer": null, "iteration_time": 1.0}
{"type": "iteration", "iteration": 2, "timestamp": "2026-03-01T10:00:03", "prompt": [{"role": "system", "content": ` +
	`"s"}], "response": "r", "code_blocks": [{"code": "a = llm_query(f'p {n}')\nprint(a)\nanswer['content'] = a\n` +
	`answer['ready'] = True", "result": {"stdout": "yes\n", "stderr": "", "locals": {"context_0": "text", "context": ` +
	`"text", "n": 4, "a": "yes"}, "execution_time": 0.1, "rlm_calls": [{"root_model": "m", "prompt": "p 4", "response": ` +
	`"yes", "usage_summary": {"model_usage_summaries": {}}, "execution_time": 0.1}], "final_answer": "yes"}}], ` +
	`"final_answer": "yes", "iteration_time": 1.0}
`

// A log of others is run again with its answers; what differs is listed with its line.
func TestReplayOfALog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, new, want string }{
		{"as it is", "", "", ""},
		{"another output", `"stdout": "4 True\n"`, `"stdout": "5 True\n"`, `the output differs (recorded "5 True", new "4 True")`},
		{"another prompt", `"prompt": "p 4"`, `"prompt": "p 5"`, "the log has no answer to prompt 1 of llm_query()"},
		{"a call too many", `"execution_time": 0.1, "rlm_calls": []`, `"execution_time": 0.1, "rlm_calls": [{"root_model": ` +
			`"m", "prompt": "z", "response": "z", "execution_time": 1}]`, "1 of the log's 1 sub-calls were not made"},
		{"an exception", "print(n, context_0 == context)", "1/0",
			"the code raised an exception (recorded no exception, new ZeroDivisionError: division by zero)"},
		{"a function of this project", "print(a)", "budget()",
			"the code raised an exception (recorded no exception, new NameError: name 'budget' is not defined)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := strings.Replace(referenceLog, tt.old, tt.new, 1)
			r, err := (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(log))
			if err != nil || r.Iterations != 2 || r.Blocks != 2 {
				t.Fatalf("%+v, %v", r, err)
			}
			switch {
			case tt.want == "" && len(r.Differences) > 0:
				t.Errorf("%+v", r.Differences)
			case tt.want != "" && (len(r.Differences) == 0 || !strings.Contains(r.Differences[0].String(), tt.want)):
				t.Errorf("%+v, want %s", r.Differences, tt.want)
			}
		})
	}
	for kind, raw := range map[string]string{"list 2": `["one", {"b": 1}]`, "dict 2": `{"z": "one", "a": [null]}`} {
		log := strings.ReplaceAll(referenceLog, `"context": "text"`, `"context": `+raw)
		log = strings.Replace(log, `n = len(context)\nprint(n, context_0 == context)`,
			`n = 4\nprint(type(context).__name__, len(context), list(context)[0], json.dumps(context))`, 1)
		first, _, _ := strings.Cut(strings.Trim(raw, `[{"`), `"`)
		line, err := json.Marshal(kind + " " + first + " " + raw + "\n")
		if err != nil {
			t.Fatal(err)
		}
		log = strings.Replace(log, `"4 True\n"`, string(line), 1)
		r, err := (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(log))
		if err != nil || r.Blocks != 2 || len(r.Differences) > 0 {
			t.Errorf("a context that is a %s: %+v, %v", kind, r, err)
		}
	}
	starlark := strings.Replace(referenceLog, `"environment_kwargs": {}`, `"environment_kwargs": {"engine": "starlark"}`, 1)
	for log, want := range map[string]string{"": "read log: line 1: the log has no iterations",
		"{}": "line 1: this is JSON", starlark: "is Starlark", referenceLog + "x": "line 4: "} {
		_, err := (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(log))
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", log, err)
		}
	}
}

// The calls of a large batch are found by their prompts: the time does not grow with the square of
// their number.
func TestReplayOfALogWithABatch(t *testing.T) {
	t.Parallel()
	const n = 8000
	long := strings.Repeat("x", 100)
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"root_model": "m", "prompt": "p %d %s", "response": "%d", "execution_time": 1}`,
			i, long, i))
	}
	log := strings.NewReplacer("a = llm_query(f'p {n}')", fmt.Sprintf(
		"a = sum(map(int, llm_query_batched([f'p {i} ' + 'x' * 100 for i in reversed(range(%d))])))", n),
		`"yes\n"`, fmt.Sprintf(`"%d\n"`, n*(n-1)/2), `"final_answer": "yes"`, fmt.Sprintf(`"final_answer": "%d"`, n*(n-1)/2)).
		Replace(referenceLog)
	at := strings.LastIndex(log, `"rlm_calls": [`) + len(`"rlm_calls": [`)
	log = log[:at] + strings.Join(calls, ",") + log[at+strings.Index(log[at:], `], "final_answer"`):]
	began := time.Now()
	r, err := (&rlm.LogReplayer{}).Replay(t.Context(), strings.NewReader(log))
	if err != nil || len(r.Differences) > 0 || r.Calls != n {
		t.Errorf("%+v, %v", r, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
