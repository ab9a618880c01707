package rlm_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/replyserver"
)

// Words of servers that refuse a text, with the limit and their count of its tokens.
const (
	wordsOfOpenAI = `{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted ` +
		`in %d tokens. Please reduce the length of the messages.","type":"invalid_request_error","code":"context_length_exceeded"}}`
	wordsOfMistral = `{"object":"error","message":"Prompt contains %[2]d tokens and 0 draft tokens, too large for model with ` +
		`%[1]d maximum context length","type":"invalid_request_error","code":"3051"}`
	wordsOfTogether = `{"error":{"message":"This model's maximum context length is %d tokens. Your request has %d input tokens. ` +
		`Please reduce the length of the input.","type":"invalid_request_error"}}`
	wordsOfOllama = `{"error":{"message":"input length exceeds maximum context length","type":"api_error"}}`
	wordsOfLlama  = `{"error":{"code":400,"message":"request (%[2]d tokens) exceeds the available context size (%[1]d ` +
		`tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":%[2]d,"n_ctx":%[1]d}}`
	briefWords = `{"error":{"message":"prompt is too long","type":"invalid_request_error"}}`
)

// windowCase is a conversation with a server that refuses long requests.
type windowCase struct {
	name string
	// limit is how many tokens the server takes, 0 for any number, each of so many bytes, 4 by default.
	limit, bytes int
	// words are those of a refusal.
	words string
	// summary is the reply to a request for a summary: "refused" is a refusal.
	summary string
	config  M
	turns   []string

	result string
	// partial is set if the conversation cannot go on.
	partial bool
	// summaries and refusals are how many of these requests there are at most.
	summaries, refusals int
	note                string
}

// rows prints a long output, which ends with the number of the turn.
func rows(turn, bytes int) string {
	return block(fmt.Sprintf("n = %d", turn), fmt.Sprintf("print('row ' * %d + 'END%d')", bytes/4, turn))
}

// manyRows are turns with long outputs, and a last one.
func manyRows(count, bytes int, last string) (list []string) {
	for i := range count {
		list = append(list, rows(i+1, bytes))
	}
	return append(list, last)
}

const goodSummary = "Turns printed rows; n counts them."

// windowServer answers the requests of conversations.
type windowServer struct {
	*replyserver.Server
	c windowCase
}

// request is what a test reads of a request.
type sentRequest struct {
	tokens    int
	isSummary bool
	turn      int
	text      string
}

func (c *windowCase) read(r *replyserver.Request) (out sentRequest) {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	_ = json.Unmarshal(r.Body, &body)
	size, turnMark := 0, regexp.MustCompile(`Turn (\d+)/`)
	for i, m := range body.Messages {
		size += len(m.Content)
		out.text += m.Role + ": " + m.Content + "\n"
		out.isSummary = out.isSummary || i == 0 && strings.HasPrefix(m.Content, "You summarise")
		for _, at := range turnMark.FindAllStringSubmatch(m.Content, -1) {
			out.turn, _ = strconv.Atoi(at[1])
		}
	}
	out.tokens = size / max(c.bytes, 1)
	if c.bytes == 0 {
		out.tokens = size / 4
	}
	return out
}

func (c *windowCase) refuses(r *sentRequest) bool {
	return c.limit > 0 && r.tokens > c.limit || r.isSummary && c.summary == "refused"
}

func (c *windowCase) answer(r replyserver.Request) []byte {
	got := c.read(&r)
	switch {
	case c.refuses(&got):
		text := c.words
		if strings.Contains(text, "%") {
			text = fmt.Sprintf(text, c.limit, got.tokens)
		}
		return replyserver.JSON(400, text)
	case got.isSummary:
		return replyserver.Chat(c.summary)
	case got.turn == 0 || got.turn > len(c.turns):
		return replyserver.Chat("FINAL(no such turn)")
	}
	return replyserver.Chat(strings.ReplaceAll(c.turns[got.turn-1], "'''", "```"))
}

// counts returns how many requests for summaries, and refused ones, a server had.
func (s *windowServer) counts() (summaries, refusals int) {
	for _, r := range s.Requests() {
		got := s.c.read(&r)
		if got.isSummary {
			summaries++
		}
		if s.c.refuses(&got) {
			refusals++
		}
	}
	return summaries, refusals
}

