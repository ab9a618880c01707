package enginetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// Conform runs code that does the same in all languages. start starts a session with a context;
// lazyBytes is the size from which it is read in parts, 0 for the default.
func Conform(t *testing.T, start func(t testing.TB, c engine.Contents, lazyBytes int64) *Bench) {
	t.Helper()
	begin := func(t *testing.T) *Bench {
		t.Helper()
		return start(t, engine.Contents{}, 0)
	}
	t.Run("namespace", func(t *testing.T) { namespace(begin(t)) })
	t.Run("sub-calls", func(t *testing.T) { subCalls(begin(t)) })
	t.Run("arguments", func(t *testing.T) { issued(begin(t)) })
	t.Run("tools", func(t *testing.T) { tools(begin(t)) })
	t.Run("finals", func(t *testing.T) { finals(begin(t)) })
	t.Run("failures", func(t *testing.T) { failures(begin(t)) })
	t.Run("variables", func(t *testing.T) { variables(begin(t)) })
	t.Run("output", func(t *testing.T) { longOutput(begin(t)) })
	t.Run("sizes", func(t *testing.T) { sizes(begin(t)) })
	t.Run("modules", func(t *testing.T) { modules(begin(t)) })
	t.Run("context", func(t *testing.T) { contexts(t, start) })
	t.Run("the same again", func(t *testing.T) { again(begin(t), begin(t)) })
}

// same runs code and compares what it printed. Starlark prints text in a list with other
// quotes than Python.
func (b *Bench) same(code, want string, replies ...engine.Reply) *engine.Done {
	b.Helper()
	d := b.Run(code, replies...)
	if d.Failure != nil || strings.ReplaceAll(d.Output, `"`, "'") != strings.ReplaceAll(want, `"`, "'") {
		b.Errorf("%s\nprinted %q, want %q; %+v", code, d.Output, want, d.Failure)
	}
	return d
}

func namespace(b *Bench) {
	b.Run("def twice(x):\n    return 2 * x\nn = 4")
	b.same("print(twice(n), [x for x in range(3) if x], sorted({'b': 1, 'a': 2}))", "8 [1, 2] ['a', 'b']\n")
	b.same("1 + 1", "")
	b.same("total = 0\nfor i in range(3):\n    total += i\nwhile total < 10:\n    total += 5\nprint(total)", "13\n")
	b.same("print(sum([1, 2]), round(2.5), round(2.675, 1), max([3, 1], key=lambda x: -x), "+
		"list(map(str, [1])), list(filter(lambda x: x, [0, 1])))", "3 2 2.7 1 ['1'] [1]\n")
	b.Run("llm_query = None\nFINAL = 3")
	b.same("print(type(llm_query) != type(None), SHOW_VARS().split('\\n')[0])", "True i: int\n")
}

func subCalls(b *Bench) {
	b.same("print(llm_query('a', model='m'), llm_query('b'))", "A B\n", Text("A"), Text("B"))
	b.same("print(','.join(llm_query_batched([1, 'b'])))", "x,y\n", engine.Reply{Value: json.RawMessage(`["x","y"]`)})
	b.same("print(rlm_query('c'), rlm_query_batched(['d'])[0])", "C D\n", Text("C"),
		engine.Reply{Value: json.RawMessage(`["D"]`)})
	b.wants("llm_query", `{"prompt":"a","model":"m"}`, "llm_query", `{"prompt":"b","model":null}`,
		"llm_query_batched", `{"prompts":["1","b"],"model":null}`, "rlm_query", `{"prompt":"c","model":null}`,
		"rlm_query_batched", `{"prompts":["d"],"model":null}`)
	d := b.Run("llm_query('h')", engine.Reply{Err: "llm_query: no"})
	if d.Failure == nil || !strings.Contains(d.Failure.Message, "llm_query: no") || d.Failure.Line != 1 {
		b.Errorf("a refusal of the host: %+v", d.Failure)
	}
}

// issued: a request has the arguments of the moment at which it is made, whatever becomes of them.
func issued(b *Bench) {
	b.same("p = ['a', 'b']\nr = llm_query_batched(p)\np[0] = 'c'\nr.append('d')\nprint(p, r, llm_query_batched(p))",
		"['c', 'b'] ['x', 'y', 'd'] ['z', 'y']\n", engine.Reply{Value: json.RawMessage(`["x","y"]`)},
		engine.Reply{Value: json.RawMessage(`["z","y"]`)})
	b.wants("llm_query_batched", `{"prompts":["a","b"],"model":null}`,
		"llm_query_batched", `{"prompts":["c","b"],"model":null}`)
}

