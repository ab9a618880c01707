package rlm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm"
)

// coast is a context of which one file says where the light is.
func coast() []file {
	var files []file
	for i := range 400 {
		files = append(files, file{fmt.Sprintf("log/day%03d.txt", i), fmt.Sprintf("Day %d on the coast.\n", i) +
			strings.Repeat("The boats went out and came back, and nothing else was seen of the sea.\n", 60)})
	}
	files[7].text = strings.Repeat("Nothing.\n", 3000)
	return append(files, file{"chart/lights.txt", "Lights of the coast.\n\n" +
		"The harbour light stands on the northern\nmole."})
}

// searching searches for light, reads a range, makes a mistake, and answers with one quote
// that is there and one that is not, then with the first alone.
const searching = `replies:
- {match: 'northern mole, says the chart', text: "ANSWER\nOn the northern mole. [^1]\n\n[^1]: chart/lights.txt:3-4\n> The harbour light stands on the northern mole."}
- {match: 'Not understood: no line begins', text: "ANSWER\nOn the northern mole, says the chart [^1] and [^2].\n\n[^1]: chart/lights.txt:3-4\n> The harbour light stands on the northern mole.\n\n[^2]: chart/lights.txt:1\n> Lights of the whole coast."}
- {match: 'range has at most', text: "I think it is there."}
- {match: 'passages for .harbour light.', text: "READ log/day007.txt:1-9999\nREAD log/day007.txt"}
- {match: 'SEARCH words', text: "SEARCH harbour light\nLIST chart/"}
`

// searchConfig is a run that searches.
func searchConfig(name string) M {
	return M{"model": name, "planner": "search", "context_window": 16_000}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, searching)
	b := newBench(t, m)
	tree := b.launch("Where is the harbour light?", b.put(coast()...), searchConfig("openai:m"))
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "On the northern mole. [^1]" {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 5)
	d := data(t, &root)
	if len(d.Citations) < 3 || d.QuotesDropped != 0 {
		t.Fatalf("%d quotes dropped, citations %+v", d.QuotesDropped, d.Citations)
	}
	if q := d.Citations[0]; q.Kind != model.CitedQuote || q.File != "chart/lights.txt" || q.StartLine != 3 ||
		q.EndLine != 4 || q.Text != "The harbour light stands on the northern\nmole." {
		t.Errorf("the quote is %+v", q)
	}
	if !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.HasPrefix(n, "found by retrieval: text of ") }) {
		t.Errorf("notes: %q", d.Notes)
	}
}

// A search asks for no further reply when the worker is stopping, and goes on there in the next.
func TestSearchOfAStoppingWorker(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, searching)
	b := newBench(t, m)
	var asked atomic.Int64
	b.stopping = func() context.Context {
		if asked.Add(1) == 3 {
			return ended(t.Context())
		}
		return t.Context()
	}
	tree := b.launch("Where is the harbour light?", b.put(coast()...), searchConfig("openai:m"))
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "On the northern mole. [^1]" || root.Attempts != 1 {
		t.Errorf("tree is %s with %q in attempt %d: %+v", got.State, root.Result, root.Attempts, root.Error)
	}
	if n := b.count(tree.ID, perdure.EventTaskReleased); n != 1 {
		t.Errorf("the task was released %d times", n)
	}
	b.asks(server, tree.ID, 5)
}

// A model that does not use the protocol is corrected once; then its reply is the answer.
func TestSearchOfPlainReplies(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{repeat: -1, text: "It is reply {{n}}."}]`)
	b := newBench(t, m)
	tree := b.launch("Where is the harbour light?", b.put(coast()...), searchConfig("openai:m"))
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "It is reply 2." {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 2)
}

// Past the last reply only an answer is asked for.
func TestSearchEnds(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: 'is reply 3 and the last one', text: "It is nowhere."}
- {repeat: -1, text: "SEARCH {{n}}"}`)
	b := newBench(t, m)
	config := searchConfig("openai:m")
	config["search_replies"] = 3
	tree := b.launch("Where is the harbour light?", b.put(coast()...), config)
	_, root := b.finish(tree.ID, 1)
	b.asks(server, tree.ID, 3)
	if d := data(t, &root); root.Result != "It is nowhere." || !slices.Contains(d.Notes, "no quote supports the answer") {
		t.Errorf("%q, %q, %+v", root.Result, d.Notes, root.Error)
	}
}

