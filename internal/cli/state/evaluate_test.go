package state

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
)

// A statement writes only the variables that it assigns or changes in place.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, lines, out, errs string
		want                   map[string]string // besides a = 1, list = [1], big
	}{
		{"expression", "a + 1", "2\n", "", nil},
		{"text", `"x" + "\n"`, `"x\n"` + "\n", "", nil},
		{"nothing", "None", "", "", nil},
		{"assignment", "b = a * 2", "", "", map[string]string{"b": "2"}},
		{"of several", "a, (b, [c]) = 2, (3, [None])", "", "", map[string]string{"a": "2", "b": "3", "c": "null"}},
		{"with an operation", "a += 1", "", "", map[string]string{"a": "2"}},
		{"in place", "list.append({'k': (1.5, True)})", "", "", map[string]string{"list": `[1,{"k":[1.5,true]}]`}},
		{"in place by index", "list[0] = 7", "", "", map[string]string{"list": "[7]"}},
		{"in place while printing", "list.pop()", "1\n", "", map[string]string{"list": "[]"}},
		{"large numbers", "b = big + 1", "", "", map[string]string{"b": "123456789012345678901"}},
		{"loop", "for i in [1, 2]:\n  a += i\n\na", "4\n", "", map[string]string{"a": "4"}},
		{"comprehension", "[a for a in [5]]", "[5]\n", "", nil},
		{"condition", "if a == 1:\n  b = 1\nelse:\n  c = 1\n", "", "", map[string]string{"b": "1"}},
		{"statement behind a block", "for i in [1]:\n  a += i\na", "2\n", "", map[string]string{"a": "2"}},
		{"brackets over lines", "b = [\n1,\n2]", "", "", map[string]string{"b": "[1,2]"}},
		{"several on a line", "b = 1; c = b + 1", "", "", map[string]string{"b": "1", "c": "2"}},
		{"function", "def f(a):\n  b = a\n  return b + 1\n\nf(2)", "3\n", "", nil},
		{"function under a name", "f = lambda n: n\nf(3)", "3\n", "", nil},
		{"function that gives way", "f = lambda n: n\nf = 3\nf", "3\n", "", map[string]string{"f": "3"}},
		{"name of a builtin", "len = 3\nlen", "3\n", "", map[string]string{"len": "3"}},
		{"printing", "print('x', a)", "x 1\n", "", nil},
		{"modules", "json.decode('[1]')[0] + math.floor(2.5)", "3\n", "", nil},
		{"error", "a = 1 // 0", "", "error: floored division by zero\n", nil},
		{"nothing of an error", "a = 2; b = nope", "", "error: 1:12: undefined: nope\n", nil},
		{"nothing of a late error", "a = 2; b = 1 // 0", "", "error: floored division by zero\n", nil},
		{"no JSON", "a = 2; b = [len]", "", "error: variable \"b\": at list index 0: cannot encode " +
			"builtin_function_or_method as JSON\n", nil},
		{"no number", "b = float('nan')", "", "error: variable \"b\": cannot encode non-finite float nan\n", nil},
		{"circle", "list.append(list)", "", "error: variable \"list\": ", nil},
		{"no end", "while True:\n  pass\n", "", "error: more than 10000 steps\n", nil},
		{"syntax", "a b", "", "error: 1:4: invalid syntax\n", nil},
		{"loading", "load('x', 'y')", "", "error: load not implemented by this application\n", nil},
		{"errors do not end it", "nope\na", "1\n", "error: 1:1: undefined: nope\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPrompt(t, mine)
			want := map[string]string{"a": "1", "list": "[1]", "big": "123456789012345678900"}
			for name, value := range want {
				p.set(t, name, value)
			}
			for name, value := range test.want {
				want[name] = value
			}
			out, errs := p.enter(t, test.lines+"\n")
			if out != test.out || errs != test.errs && (test.name != "circle" || !strings.HasPrefix(errs, test.errs)) {
				t.Errorf("printed %q and %q", out, errs)
			}
			if diff := cmp.Diff(want, p.values(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A change by another process between reading and writing is not overwritten, unless the
// statement did not depend on it.
func TestStatementsOfOthers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"a += 1": "100", "list.append(2)": "100", "a = 5": "5", "c = a": "100"} {
		p := newPrompt(t, mine)
		p.set(t, "a", "1")
		p.set(t, "list", "[1]")
		p.before = func(r *http.Request) {
			if r.Method == http.MethodPut {
				p.before = nil
				p.set(t, "a", "100")
				p.set(t, "list", "[100]")
			}
		}
		_, errs := p.enter(t, line)
		refused := strings.Contains(errs, "has version") && strings.Contains(errs, "hint: it was changed meanwhile")
		if refused == (want == "5" || line == "c = a") || p.values(t)["a"] != want {
			t.Errorf("%s: a is %s, %s", line, p.values(t)["a"], errs)
		}
	}
}

// A task reads inherited variables and writes its own; properties of a variable are kept.
func TestStatementsInTrees(t *testing.T) {
	t.Parallel()
	p := newPrompt(t, perdure.StateRef{Scope: perdure.ScopeTree})
	tree, err := p.store.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	p.eval.ref.Tree = tree.ID
	if err := p.own(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = p.store.SetVar(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal},
		perdure.VarSpec{Name: "shared", Value: json.RawMessage("[1]")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.store.SetVar(t.Context(), p.eval.ref, perdure.VarSpec{Name: "document", Value: json.RawMessage(`"x"`),
		Type:        perdure.VarFileContent,
		Description: "read once"})
	if err != nil {
		t.Fatal(err)
	}
	out, errs := p.enter(t, "shared.append(2)\nshared\ndocument += \"y\"\nprompt\nprompt = \"q\"\n"+
		":final {\"n\": len(shared)}\n:final 2\nFinal\n")
	if out != "[1, 2]\n\"p\"\ntask-0001 is completed\n{\"n\": 2}\n" || !strings.Contains(errs, "read-only") ||
		!strings.Contains(errs, "is completed") {
		t.Errorf("printed %q and %q", out, errs)
	}
	v, err := p.store.Var(t.Context(), p.eval.ref, "document")
	if err != nil || string(v.Value) != `"xy"` || v.Type != perdure.VarFileContent || v.Description != "read once" {
		t.Errorf("document is %+v, %v", v, err)
	}
	v, err = p.store.Var(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal}, "shared")
	if err != nil || string(v.Value) != "[1]" {
		t.Errorf("the global variable is %s, %v", v.Value, err)
	}
}

func TestPromptCommands(t *testing.T) {
	t.Parallel()
	p := newPrompt(t, mine)
	out, errs := p.enter(t, strings.Join([]string{":help", "a = 1", ":checkpoint one", "a = 2", ":diff one", ":vars",
		":history a", ":checkpoints",
		":rollback one", "a", ":delete a", ":history nothing", ":quit", "b = 1"}, "\n"))
	for _, part := range []string{":rollback NAME", "ckpt-", "~ a                     1 → 2",
		"a                     number        2",
		"update    a  1 → 2", "initial_state", "1 variable restored, 0 removed; :rollback mut-", "\n1\n"} {
		if !strings.Contains(strings.ReplaceAll(out, "a 1 → 2", "a  1 → 2"), part) {
			t.Errorf("%q was not printed:\n%s", part, out)
		}
	}
	if errs != "" || len(p.values(t)) != 0 {
		t.Errorf("errors %q, variables %v", errs, p.values(t))
	}
	for line, want := range map[string]string{
		":":                 "\":\"",
		":vras":             `did you mean ":vars"`,
		":vars x":           ":vars takes no",
		":rollback":         ":rollback takes NAME",
		":rollback nowhere": "no checkpoint or mutation",
		":final 1":          "only trees and tasks have Final",
		":delete nothing":   "no variable \"nothing\"",
		":checkpoint " + strings.Repeat("x", 300): "at most 256 bytes",
	} {
		if _, errs := p.enter(t, line); !strings.Contains(errs, want) {
			t.Errorf("%s: %q", line, errs)
		}
	}
}

// After any input the session continues and every variable is JSON.
func FuzzStatement(f *testing.F) {
	for _, seed := range []string{"a = 1", "a += [1]\na", "def f(x):\n  return x\nf(a)", ":vars",
		":rollback mut-00000001", "x = {1: 2}", "\"", "((((",
		"for a in [1]: b = a", "a.b.c[0] = len", "load('a', b='c')", "[x for x in a if x]", "lambda: a", "a = b = c",
		"\xff", "a = '\xff'", ":final )"} {
		f.Add(seed)
	}
	p := newPrompt(f, mine)
	p.set(f, "a", "[1]")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "*") || strings.Contains(text, "<<") || len(text) > 1000 {
			return // memory is not bounded
		}
		p.enter(t, text)
		for name, value := range p.values(t) {
			if !json.Valid([]byte(value)) {
				t.Errorf("%s is %q", name, value)
			}
		}
	})
}

