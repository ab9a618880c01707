package enginetest

import (
	"strings"
	"time"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// KeepsNames runs code in a session that was started with KeepNames.
func (b *Bench) KeepsNames() {
	b.Helper()
	helpers := []string{"budget", "files", "search", "grep", "lines", "cite", "done"}
	d := b.Run("n = 1")
	if len(d.Vars) != 1 || d.Vars[0].Name != "n" {
		b.Errorf("before code binds a name, the variables are %+v", d.Vars)
	}
	for _, name := range helpers {
		if d := b.Run(name + " = [1, 2]"); len(d.Vars) != 1 || d.Vars[0].Name != name || d.Failure != nil {
			b.Errorf("%s is bound: variables %+v, %+v", name, d.Vars, d.Failure)
		}
		b.same("print(len("+name+"))", "2\n")
	}
	b.same("print(SHOW_VARS().split('\\n')[0], FINAL_VAR('lines')[1])", "budget: list 2\n")
	b.same("print(perdure.lines('a', 1, 2), perdure.files())", "text []\n", Text("text"),
		engine.Reply{Value: []byte("[]")})
	b.Run("perdure = 3\ncontext = 4\nllm_query = 5\nanswer = 6\nFINAL = 7")
	b.same("print(perdure.llm_query('a'), llm_query('b'), type(context) == type(''), answer['ready'])", "A B True False\n",
		Text("A"), Text("B"))
	if d := b.Run("perdure.lines = 1"); d.Failure == nil {
		b.Error("code changes the functions under perdure")
	}
	if d := b.Run("print(len(perdure.grep))"); d.Failure == nil {
		b.Error("a function under perdure is something else")
	}
	b.answers()
	b.history()
}

// history: the conversation is a variable once the host gives messages of it.
func (b *Bench) history() {
	b.Helper()
	run := func(code string, more ...engine.Message) *engine.Done {
		b.Helper()
		ev, err := b.Exec(b.Context(), engine.Block{Code: code, Clock: time.Unix(1_000_000_000, 0), History: more})
		if err != nil || ev.Done == nil {
			b.Fatalf("%s: %+v, %v", code, ev, err)
		}
		return ev.Done
	}
	one, two := engine.Message{Role: "user", Content: "a é"}, engine.Message{Role: "assistant", Content: "b"}
	if d := run("print(len(history), history[0]['content'])", one); d.Output != "1 a é\n" || len(d.Vars) != 0 {
		b.Errorf("history is %q, %+v, variables %+v", d.Output, d.Failure, d.Vars)
	}
	run("history = 7", two)
	if d := run("print(history, len(perdure.history), perdure.history[1]['role'])"); d.Output != "7 2 assistant\n" {
		b.Errorf("history as the code bound it: %q, %+v", d.Output, d.Failure)
	}
}

// answers: the variable answer is read at the end of a block.
func (b *Bench) answers() {
	b.Helper()
	for _, tt := range []struct{ code, want string }{
		{"answer['ready'] = True\nanswer['content'] = 'late'", "late"},
		{"answer['content'] = 'a'\nanswer['ready'] = True\nanswer['content'] = 'b'", "b"},
		{"answer = {'ready': True, 'content': 7}", "7"},
		{"answer.update(ready=True, content=5)", "5"},
		{"answer['ready'] = True\nFINAL('by FINAL')", "by FINAL"},
	} {
		if d := b.Run(tt.code); d.Final == nil || d.Final.Text != tt.want {
			b.Errorf("%s\nthe answer is %+v", tt.code, d.Final)
		}
		b.Run("answer['ready'] = False")
	}
	if d := b.Run("answer['content'] = 'x'\nanswer['ready'] = True\nfail(1)"); d.Failure == nil || d.Final != nil {
		b.Errorf("the answer of code that failed is %+v, %+v", d.Final, d.Failure)
	}
	if d := b.Run("n = 2"); d.Final != nil || !strings.Contains(d.Draft, "x") {
		b.Errorf("the answer of code that failed before is %+v, draft %q", d.Final, d.Draft)
	}
	if d := b.Run("answer['content'] = ''\nanswer['ready'] = True"); d.Final == nil || d.Final.Text != "" {
		b.Errorf("an empty answer is %+v", d.Final)
	}
	if d := b.Run("answer['content'] = 'now'"); d.Final != nil {
		b.Errorf("an answer that was empty is final later: %+v", d.Final)
	}
}