// The prompt names a repeated request once, and then the search ends with the places that were shown.
// One that makes other requests, or answers, goes on.
func TestSearchEndsRepetitions(t *testing.T) {
	t.Parallel()
	const told = "{match: 'Your last reply repeated requests', text: "
	const light = `{repeat: -1, text: "SEARCH light"}`
	for name, c := range map[string]struct {
		replies string // the first that matches is used
		calls   int
		want    string
		state   perdure.State
	}{
		"one request":   {light, 3, "(no answer: the model repeated", perdure.Partial},
		"other letters": {`{text: "SEARCH Light"}, {text: "SEARCH  LIGHT"}, ` + light, 3, "(no answer", perdure.Partial},
		"a range":       {`{repeat: -1, text: "READ chart/lights.txt:1-2"}`, 3, "(no answer", perdure.Partial},
		"a folder":      {`{repeat: -1, text: "LIST chart/"}`, 3, "(no answer", perdure.Partial},
		"no such file":  {`{repeat: -1, text: "READ nothing.txt"}`, 3, "(no answer", perdure.Partial},
		"two in turn": {`{text: "SEARCH a"}, {text: "SEARCH b"}, {text: "SEARCH a"}, {text: "SEARCH b"}, ` + light, 4,
			"(no answer", perdure.Partial},
		"no query": {`{repeat: -1, text: "SEARCH"}`, 3, "replies that are no request", perdure.Partial},
		"an answer after it": {told + `"ANSWER\nOn the mole."}, ` + light, 4, "On the mole.",
			perdure.Completed}, // it has no quote, and is asked for again
		"another request after it": {told + `"SEARCH mole", repeat: 1}, {match: 'passages for .mole.', ` +
			`text: "ANSWER\nThere. [^1]\n[^1]: chart/lights.txt:1\n> Lights of the coast."}, ` + light, 4, "There. [^1]",
			perdure.Completed},
		"an answer behind it": {`{text: "SEARCH light"}, {text: "SEARCH light\nANSWER\nOn the mole."}`, 2, "On the mole.",
			perdure.Completed},
		"more of the same": {`{text: "SEARCH light"}, {text: "SEARCH light\nSEARCH mole"}, {text: "READ chart/lights.txt:1"}, ` +
			`{text: "READ chart/lights.txt:1-2"}, {repeat: -1, text: "ANSWER\nOn the mole."}`, 6, "On the mole.",
			perdure.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, m := endpoint(t, "replies: ["+c.replies+"]")
			b := newBench(t, m)
			tree := b.launch("Where is the harbour light?", b.put(coast()...), searchConfig("openai:m"))
			got, root := b.finish(tree.ID, 1)
			if got.State != c.state || !strings.Contains(root.Result, c.want) {
				t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
			}
			b.asks(server, tree.ID, c.calls)
			d := data(t, &root)
			hinted := strings.Contains(strings.Join(d.Notes, "\n"), "use another --model, or --planner split")
			if hinted != (c.state == perdure.Partial) || len(d.Citations) == 0 {
				t.Errorf("%d citations, notes %q", len(d.Citations), d.Notes)
			}
		})
	}
}

// A budget that pays for few replies ends the search with an answer.
func TestSearchWithinBudget(t *testing.T) {
	t.Parallel()
	for field, budget := range map[string]int{"budget_calls": 2, "budget_tokens": 40_000} {
		server, m := endpoint(t, `replies:
- {match: 'the last one: write ANSWER', text: "On the mole, I think."}
- {repeat: -1, text: "SEARCH {{n}} light"}`)
		b := newBench(t, m)
		config := searchConfig("openai:m")
		config[field], config["answer_tokens"] = budget, 1000
		tree := b.launch("Where is the harbour light?", b.put(coast()...), config)
		got, root := b.finish(tree.ID, 1)
		u := b.usage(tree.ID)
		if got.State != perdure.Completed || root.Result != "On the mole, I think." || u.Calls < 2 || u.Calls > 11 ||
			u.InputTokens+u.OutputTokens > 40_000 {
			t.Errorf("%s: tree is %s with %q, %+v: %+v", field, got.State, root.Result, u, root.Error)
		}
		b.asks(server, tree.ID, int(u.Calls))
	}
}