func windowCases() []windowCase {
	known := func(window int) M { return M{"context_window": window, "answer_tokens": 500} }
	whole := block("FINAL(len(history[2]['content']) > 9000 and history[0]['role'] == 'user')")
	return []windowCase{
		{name: "a short conversation stays as it is", config: known(8000), turns: manyRows(3, 400, block("FINAL(n)")),
			result: "3"},
		{name: "old outputs are shortened", config: known(12_000), turns: manyRows(8, 9000, block("FINAL(n)")), result: "8",
			note: "old outputs are shortened"},
		{name: "the whole text is in history", config: known(12_000), turns: manyRows(8, 9600, whole), result: "True"},
		{name: "a window of 200,000", config: known(200_000), turns: manyRows(8, 9000, block("FINAL(n)")), result: "8"},
		{name: "many turns are summarised", config: M{"context_window": 4500, "answer_tokens": 500},
			turns: manyRows(24, 6000, block("FINAL(n)")), result: "24", summary: goodSummary, summaries: 8},
		{name: "a summary is empty", config: M{"context_window": 4500, "answer_tokens": 500},
			turns: manyRows(20, 6000, block("FINAL(n)")), result: "20", summary: " ", summaries: 6, note: "wrote no summary"},
		{name: "a summary is refused", config: M{"context_window": 4500, "answer_tokens": 500},
			turns: manyRows(20, 6000, block("FINAL(n)")), result: "20", summary: "refused", words: briefWords, summaries: 3,
			refusals: 3, note: "wrote no summary"},
		{name: "a summary is too long", config: M{"context_window": 4500, "answer_tokens": 500},
			turns: manyRows(20, 6000, block("FINAL(n)")), result: "20", summary: strings.Repeat("I see rows. ", 3000),
			summaries: 8},
		{name: "a summary that looks like an answer", config: M{"context_window": 4500, "answer_tokens": 500},
			turns: manyRows(20, 6000, block("FINAL(n)")), result: "20", summary: "FINAL(42)", summaries: 8},
		{name: "the last output alone is too long", config: known(4000), turns: manyRows(1, 60_000, block("FINAL(n)")),
			result: "1"},
		{name: "the code has a variable history", config: known(12_000), result: "(7, True)", turns: append([]string{
			block("history = 7", "print('x')")}, manyRows(8, 9000, block("FINAL((history, len(perdure.history) > 9))"))[1:]...)},
		{name: "the window is learned, OpenAI", limit: 6000, words: wordsOfOpenAI,
			turns: manyRows(8, 6000, block("FINAL(n)")), result: "8", refusals: 3, note: "old outputs are shortened"},
		{name: "the window is learned, Mistral", limit: 6000, words: wordsOfMistral,
			turns: manyRows(8, 6000, block("FINAL(n)")), result: "8", refusals: 3},
		{name: "the window is learned, Together", limit: 6000, words: wordsOfTogether,
			turns: manyRows(8, 6000, block("FINAL(n)")), result: "8", refusals: 3},
		{name: "the window is learned, llama.cpp", limit: 6000, words: wordsOfLlama,
			turns: manyRows(8, 6000, block("FINAL(n)")), result: "8", refusals: 3},
		{name: "the server names no limit", limit: 6000, words: wordsOfOllama, turns: manyRows(8, 6000, block("FINAL(n)")),
			result: "8", refusals: 4, summary: goodSummary, summaries: 3},
		{name: "the server counts more tokens", limit: 9000, bytes: 2, words: wordsOfOpenAI, config: known(9000),
			turns: manyRows(8, 6000, block("FINAL(n)")), result: "8", refusals: 4, summary: goodSummary, summaries: 3},
		{name: "the server says little", limit: 6000, words: briefWords, turns: manyRows(12, 6000, block("FINAL(n)")),
			result: "12", refusals: 4, summary: goodSummary, summaries: 3},
		{name: "a learned window, and summaries", limit: 2600, words: wordsOfOpenAI,
			turns: manyRows(16, 6000, block("FINAL(n)")), result: "16", refusals: 6, summary: goodSummary, summaries: 8},
		{name: "the first request does not fit", config: M{"context_window": 1000, "answer_tokens": 500},
			turns: manyRows(2, 6000, block("FINAL(n)")), note: "turn 0"},
		{name: "the second request does not fit", config: M{"context_window": 1200, "answer_tokens": 100}, partial: true,
			turns: manyRows(2, 6000, block("FINAL(n)")), result: "(no answer: the conversation"},
		{name: "a draft is kept", limit: 1500, words: wordsOfOpenAI, partial: true, result: "a draft", refusals: 6,
			turns: []string{block("answer['content'] = 'a draft'", "n = 5", "print('"+strings.Repeat("row ", 2500)+"')")},
			note:  "refuses the conversation"},
		{name: "without a draft, what was printed", limit: 1500, words: wordsOfOllama, partial: true,
			result: "(no answer: the conversation", refusals: 6, turns: []string{block("print('seen')", "#"+
				strings.Repeat("long ", 2000))}},
		{name: "an exception with a long text", config: known(6000), result: "5", turns: append(manyRows(4, 5000,
			block("m = 5", "fail('x' * 30000)")), block("FINAL(m)"))},
		{name: "several blocks of a reply", config: known(9000), result: "6", turns: append(manyRows(5, 3000, rows(6, 9000)+
			"\n"+rows(6, 9000)+"\n"+rows(6, 9000)), block("FINAL(n)"))},
		{name: "text of three bytes for a character", config: known(9000), result: "6", limit: 9000, words: wordsOfOpenAI,
			turns: append(manyRows(5, 3000, block("n = 6", "print('表' * 9000)")), block("FINAL(n)"))},
	}
}

