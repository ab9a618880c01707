package rlm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// userProgram is a program of the user: it records its arguments, and answers as told.
type userProgram struct {
	answer func(args map[string]any) (string, error)

	mu    sync.Mutex // guards calls
	calls []string
}

func (p *userProgram) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	p.mu.Lock()
	p.calls = append(p.calls, req.Prompt)
	p.mu.Unlock()
	var args map[string]any
	if err := json.Unmarshal([]byte(model.RenderAll(req)), &args); err != nil {
		return nil, err
	}
	text, err := p.answer(args)
	if err != nil {
		return nil, err
	}
	return &model.Response{Text: text, Tries: 1, Usage: model.Usage{InputTokens: 9, OutputTokens: 9, Estimated: true}}, nil
}

// weather knows a few cities.
func weather(args map[string]any) (string, error) {
	switch args["city"] {
	case "Berlin":
		return `{"temp": 21, "unit": "C"}` + "\n", nil
	case "Oslo":
		return "cold, -3\n", nil
	case "list":
		return "[1, 2, 3]", nil
	case "number":
		return "42", nil
	case "null":
		return "null", nil
	case "quoted":
		return `"21 degrees"`, nil
	case "empty":
		return "", nil
	case "broken":
		return `{"temp": 21`, nil
	case "NaN":
		return "NaN", nil
	case "umlaut":
		return "Zürich – 8°", nil
	case "lines":
		return "a\nb\n\n", nil
	}
	return "", &model.Error{Kind: model.KindFailed, Msg: `program "weather": no such city`, Status: 3}
}

// weatherTool is the tool with its program as the configuration names it.
func weatherTool() M {
	return M{"weather": M{"command": "exec:weather", "description": "Returns the weather in a city.", "parameters": M{
		"type": "object", "required": []string{"city"}, "additionalProperties": false,
		"properties": json.RawMessage(`{"city": {"type": "string"}, "day": {"type": "integer"}}`)}},
		"plain": M{"command": "exec:weather"}}
}

// The code of a REPL calls tools like functions: by name, by position or with an object. What a
// program writes is a value if it is JSON, else text; what goes wrong is a text.
func TestToolsOfARepl(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, code, want string }{
		{"an object", "weather(city='Berlin')['temp'] + 1", "22"},
		{"text", "weather(city='Oslo')", "cold, -3"},
		{"a list", "len(weather(city='list'))", "3"},
		{"a number", "weather(city='number') + 1", "43"},
		{"nothing", "weather(city='null') == None", "True"},
		{"a JSON string", "weather(city='quoted')", "21 degrees"},
		{"no output", "repr(weather(city='empty'))", "''"},
		{"JSON that is cut", "weather(city='broken')", `{"temp": 21`},
		{"no JSON", "weather(city='NaN')", "NaN"},
		{"other letters", "weather(city='umlaut')", "Zürich – 8°"},
		{"several lines", "repr(weather(city='lines'))", `'a\nb'`},
		{"by position", "weather('Berlin')['unit']", "C"},
		{"by position and name", "weather('Berlin', day=2)['unit']", "C"},
		{"an object by position", "weather({'city': 'Oslo'})", "cold, -3"},
		{"without a schema", "plain(city='Oslo', more=[1, {'a': None}])", "cold, -3"},
		{"a failure", "weather(city='Nowhere')", `Error: tool weather: failed: program "weather": no such city`},
		{"a missing argument", "weather(day=1)[:40]", "Error: weather: the arguments are not va"},
		{"another argument", "weather(city='Oslo', town=1)[:40]", "Error: weather: the arguments are not va"},
		{"a wrong type", "weather(city=5)[:40]", "Error: weather: the arguments are not va"},
		{"too many", "weather('Oslo', 1, 2)", "Error: weather takes arguments by name: weather(name=value)"},
		{"two values", "weather('Oslo', city='Berlin')", "Error: weather got two values for city"},
		{"by position without a schema", "plain('Oslo')", "Error: plain takes arguments by name: plain(name=value)"},
	}
	for _, engine := range []string{rlm.EnginePython, rlm.EngineStarlark} {
		code := []string{"r = []"}
		for _, tt := range cases {
			code = append(code, "r.append(str("+tt.code+"))")
		}
		code = append(code, "w = weather(city='Berlin')", "w['temp'] += 1", "FINAL(' | '.join(r))")
		_, m := endpoint(t, turns("", block(code...)))
		m["exec:weather"] = &userProgram{answer: weather}
		b := newBench(t, m)
		config := replConfig("openai:m")
		config["tools"], config["repl_engine"] = weatherTool(), engine
		tree := b.launch("What?", "", config)
		_, root := b.finish(tree.ID, 2)
		got := strings.Split(root.Result, " | ")
		for i, tt := range cases {
			want := tt.want
			if engine == rlm.EngineStarlark && strings.HasPrefix(want, "'") {
				want = strings.ReplaceAll(want, "'", `"`)
			}
			if len(got) != len(cases) || !strings.HasPrefix(got[i], want) {
				t.Fatalf("%s: %s: %q, want %q: %+v", engine, tt.name, got, want, root.Error)
			}
		}
		if u := b.usage(tree.ID); u.OutputTokens > 1500 || u.Calls < 15 {
			t.Errorf("%s: %+v", engine, u)
		}
		if v, err := b.store.Var(t.Context(), perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}, "w"); err != nil ||
			string(v.Value) != `{"temp":22,"unit":"C"}` {
			t.Errorf("%s: the variable is %s, %v", engine, v.Value, err)
		}
		if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
			t.Errorf("%s: replay: %+v, %v", engine, r, err)
		}
	}
}