// Without a planner, a search is chosen when a run would read the context in too many calls,
// and when the budget does not pay for that.
func TestSearchIsChosen(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"openai:m": echo(t)})
	id := b.put(coast()...)
	for _, c := range []struct {
		config M
		why    string
	}{
		{M{"context_window": 8000, "answer_tokens": 1000}, "more than 60 calls (see --search-above)"},
		{M{"context_window": 8000, "answer_tokens": 1000, "search_above": -1}, ""},
		{M{"context_window": 8000, "answer_tokens": 1000, "search_above": 1000}, ""},
		{M{"context_window": 8000, "answer_tokens": 1000, "planner": "split"}, ""},
		{M{"context_window": 8000, "answer_tokens": 1000, "merge": "summarize"}, ""},
		{M{"context_window": 8000, "answer_tokens": 1000, "strategy": "sequential"}, ""},
		{M{"context_window": 8000, "answer_tokens": 1000, "sub_model": extract.Name}, ""},
		{M{"context_window": 2000, "answer_tokens": 300}, ""}, // no room for a search
		{M{"context_window": 64_000}, ""},
		{M{"context_window": 64_000, "budget_calls": 12}, "more than the budget of 12 calls"},
		{M{"context_window": 64_000, "budget_tokens": 100_000}, "more than the budget of 100000 tokens"},
		{M{"model": extract.Name}, ""},
	} {
		if c.config["model"] == nil {
			c.config["model"] = "openai:m"
		}
		tree := b.launch("Where is the harbour light?", id, c.config)
		text := string(tree.Config)
		if chosen := strings.Contains(text, `"planner":"search"`); chosen != (c.why != "") || !strings.Contains(text, c.why) {
			t.Errorf("%v: %s", c.config, text)
		}
	}
}

// A search that failed is retried from its replies.
func TestRetriedSearchKeepsReplies(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: 'passages for .two.', status: 400, message: no, repeat: 1}
- {match: 'passages for .two.', text: "ANSWER\nDone. [^1]\n[^1]: chart/lights.txt:1\n> Lights of the coast."}
- {match: 'passages for .one.', text: "SEARCH two"}
- {text: "SEARCH one"}`)
	b := newBench(t, m)
	tree := b.launch("Where is the harbour light?", b.put(coast()...), searchConfig("openai:m"))
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed {
		t.Fatalf("tree is %s: %+v", got.State, root)
	}
	b.ok(b.store.RetryTask(t.Context(), root.ID))
	if _, root = b.finish(tree.ID, 1); root.Result != "Done. [^1]" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
	if n := server.Ledger().Totals().Started; n != 4 {
		t.Errorf("%d requests, want 4: each search once, the refused one, and the answer", n)
	}
}

// An attempt of a search after one that a server in trouble ended uses its replies.
func TestSearchAttemptsShareReplies(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: 'passages for .two.', status: 503, message: busy, repeat: 1}
- {match: 'passages for .two.', text: "ANSWER\nDone. [^1]\n[^1]: chart/lights.txt:1\n> Lights of the coast."}
- {match: 'passages for .one.', text: "SEARCH two"}
- {text: "SEARCH one"}`)
	b := newBench(t, m)
	config := searchConfig("openai:m")
	config["call_retries"], config["max_attempts"] = 0, 3
	tree := b.launch("Where is the harbour light?", b.put(coast()...), config)
	if _, root := b.finish(tree.ID, 1); root.Result != "Done. [^1]" || root.Attempts != 2 {
		t.Errorf("attempt %d has the result %q, %+v", root.Attempts, root.Result, root.Error)
	}
	if n := server.Ledger().Totals().Started; n != 4 {
		t.Errorf("%d requests, want 4: each search once, the refused one, and the answer", n)
	}
}