// A read-only session reads what the state has, keeps what it assigns to itself, and writes
// nothing.
func TestReadOnlySessions(t *testing.T) {
	t.Parallel()
	p := newPrompt(t, mine)
	p.set(t, "a", "1")
	p.set(t, "list", "[1]")
	want := p.values(t)
	p.before = func(r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s was sent", r.Method, r.URL)
		}
	}
	p.eval.local = make(map[string]json.RawMessage)
	for _, test := range []struct{ lines, out, errs string }{
		{"a += 1\nb = a * 10\na, b", "(2, 20)\n", ""},
		{"list.append(2)\nlist", "[1, 2]\n", ""},
		{"list.append(3); 1 // 0", "", "division by zero"},
		{"list", "[1, 2]\n", ""},
		{"b = [len]", "", "cannot encode builtin"},
		{"b", "20\n", ""},
		{":checkpoint one", "", ":checkpoint writes, and this session is read-only"},
		{":rollback initial_state", "", ":rollback writes"},
		{":delete a", "", ":delete writes"},
		{":final 1", "", ":final writes"},
		{":vars", "a                     this session  2\nb                     this session  20\n" +
			"list                  this session  [1,2]\n", ""},
	} {
		out, errs := p.enter(t, test.lines+"\n")
		if out != test.out || (errs == "") != (test.errs == "") || !strings.Contains(errs, test.errs) {
			t.Errorf("%s: printed %q and %q", test.lines, out, errs)
		}
	}
	if _, errs := p.enter(t, ":delete a\n"); !strings.Contains(errs, "--write") {
		t.Errorf("the error has no hint: %q", errs)
	}
	if diff := cmp.Diff(want, p.values(t)); diff != "" {
		t.Error(diff)
	}
}

// The prompt makes no sub-calls, and a variable of their name hides the refusal.
func TestSubCallsAtThePrompt(t *testing.T) {
	t.Parallel()
	p := newPrompt(t, perdure.StateRef{Scope: perdure.ScopeTree})
	tree, err := p.store.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	p.eval.ref.Tree = tree.ID
	if err := p.own(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"x = llm_query('q')":           "llm_query is refused: a sub-call costs",
		"rlm_query_batched(['q'])":     "rlm_query_batched is refused: a sub-call costs",
		"[grep(p) for p in ['a']]":     "grep is refused: it is a function of the run's code",
		"search = 1\nsearch + nothing": "undefined: nothing",
	} {
		if _, errs := p.enter(t, line+"\n"); !strings.Contains(errs, want) {
			t.Errorf("%s: %q", line, errs)
		}
	}
	if tasks, err := p.store.Tasks(t.Context(), perdure.TaskFilter{Tree: tree.ID}); err != nil || len(tasks) != 1 {
		t.Errorf("the tree has %d tasks, %v", len(tasks), err)
	}
}