// A call of a tool that has ended is not made again, wherever the process dies; one whose process
// died before its output was kept is made again and counted as uncertain.
func TestDeathAroundATool(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 4; at++ {
		p := &userProgram{answer: weather}
		m := &mortal{Model: script(t, turns("", block("a = weather(city='Oslo')", "b = weather(city='Berlin')"),
			block("FINAL((a, b['temp'], weather(city='x')[:5]))")))}
		deadly := &mortal{instead: p}
		b := newBench(t, models{"mock:m": m, "exec:weather": deadly})
		config := replConfig("mock:m")
		config["tools"] = weatherTool()
		tree := b.launch("What?", "", config)
		by, n := m, at
		if at > 2 {
			by, n = deadly, at-2
		}
		for !b.die(by, tree.ID, n, at%2 == 0) {
			b.close()
			b.open()
			n = -1
		}
		root, err := b.store.Task(t.Context(), tree.Root)
		b.ok(err)
		if root.Result != "('cold, -3', 21, 'Error')" {
			t.Errorf("death %d: %q, %+v", at, root.Result, root.Error)
		}
		most := 3
		if at > 2 {
			most = 4 // the one of which the outcome is not known
		}
		if len(p.calls) > most {
			t.Errorf("death %d: the program ran %d times: %q", at, len(p.calls), p.calls)
		}
	}
}

// The model of a search calls tools as tools of its provider or by a line; the results are part of
// its next prompt.
func TestToolsOfASearch(t *testing.T) {
	t.Parallel()
	p := &userProgram{answer: weather}
	m := &mortal{Model: script(t, `replies:
- {match: 'your reply 2', text: "ANSWER\n21 and {{n}}"}
- {match: 'your reply 1', text: "weather {\"city\": \"Nowhere\"}\nweather [1]"}
- {match: 'reply 1 of', text: "I ask.\nweather {\"city\": \"Berlin\"}\nSEARCH hello"}
`)}
	for at := range 4 {
		b := newBench(t, models{"mock:m": m, "exec:weather": p})
		p.calls = nil
		tree := b.launch("What?", b.put(file{"a.txt", "hello\n"}), M{"planner": "search", "model": "mock:m",
			"tools": weatherTool()})
		for n := at; !b.die(m, tree.ID, n, true); n = -1 {
			b.close()
			b.open()
		}
		root, err := b.store.Task(t.Context(), tree.Root)
		b.ok(err)
		if !strings.HasPrefix(root.Result, "21 and ") || len(p.calls) != 2 {
			t.Errorf("death %d: %q after %q, %+v", at, root.Result, p.calls, root.Error)
		}
	}
}