// A search whose last reply is no answer is made again when it is retried.
func TestSearchWithoutAnswer(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: 'the last one: write ANSWER', text: "SEARCH more", repeat: 1}
- {match: 'the last one: write ANSWER', text: "On the mole."}
- {repeat: -1, text: "SEARCH light"}`)
	b := newBench(t, m)
	config := searchConfig("openai:m")
	config["search_replies"] = 2
	tree := b.launch("Where is the harbour light?", b.put(coast()...), config)
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindNoAnswer {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	b.ok(b.store.RetryTask(t.Context(), root.ID))
	if _, root = b.finish(tree.ID, 1); root.Result != "On the mole." {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
	if n := server.Ledger().Totals().Started; n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}

// TestDeathWhileSearching kills the process at each request of a search: the answer is the
// same, and no request whose answer arrived is made again.
func TestDeathWhileSearching(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after the answer %v", after), func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: script(t, searching)}
			b := newBench(t, models{"mock:m": m})
			tree := b.launch("Where is the harbour light?", b.put(coast()...), searchConfig("mock:m"))
			deaths := 0
			for !b.die(m, tree.ID, 2, after) {
				deaths++
				b.close()
				b.open()
			}
			root, err := b.store.Task(t.Context(), tree.Root)
			b.ok(err)
			if root.Result != "On the northern mole. [^1]" || deaths < 2 {
				t.Errorf("after %d deaths the result is %q, %+v", deaths, root.Result, root.Error)
			}
			if got := m.Ledger().Repeated(); len(got) != 0 || m.Ledger().Totals().Finished != 5 {
				t.Errorf("asked again: %+v of %+v", got, m.Ledger().Totals())
			}
		})
	}
}

// reading searches and reads a range before it answers; its server reads less than the window
// that the search was given.
const reading = `limit: 1500
replies:
- {match: 'READ log/day390', text: "ANSWER\nOn the mole. [^1]\n\n[^1]: chart/lights.txt:3-4\n> The harbour light stands on the northern mole."}
- {match: 'passages for .boats.', text: "READ log/day390.txt:1-20"}
- {match: 'SEARCH words', text: "SEARCH boats"}
`

// A request that the model finds too long is sent again without older passages. The refusal is
// in the journal, and is not asked for again by an attempt or a process that repeats the search.
func TestSearchShortensRequests(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"default", "strict"} {
		server, ms := endpoint(t, reading)
		b := newBench(t, ms)
		config := searchConfig("openai:m")
		config["mode"], config["seed"] = mode, 1
		tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), config)
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Completed || root.Result != "On the mole. [^1]" {
			t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
		}
		d := data(t, &root)
		if !slices.ContainsFunc(d.Notes, func(n string) bool {
			return strings.HasPrefix(n, "model \"openai:m\" found ") && strings.Contains(n, " left out of later ones: ")
		}) {
			t.Errorf("notes: %q", d.Notes)
		}
		refused, answered := b.refused(tree.ID)
		if refused == 0 || answered != 3 || server.Ledger().Totals().Started != refused+answered {
			t.Errorf("%d requests were refused, %d answered, the server has %+v", refused, answered, server.Ledger().Totals())
		}
	}
}

// A search with a schema asks for the value with its quotes apart from it, and needs no further
// call for a value that is valid.
func TestSearchWithSchema(t *testing.T) {
	t.Parallel()
	const quotes = `\n\n[^1]: chart/lights.txt:3-4\n> The harbour light stands on the northern mole."}`
	schema := M{"type": "object", "required": []string{"where"}, "properties": M{"where": M{"type": "string"}}}
	for _, tt := range []struct {
		name, script string
		calls        int
		quoted       bool
	}{
		{"value and quotes", `[{match: 'JSON Schema of the answer:\s+\{"properties"', text: "ANSWER\n{\"where\": \"the mole [^1]\"}` + quotes + `]`, 1, true},
		{"in a fence", "[{text: \"ANSWER\\n```json\\n{\\\"where\\\": \\\"the mole\\\"}\\n```" + quotes + `]`, 1, true},
		{"last reply", `[{match: 'the last one: write ANSWER and one JSON value that is valid', text: "{\"where\": \"the mole\"}` +
			quotes + `, {repeat: -1, text: "SEARCH {{n}}"}]`, 3, true},
		{"without the word, without quotes", `[{repeat: 2, text: "{\"where\": \"the mole\"}"}]`, 2, false},
		{"not valid", `[{match: 'what was found ===\s+The mole.\s+===', text: '{"where": "the mole"}'}, {text: "ANSWER\nThe mole. [^1]` +
			quotes + `]`, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, ms := endpoint(t, "replies: "+tt.script)
			b := newBench(t, ms)
			config := searchConfig("openai:m")
			config["schema"], config["search_replies"], config["cite"] = schema, 3, true
			tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), config)
			got, root := b.finish(tree.ID, 1)
			if got.State != perdure.Completed || !strings.HasPrefix(root.Result, `{"where":"the mole`) ||
				strings.Contains(root.Result, "[^") {
				t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
			}
			b.asks(server, tree.ID, tt.calls)
			d := data(t, &root)
			quoted := len(d.Citations) > 0 && d.Citations[0].Kind == model.CitedQuote
			if quoted != tt.quoted || slices.Contains(d.Notes, "no quote supports the answer") == quoted ||
				string(d.Structured) != root.Result {
				t.Errorf("citations %+v, notes %q, structured %s", d.Citations, d.Notes, d.Structured)
			}
			calls, err := b.store.Calls(t.Context(), root.ID)
			b.ok(err)
			if len(calls) != tt.calls {
				t.Errorf("%d calls", len(calls))
			}
		})
	}
}