// A conversation that is longer than its model reads goes on: with shortened outputs, then with a summary.
func TestConversationLongerThanTheWindow(t *testing.T) {
	t.Parallel()
	for _, c := range windowCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &windowServer{c: c}
			s.Server = replyserver.Start(t, c.answer)
			b := newBench(t, models{"openai:f": servedModel(t, s.URL)})
			config := replConfig("openai:f")
			config["repl_engine"] = "starlark"
			for k, v := range c.config {
				config[k] = v
			}
			tree := b.launch("What is there?", "", config)
			got, root := b.finish(tree.ID, 1)
			b.wantWindow(s, &got, &root)
		})
	}
}

// wantWindow compares a run with its case.
func (b *bench) wantWindow(s *windowServer, tree *perdure.Tree, root *perdure.Task) {
	b.Helper()
	c := &s.c
	summaries, refusals := s.counts()
	if summaries > c.summaries || c.summary != "" && summaries == 0 || refusals > c.refusals ||
		c.refusals > 0 && refusals == 0 {
		b.Errorf("%d summaries, %d refusals; at most %d and %d", summaries, refusals, c.summaries, c.refusals)
	}
	want := perdure.Completed
	if c.partial {
		want = perdure.Partial
	}
	if c.note == "turn 0" { // there is nothing that could be kept
		if tree.State != perdure.Failed || !strings.Contains(root.Error.Message, "--context-window") {
			b.Errorf("the tree is %s: %+v", tree.State, root.Error)
		}
		return
	}
	if tree.State != want || !strings.HasPrefix(root.Result, c.result) {
		b.Fatalf("the tree is %s with %q: %+v %s", tree.State, root.Result, root.Error, root.Data)
	}
	notes := strings.Join(data(b.T, root).Notes, "\n")
	if c.note == "" && c.name[:7] == "a short" && notes != "" || !strings.Contains(notes, c.note) {
		b.Errorf("notes %q", notes)
	}
	calls, err := b.store.Calls(b.Context(), root.ID)
	b.ok(err)
	if len(calls) != len(s.Requests()) {
		b.Errorf("the journal has %d calls for %d requests", len(calls), len(s.Requests()))
	}
	window, _ := c.config["context_window"].(int)
	for _, r := range s.Requests() {
		if got := c.read(&r); window > 0 && c.bytes == 0 && got.tokens > window-c.config["answer_tokens"].(int) {
			b.Errorf("a request has %d tokens", got.tokens)
		}
	}
	if c.partial {
		b.wantNothingSent(s, tree.ID)
	}
	if r, err := b.exec.Replay(b.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
		b.Errorf("replay: %+v, %v", r, err)
	}
}