// What cannot work as a tool or a sub-model is refused before a tree exists; names that are only
// similar to reserved ones are fine.
func TestToolsAndSubModelsRefused(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("", block("FINAL(1)")))
	m["exec:weather"] = &userProgram{answer: weather}
	b := newBench(t, m)
	tools := func(name string, tool M) M { return M{"tools": M{name: tool}} }
	ok := M{"command": "exec:weather"}
	for i, tt := range []struct {
		config M
		want   string
	}{
		{tools("weather", ok), ""},
		{tools("Weather_2", ok), ""},
		{tools("lines_of", ok), ""},
		{tools("query", ok), ""},
		{tools("final_answer", ok), ""},
		{tools("lines", ok), "is reserved"},
		{tools("llm_query", ok), "is reserved"},
		{tools("FINAL", ok), "is reserved"},
		{tools("Search", ok), "is reserved"},
		{tools("print", ok), "is reserved"},
		{tools("class", ok), "is reserved"},
		{tools("None", ok), "is reserved"},
		{tools("_hidden", ok), "is reserved"},
		{tools("perdure", ok), "is reserved"},
		{tools("get-weather", ok), "is not a name"},
		{tools("2fast", ok), "is not a name"},
		{tools("", ok), "is not a name"},
		{tools("wetter_für", ok), "is not a name"},
		{tools("w", M{"command": "./w.sh"}), `"./w.sh" is not exec:COMMAND`},
		{tools("w", M{"command": "openai:m"}), "is not exec:COMMAND"},
		{tools("w", M{"command": "exec: "}), "is not exec:COMMAND"},
		{tools("w", M{"command": "exec:other"}), "tool w"},
		{tools("w", M{"command": "exec:weather", "parameters": M{"type": "array"}}), "the arguments are an object"},
		{tools("w", M{"command": "exec:weather", "parameters": M{"type": "objekt"}}), "JSON Schema"},
		{M{"planner": "split", "tools": M{"weather": ok}}, "only planners repl and search have tools"},
		{M{"sub_models": M{"fast": "openai:m"}}, ""},
		{M{"sub_models": M{"gpt-4.1_mini": "openai:m"}}, ""},
		{M{"sub_models": M{"fast": "openai:none"}}, "sub-model fast"},
		{M{"sub_models": M{"fast": ""}}, "the model is missing"},
		{M{"sub_models": M{"": "openai:m"}}, "is not a name"},
		{M{"sub_models": M{"fast one": "openai:m"}}, "is not a name"},
		{M{"sub_models": M{"fast": "builtin:extract"}}, "answers no prompt"},
		{M{"sub_models": M{"fast": "openai:m"}, "agents": M{"fast": M{"model": "openai:x"}}}, "there is a profile"},
		{M{"planner": "split", "sub_models": M{"fast": "openai:m"}}, "only the code of planner repl"},
	} {
		config := replConfig("openai:m")
		for k, v := range tt.config {
			config[k] = v
		}
		_, err := b.tryLaunch(fmt.Sprint("What ", i), "", config)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.config, err, tt.want)
		}
	}
}

// Code asks sub-models by their names; another name is an error that lists them.
func TestNamedSubModels(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("", block("a = llm_query('q', model='fast')",
		"b = llm_query_batched(['q', 'q'], model='deep')",
		"c = rlm_query('Turn 0', model='fast')", "d = llm_query('q', model='openai:fast')", "FINAL((a, b, c, d))")))
	_, fast := endpoint(t, "replies: [{match: '^q', repeat: -1, text: quick}, {repeat: -1, text: 'FINAL(inner)'}]")
	_, deep := endpoint(t, "replies: [{repeat: -1, text: thorough}]")
	m["openai:fast"], m["openai:deep"] = fast["openai:m"], deep["openai:m"]
	b := newBench(t, m)
	config := replConfig("openai:m")
	config["sub_models"] = M{"fast": "openai:fast", "deep": "openai:deep"}
	tree := b.launch("What?", "", config)
	_, root := b.finish(tree.ID, 2)
	want := `('quick', ['thorough', 'thorough'], 'inner', 'Error: model "openai:fast" is not one of this run: name deep, ` +
		`fast, or leave model out')`
	if root.Result != want {
		t.Errorf("%q, want %q: %+v", root.Result, want, root.Error)
	}
	calls, err := b.store.Calls(t.Context(), root.ID)
	b.ok(err)
	var c rlm.Config
	b.ok(json.Unmarshal(tree.Config, &c))
	if got := fmt.Sprint(c.Models()); len(calls) != 1 || !strings.Contains(got, "openai:deep") {
		t.Errorf("%d calls, models %s", len(calls), got)
	}
}