// A question that is too long by itself fails with what can be done about it.
func TestSearchCannotShorten(t *testing.T) {
	t.Parallel()
	_, ms := endpoint(t, "limit: 100\nreplies: [{text: x}]")
	b := newBench(t, ms)
	tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), searchConfig("openai:m"))
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindTooLong ||
		!strings.Contains(root.Error.Message, "shorten the prompt") {
		t.Errorf("tree is %s: %+v", got.State, root.Error)
	}
}

// TestDeathWhileShortening kills the process at each request of a search whose requests are too
// long: the answer is the same, and no request is sent again whose answer or refusal was recorded.
func TestDeathWhileShortening(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"default", "strict"} {
		for at := 2; at <= 3; at++ {
			t.Run(fmt.Sprintf("%s at %d", mode, at), func(t *testing.T) {
				t.Parallel()
				m := &mortal{Model: script(t, reading)}
				b := newBench(t, models{"mock:m": m})
				config := searchConfig("mock:m")
				config["mode"], config["seed"] = mode, 1
				tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), config)
				deaths := 0
				for ; !b.die(m, tree.ID, at, true); deaths++ {
					b.close()
					b.open()
				}
				root, err := b.store.Task(t.Context(), tree.Root)
				b.ok(err)
				if root.Result != "On the mole. [^1]" || deaths == 0 {
					t.Errorf("after %d deaths the result is %q, %+v", deaths, root.Result, root.Error)
				}
				if u := b.usage(tree.ID); int(u.Calls) != m.Ledger().Totals().Started {
					t.Errorf("%+v of %+v", u, m.Ledger().Totals())
				}
				again := 0
				for _, e := range m.Ledger().Entries() {
					again += e.Started - 1
				}
				if lost := int(b.usage(tree.ID).UncertainCalls); again != lost {
					t.Errorf("%d requests were sent again, %d have an unknown outcome", again, lost)
				}
			})
		}
	}
}

func TestSearchRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"openai:m": echo(t)})
	id := b.put(coast()...)
	for _, c := range []struct {
		config  M
		context string
		want    string
	}{
		{M{}, "", "there is no context to search"},
		{M{"batch": true}, id, "planner: a batch reads each file"},
		{M{"model": extract.Name}, id, "ranks passages without a search"},
		{M{"samples": 2}, id, "gives one answer"},
		{M{"merge": "vote"}, id, "gives one answer"},
		{M{"min_score": 50}, id, "are not judged"},
		{M{"strategy": "sequential"}, id, "no parts to run in a strategy"},
		{M{"search_replies": 13}, id, "search_replies: 13 is not between 1 and 12"},
		{M{"search_above": -2}, id, "search_above: -2"},
		{M{"context_window": 2000}, id, "there is room for "},
		{M{"budget_tokens": 5000}, id, "the budget pays for 5000 tokens; a search needs at least 6000"},
	} {
		c.config["planner"] = "search"
		if c.config["model"] == nil {
			c.config["model"] = "openai:m"
		}
		if _, err := b.tryLaunch("Where?", c.context, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.config, err, c.want)
		}
	}
}