// wantNothingSent wants a tree whose resumption says that nothing would change.
func (b *bench) wantNothingSent(s *windowServer, tree perdure.TreeID) {
	b.Helper()
	before := len(s.Requests())
	_, err := b.resume(tree, M{})
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(perdure.HintOf(err), "--model") {
		b.Errorf("resume: %v", err)
	}
	_, err = b.resume(tree, M{"budget_calls": 100})
	if perdure.CodeOf(err) != perdure.CodeInvalid || len(s.Requests()) != before {
		b.Errorf("resume with another budget: %v", err)
	}
}

// A conversation that its model does not read goes on with another one, which is asked nothing that was
// answered, and whose code and variables are those from before.
func TestConversationGoesOnWithAnotherModel(t *testing.T) {
	t.Parallel()
	c := windowCase{limit: 2200, words: wordsOfOpenAI, turns: []string{block("n = 41", "print('"+strings.Repeat("row ",
		2500)+"')"), block("FINAL(n + 1)")}}
	small := &windowServer{c: c}
	small.Server = replyserver.Start(t, c.answer)
	large := &windowServer{c: windowCase{turns: []string{block("n = 1"), c.turns[1]}}}
	large.Server = replyserver.Start(t, large.c.answer)
	b := newBench(t, models{"openai:f": servedModel(t, small.URL), "openai:g": servedModel(t, large.URL)})
	config := replConfig("openai:f")
	config["repl_engine"] = "starlark"
	tree := b.launch("What?", "", config)
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Partial {
		t.Fatalf("the tree is %s: %+v", got.State, root.Error)
	}
	_, err := b.resume(tree.ID, M{"model": "openai:g"})
	b.ok(err)
	got, root = b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "42" || len(large.Requests()) != 1 {
		t.Errorf("the tree is %s with %q after %d requests: %+v", got.State, root.Result, len(large.Requests()), root.Error)
	}
	b.sound()
}

// A tree of a version before makes the requests that it made, and is shortened only when the model has
// refused one.
func TestConversationOfAVersionBefore(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 6000} {
		c := windowCase{limit: limit, words: wordsOfOpenAI, turns: manyRows(8, 6000, block("FINAL(n)"))}
		s := &windowServer{c: c}
		s.Server = replyserver.Start(t, c.answer)
		b := newBench(t, models{"openai:f": servedModel(t, s.URL)})
		config := replConfig("openai:f")
		config["repl_engine"], config["context_window"] = "starlark", 4000
		tree := b.launch("What?", "", config)
		b.change(`UPDATE task SET metadata = replace(metadata, ',"fits":true', '')`)
		b.close()
		b.open()
		got, root := b.finish(tree.ID, 1)
		summaries, refusals := s.counts()
		if got.State != perdure.Completed || root.Result != "8" || summaries > 0 || (refusals > 0) != (limit > 0) {
			t.Errorf("limit %d: the tree is %s with %q, %d summaries, %d refusals", limit, got.State, root.Result, summaries,
				refusals)
		}
		if all := s.Requests(); limit == 0 && c.read(&all[len(all)-1]).tokens < 12_000 {
			t.Error("the conversation was shortened")
		}
	}
}

// A window that the user states again, when the tree is resumed, is tried.
func TestConversationGoesOnWithAnotherWindow(t *testing.T) {
	t.Parallel()
	c := windowCase{turns: manyRows(2, 9000, block("FINAL(n)"))}
	s := &windowServer{c: c}
	s.Server = replyserver.Start(t, c.answer)
	b := newBench(t, models{"openai:f": servedModel(t, s.URL)})
	config := replConfig("openai:f")
	config["repl_engine"], config["context_window"], config["answer_tokens"] = "starlark", 1200, 100
	tree := b.launch("What?", "", config)
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Partial || len(s.Requests()) > 2 {
		t.Fatalf("the tree is %s after %d requests: %+v", got.State, len(s.Requests()), root.Error)
	}
	_, err := b.resume(tree.ID, M{"context_window": 16_000})
	b.ok(err)
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Completed || root.Result != "2" || len(s.Requests()) != 3 {
		t.Errorf("the tree is %s with %q after %d requests: %+v", got.State, root.Result, len(s.Requests()), root.Error)
	}
	plain := b.launch("What?", "", M{"model": "openai:f", "budget_calls": 1})
	if _, err := b.resume(plain.ID, M{"context_window": 16_000}); perdure.CodeOf(err) != perdure.CodeInvalid {
		t.Errorf("another planner: %v", err)
	}
}