func tools(b *Bench) {
	list := engine.Reply{Value: json.RawMessage(`[{"file":"a","line":3,"text":"é"}]`)}
	b.same("print(grep('x', k=2)[0]['text'])", "é\n", list)
	b.same("print(len(files()), "+
		"budget()['calls'])", "1 9\n", list, engine.Reply{Value: json.RawMessage(`{"calls":9}`)})
	b.same("print(lines('a', 1, 2), cite(file='a', first=1, last=2), "+
		"len(search('w')))", "text [^1] 1\n", Text("text"),
		Text("[^1]"), list)
	b.wants("grep", `{"regex":"x","glob":"**","k":2}`, "files", `{"glob":"**"}`, "budget", `{}`,
		"lines", `{"file":"a","first":1,"last":2,"column":1}`, "cite", `{"file":"a","first":1,"last":2}`, "search",
		`{"query":"w","k":10}`)
}

// wants compares the requests: pairs of a function and its arguments.
func (b *Bench) wants(pairs ...string) {
	b.Helper()
	var got, want []any
	decoded := func(raw string) (v any) {
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			b.Fatal(err)
		}
		return v
	}
	for _, r := range b.Asked {
		got = append(got, r.Function, decoded(string(r.Args)))
	}
	for i := 0; i < len(pairs); i += 2 {
		want = append(want, pairs[i], decoded(pairs[i+1]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
}

func finals(b *Bench) {
	for code, want := range map[string]engine.Final{
		"answer['content'] = 'a'\nanswer['ready'] = True\nanswer['content'] = 'b'": {Value: json.RawMessage(`"a"`),
			Text: "a", By: "answer"},
		"answer = {'content': 7, 'ready': True}": {Value: json.RawMessage(`7`), Text: "7", By: "answer"},
		"answer.update(ready=True, content=5)":   {Value: json.RawMessage(`5`), Text: "5", By: "answer"},
		"FINAL([1, " +
			"None])": {Value: json.RawMessage(`[1,null]`), Text: "[1, None]", By: "FINAL"},
		"FINAL(1)\nFINAL(2)": {Value: json.RawMessage(`1`), Text: "1", By: "FINAL"},
		"FINAL_VAR('no " +
			"name')": {Value: json.RawMessage(`"no name"`), Text: "no name", By: "FINAL_VAR"},
		"x = 5\nFINAL_VAR(x)": {Value: json.RawMessage(`5`), Text: "5", By: "FINAL_VAR"},
		"SUBMIT(3)":           {Value: json.RawMessage(`3`), Text: "3", By: "SUBMIT"},
		"done('ok')":          {Value: json.RawMessage(`"ok"`), Text: "ok", By: "done"},
	} {
		if diff := cmp.Diff(&want, b.Run(code).Final); diff != "" {
			b.Errorf("%s\n%s", code, diff)
		}
		b.Run("answer['ready'] = False")
	}
	if d := b.Run("SUBMIT(a=1, b='c')"); d.Final == nil || string(d.Final.Value) != `{"a":1,"b":"c"}` {
		b.Errorf("fields: %+v", d.Final)
	}
	b.Run("x = 5")
	if d := b.Run("FINAL_VAR('x')"); d.Final == nil || d.Final.Text != "5" {
		b.Errorf("a variable by its name: %+v", d.Final)
	}
	if d := b.Run("FINAL_VAR('missing')"); d.Failure == nil || d.Final != nil ||
		!strings.Contains(d.Failure.Message, "no variable") {
		b.Errorf("a missing variable: %+v", d)
	}
	if d := b.Run("answer['content'] = 'draft'"); d.Draft != "draft" || d.Final != nil {
		b.Errorf("a draft: %+v", d)
	}
}

func failures(b *Bench) {
	d := b.Run("kept = [1]\nkept.append(2)\ndef f():\n    return 1 // 0\nf()\nlost = 3")
	if f := d.Failure; f == nil || f.Line != 4 || !strings.Contains(f.Traceback,
		"line 4") && !strings.Contains(f.Traceback, ":4") {
		b.Fatalf("%+v", d.Failure)
	}
	if len(d.Vars) != 2 || d.Vars[1].Name != "kept" || string(d.Vars[1].Value) != "[1,2]" {
		b.Errorf("variables %+v", d.Vars)
	}
	if d := b.Run("print(kept)\nfor"); d.Failure == nil || d.Failure.Type != "SyntaxError" || d.Failure.Line != 2 ||
		d.Output != "" {
		b.Errorf("a syntax error: %+v, %q", d.Failure, d.Output)
	}
	if d := b.Run("x = 1\nprint(no_such_name)"); d.Failure == nil || d.Failure.Type != "NameError" || d.Failure.Line != 2 {
		b.Errorf("a missing name: %+v", d.Failure)
	}
	b.same("print(kept)", "[1, 2]\n")
}

func variables(b *Bench) {
	d := b.Run("a = {'b': [1, 2.5, None, True, 'é']}\nc = (1, 2)\ne = {1: 2}\ni = 1 << 100\nj = 'x' * " +
		"100000\nf = float('nan')")
	got := make(map[string]string)
	for _, v := range d.Vars {
		got[v.Name] = string(v.Value) + v.Repr[:min(len(v.Repr), 30)]
	}
	if got["a"] != `{"b":[1,2.5,null,true,"é"]}` {
		var v any
		if err := json.Unmarshal([]byte(got["a"]), &v); err != nil || !cmp.Equal(v,
			map[string]any{"b": []any{1.0, 2.5, nil, true, "é"}}) {
			b.Errorf("a is %s", got["a"])
		}
	}
	for name, want := range map[string]string{"c": "(1, 2)", "e": "{1: 2}", "i": "1267650600228229401496703205376",
		"j": `"` + strings.Repeat("x", 29), "f": "nan"} {
		if got[name] != want {
			b.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if d = b.Run("a['b'].append(3)"); len(d.Vars) != 1 || d.Vars[0].Name != "a" {
		b.Errorf("changed %+v", d.Vars)
	}
	if err := b.Set(b.Context(), []engine.Var{{Name: "n",
		Value: json.RawMessage(`{"x":[1,"\u00e9"]}`)}}); err != nil {
		b.Fatal(err)
	}
	if d := b.same("print(n['x'][1])", "é\n"); len(d.Vars) != 0 {
		b.Errorf("a variable that was set counts as changed: %+v", d.Vars)
	}
}

func longOutput(b *Bench) {
	d := b.Run("line = 'é' * 500\nfor i in range(2000):\n    print(line)")
	if d.OutputBytes != 2000*1001 || len(d.Output) > engine.MaxOutputBytes || len(d.Output) < engine.MaxOutputBytes-3 ||
		len(d.OutputSHA256) != 64 {
		b.Errorf("%d bytes of %d, hash %q", len(d.Output), d.OutputBytes, d.OutputSHA256)
	}
	// What is kept ends before the character that does not fit, whatever fits of the rest.
	line := strings.Repeat("x", 1000)
	whole := strings.Repeat("x", engine.MaxOutputBytes-len(line)-2) + "\n" + line
	d = b.Run(fmt.Sprintf("print('x' * %d)\nprint('x' * %d + 'é')\nprint('a')\nprint('a')",
		engine.MaxOutputBytes-len(line)-2, len(line)))
	if d.Output != whole || d.OutputBytes != int64(len(whole)+len("é\na\na\n")) {
		b.Errorf("%d bytes of %d, which end with %q", len(d.Output), d.OutputBytes, d.Output[len(d.Output)-5:])
	}
}

// sizes: code that exceeds one gets an exception, and the engine goes on.
func sizes(b *Bench) {
	answer := fmt.Sprintf("'a' * %d", engine.MaxAnswerBytes+1)
	for code, want := range map[string]string{
		fmt.Sprintf("llm_query('a' * %d)", engine.MaxRequestBytes):                 "llm_query: the request has",
		fmt.Sprintf("llm_query_batched(['a' * %d] * 2)", engine.MaxRequestBytes/2): "llm_query_batched: the request has",
		"FINAL(" + answer + ")": "the answer has",
		"answer['content'] = " + answer + "\nanswer['ready'] = True":                   "the answer has",
		"answer = {'content': " + answer + ", 'ready': True}":                          "the answer has",
		"x = int('a' * 1000000)":                                                       "int",
		"x = {}['k' + 'a' * 1000000 + 'end']":                                          "end",
		"def f(n):\n    return g(n)\ndef g(n):\n    return f(n + 1)\nf(0)\nf(1)\nf(2)": "",
	} {
		d, err := b.Try(code)
		const most = 11_000
		switch {
		case err != nil:
			b.Fatalf("%.80s: %v", code, err)
		case d.Failure == nil || !strings.Contains(d.Failure.Message, want) || d.Final != nil:
			b.Errorf("%.80s: %+v", code, d.Failure)
		case len(d.Failure.Message) > most || len(d.Failure.Traceback) > most:
			b.Errorf("%.80s: the message has %d bytes, the traceback %d", code, len(d.Failure.Message),
				len(d.Failure.Traceback))
		case len(d.Draft) > engine.MaxAnswerBytes:
			b.Errorf("%.80s: the draft has %d bytes", code, len(d.Draft))
		}
		b.Run("answer['content'] = ''") // else each block hands out the draft
	}
	if len(b.Asked) != 0 {
		b.Errorf("%d requests were made", len(b.Asked))
	}
	b.same("print('on')", "on\n")
}

func modules(b *Bench) {
	imports := ""
	if d := b.Run("import re, json, math"); d.Failure == nil {
		imports = "import re, json, math\n"
	}
	b.same(imports+`print(re.findall(r'\d+', 'a1b22'), re.findall(r'(\w)=(\d)', 'a=1 b=2'), re.search('x', 'abc'))
m = re.search(r'(?P<k>\w+)-(\d+)', 'see ab-12.')
print(m.group(0), m.group('k'), m.group(2), m.start(), m.end(2), m.groups(), m.span())
print(re.sub(r'(\w)(\d)', r'\2\1', 'a1 b2'), re.sub('a', lambda m: m.group().upper(), 'banana', count=2))
print(re.split(r',\s*', 'a, b,c'), re.match('b', 'ab'), re.match('a', 'ab').group(), re.fullmatch('a', 'ab'))
print([m.group() for m in re.finditer('a.', 'abac')], bool(re.search('A', 'a', flags=re.IGNORECASE)))
print(re.compile('B', re.I).findall('abB'), re.escape('a.b'))
print(json.loads('{"a": [1, 2.5, null]}')['a'], json.dumps([1, None, 'x']).replace(' ', ''),
	math.floor(2.5), math.sqrt(16))
`, `['1', '22'] [('a', '1'), ('b', '2')] None
ab-12 ab 12 4 9 ('ab', '12') (4, 9)
1a 2b bAnAna
['a', 'b', 'c'] None a None
['ab', 'ac'] True
['b', 'B'] a\.b
[1, 2.5, None] [1,null,"x"] 2 4.0
`)
}

func contexts(t *testing.T, start func(t testing.TB, c engine.Contents, lazyBytes int64) *Bench) {
	t.Helper()
	one := start(t, engine.Contents{Text: &engine.File{Name: "a", Bytes: 6}}, 0)
	one.Files = map[string]string{"a": "a b\nc\n"}
	one.same("print(len(context), context[2], context.splitlines())", "6 b ['a b', 'c']\n")
	many := start(t, engine.Contents{Files: []engine.File{{Name: "a", Bytes: 1}, {Name: "b", Bytes: 2}}}, 0)
	many.Files = map[string]string{"a": "x", "b": "yz"}
	many.same("print(sorted(context), context['b'])", "['a', 'b'] yz\n")
	start(t, engine.Contents{}, 0).same("print(context == '' or context == None)", "True\n")
	whole := strings.Repeat("a line of it\n", 40_000)
	long := start(t, engine.Contents{Text: &engine.File{Name: "a", Bytes: int64(len(whole))}}, 64<<10)
	long.Files = map[string]string{"a": whole[:len(whole)-13] + "then the end\n"}
	long.same("print(len(context), context[2:6], context[13:26], context[-4:-1])\n"+
		"print(context.find('end'), context.count('line'), context.find('none'), context.startswith('a line'))\n"+
		"n = 0\nfor line in context.lines():\n    n += len(line)\nprint(n, line)",
		"520000 line a line of it\n end\n519996 39999 -1 True\n480000 then the end\n")
	if d := long.Run("context.upper()"); d.Failure == nil || !strings.Contains(d.Failure.Message, "use grep") {
		t.Errorf("the whole of a long text: %+v", d.Failure)
	}
}

// again runs the same blocks in two sessions.
func again(a, b *Bench) {
	var got [2]string
	for i, x := range []*Bench{a, b} {
		var all []*engine.Done
		all = append(all, x.Run("x = {'b': 1, 'a': [2]}\ndef f():\n    return 1\n"+
			"print(x, f)"), x.Run("y = llm_query('q')\nprint(y)",
			Text("r")))
		// The model reads what an exception says, so that is the same as well.
		for _, code := range []string{"1 // 0", "nothing", "[][1]", "int('x')", "'a' + 1", "{}['k']", "f(1, 2)", "f.nothing",
			"x = (", "FINAL_VAR('nothing')", "print(x)\nFINAL(1)\nx.nothing"} {
			all = append(all, x.Run(code))
		}
		raw, err := json.Marshal(all)
		if err != nil {
			a.Fatal(err)
		}
		got[i] = string(raw)
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		a.Error(diff)
	}
}