// A further question goes on with a conversation that was shortened, also with code that has read
// history.
func TestFurtherQuestionOfALongConversation(t *testing.T) {
	t.Parallel()
	c := windowCase{summary: goodSummary, turns: manyRows(8, 6000,
		block("long = len(history)", "FINAL(n)"))}
	s := &windowServer{c: c}
	s.Server = replyserver.Start(t, func(r replyserver.Request) []byte {
		if got := c.read(&r); strings.Contains(got.text, "And how long?") && !got.isSummary {
			return replyserver.Chat("```repl\nFINAL((n, long, len(history) > long))\n```")
		}
		return c.answer(r)
	})
	b := newBench(t, models{"openai:f": servedModel(t, s.URL)})
	config := replConfig("openai:f")
	config["repl_engine"], config["context_window"], config["answer_tokens"] = "starlark", 4500, 500
	tree := b.launch("What?", "", config)
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Completed || root.Result != "8" {
		t.Fatalf("the tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	before := len(s.Requests())
	second, err := b.ask(tree.ID, "And how long?", nil)
	b.ok(err)
	got, root := b.finish(second.ID, 1)
	if got.State != perdure.Completed || root.Result != "(8, 18, True)" || len(s.Requests())-before > 2 {
		t.Errorf("the tree is %s with %q after %d requests: %+v", got.State, root.Result, len(s.Requests())-before,
			root.Error)
	}
	b.noDivergence(second.ID)
	if r, err := b.exec.Replay(t.Context(), second.ID); err != nil || len(r.Differences) > 0 {
		t.Errorf("replay: %+v, %v", r, err)
	}
}

// The process can die at any request of a conversation that is shortened and summarised: nothing that
// was answered is asked again, and the answer is the same.
func TestDeathInAConversationLongerThanTheWindow(t *testing.T) {
	t.Parallel()
	var replies strings.Builder
	replies.WriteString("replies:\n- {match: '^The question:', repeat: -1, text: 'n counts the turns'}\n")
	for i := 9; i > 0; i-- {
		text := strings.ReplaceAll(rows(i, 6000), "'''", "```")
		if i == 9 {
			text = "```repl\nFINAL((n, len(history) > 3))\n```"
		}
		fmt.Fprintf(&replies, "- {match: 'Turn %d/', text: %q}\n", i, text)
	}
	for _, after := range []bool{false, true} {
		for at := 4; at <= 11; at++ {
			t.Run(fmt.Sprintf("at %d, after the answer %v", at, after), func(t *testing.T) {
				t.Parallel()
				m := &mortal{Model: script(t, replies.String())}
				b := newBench(t, models{"mock:m": m})
				config := replConfig("mock:m")
				config["repl_engine"], config["context_window"], config["answer_tokens"] = "starlark", 3600, 300
				tree := b.launch("What?", "", config)
				for n := at; !b.die(m, tree.ID, n, after); n = -1 {
					b.close()
					b.open()
				}
				root, err := b.store.Task(t.Context(), tree.Root)
				b.ok(err)
				if root.Result != "(8, True)" {
					t.Fatalf("%q, %+v", root.Result, root.Error)
				}
				if got := m.Ledger().Repeated(); len(got) != 0 {
					t.Errorf("asked again: %+v", got)
				}
				b.noDivergence(tree.ID)
			})
		}
	}
}

// noDivergence wants a tree whose repeated conversation made the recorded requests.
func (b *bench) noDivergence(tree perdure.TreeID) {
	b.Helper()
	events, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: tree})
	b.ok(err)
	if i := slices.IndexFunc(events, func(e perdure.Event) bool {
		return e.Kind == "repl.diverged" || e.Kind == perdure.EventCallDiverged
	}); i >= 0 {
		b.Errorf("%s %s", events[i].Kind, events[i].Data)
	}
}
