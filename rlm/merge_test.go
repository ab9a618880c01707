package rlm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// summarizing answers for parts and for their results.
const summarizing = `replies:
- {match: "(?s)=== results ===.*=== end of results ===", text: "the whole: {{short}}"}
- {text: "part {{short}}", repeat: -1}`

// The results of all parts fit one call: one call is made, also where the tree
// has levels.
func TestSummarizeInOneCall(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, summarizing)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(120)})
	tree := b.launch("Read.", id, M{"model": "openai:m", "merge": "summarize", "chunk_tokens": 250, "max_children": 3})
	got, root := b.finish(tree.ID, 3)
	if got.State != perdure.Completed || got.Partial || !strings.HasPrefix(root.Result, "the whole: ") {
		t.Fatalf("tree is %s, partial %v, with %q, %+v", got.State, got.Partial, root.Result, root.Error)
	}
	leaves := b.leaves(tree.ID)
	if len(leaves) < 4 {
		t.Fatalf("only %d parts", len(leaves))
	}
	calls := len(b.tasks(tree.ID)) // one for each task that has children, too
	b.asks(server, tree.ID, calls)
	last := server.Ledger().Entries()[calls-1]
	if !strings.Contains(last.Prompt, "You are given the results of ") {
		t.Errorf("the last request is %q", last.Prompt)
	}
}

// Results that do not fit one call are put together in levels, in their order.
func TestSummarizeInLevels(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: "These are not all parts", text: "shortened {{n}}"}
- {match: "Write the one result", text: "the whole"}
- {text: "part {{short}}", size: 1500, repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(120)})
	tree := b.launch("Read.", id, M{"model": "openai:m", "merge": "summarize", "chunk_tokens": 250,
		"context_window": 2450})
	got, root := b.finish(tree.ID, 3)
	parts := len(b.leaves(tree.ID))
	// Of about 400 tokens each, three fit next to prompt and answer.
	groups := (parts + 2) / 3
	if parts%3 == 1 {
		groups-- // the last one goes on as it is
	}
	if got.State != perdure.Completed || root.Result != "the whole" || parts < 4 {
		t.Fatalf("tree of %d parts is %s with %q, %+v", parts, got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, parts+groups+1)
	if d := data(t, &root); len(d.Notes) != 0 {
		t.Errorf("notes: %q", d.Notes)
	}
}

// Text that never fits, not even one by one, is cut, which is noted.
func TestSummarizeCutsWhatNeverFits(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{text: "{{short}} ", size: 5000, repeat: -1}]`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(60)})
	tree := b.launch("Read.", id, M{"model": "openai:m", "merge": "summarize", "chunk_tokens": 250,
		"context_window": 2000})
	got, root := b.finish(tree.ID, 2)
	if got.State != perdure.Completed || len(root.Result) != 5000 {
		t.Fatalf("tree is %s with %d bytes, %+v", got.State, len(root.Result), root.Error)
	}
	d := data(t, &root)
	leaves := b.leaves(tree.ID)
	want := fmt.Sprintf("result 1 of %d: \"text.txt\" lines 1-23 (task %q) has about 1271 tokens and model "+
		"\"openai:m\" reads ",
		len(leaves), leaves[0].ID)
	const ignored = "the server ignores the limit of 500 tokens for answers: it counted 1250"
	if len(d.Notes) < 2 || d.Notes[0] != ignored || !strings.HasPrefix(d.Notes[1], want) ||
		!strings.HasSuffix(d.Notes[1], "its middle was left out of the summary") {
		t.Errorf("notes are %q, want one that begins with %q", d.Notes, want)
	}
	if server.Ledger().Totals().Started > 4*len(leaves) {
		t.Errorf("%d calls for %d parts", server.Ledger().Totals().Started, len(leaves))
	}
}

func TestReductionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.put(file{"text.txt", numbered(2000)})
	tests := []struct {
		name   string
		config M
		want   string
	}{
		{"no room", M{"model": "mock:m", "merge": "summarize", "chunk_tokens": 120, "context_window": 1000,
			"answer_tokens": 690},
			`to summarize, model "mock:m" has room for about`},
		{"a model that quotes", M{"merge": "summarize", "chunk_tokens": 1000}, "summarize needs a model that writes text"},
		{"a vote of passages", M{"merge": "vote", "chunk_tokens": 1000}, "vote compares answers"},
		{"another word", M{"merge": "summarise"}, `"summarise" is not one of`},
	}
	for _, tt := range tests {
		_, err := b.tryLaunch("Read.", id, tt.config)
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	if trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) != 0 {
		t.Errorf("%d trees exist, %v", len(trees), err)
	}
}

// Passages that were found offline are put into words by the root's model.
func TestSummarizePassages(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{match: "needle", text: "It is in the haystack."}]`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(400) + "the needle is here\n" + numbered(400)})
	tree := b.launch("Where is the needle?", id,
		M{"model": "openai:m", "sub_model": "builtin:extract", "merge": "summarize",
			"chunk_tokens": 1000, "max_children": 3})
	_, root := b.finish(tree.ID, 2)
	if root.Result != "It is in the haystack." {
		t.Errorf("result %q, %+v", root.Result, root.Error)
	}
	if d := data(t, &root); len(d.Citations) == 0 || d.Citations[0].StartLine > 401 || d.Citations[0].EndLine < 401 {
		t.Errorf("citations %+v", d.Citations)
	}
	if n := server.Ledger().Totals().Started; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// The votes of all leaves are counted, not majorities of majorities, and ties
// go to the earlier.
func TestVote(t *testing.T) {
	t.Parallel()
	replies := func(texts ...string) string {
		var s strings.Builder
		s.WriteString("replies:\n")
		for i, text := range texts {
			fmt.Fprintf(&s, "- {match: 'part %d of', text: %q}\n", i+1, text)
		}
		return s.String()
	}
	tests := []struct {
		name   string
		script string
		want   string
		votes  []rlm.Vote
	}{
		// With three children a task the majorities are no, no and yes.
		{"all leaves count", replies("No", "no", "YES.", "no", " **No** ", "yes", "Yes", "yes!", "yes"), "YES.",
			[]rlm.Vote{{Answer: "YES.", Count: 5}, {Answer: "No", Count: 4}}},
		{"a tie goes to the earlier", replies("b", "a", "c", "a", "b", "d", "B", "A", "(nothing in this part)"), "b",
			[]rlm.Vote{{Answer: "b", Count: 3}, {Answer: "a", Count: 3}, {Answer: "c", Count: 1}, {Answer: "d", Count: 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, m := endpoint(t, tt.script)
			b := newBench(t, m)
			id := b.put(file{"text.txt", numbered(9 * 23)})
			tree := b.launch("Yes or no?", id, M{"model": "openai:m", "merge": "vote", "chunk_tokens": 250, "max_children": 3,
				"overlap_tokens": -1})
			_, root := b.finish(tree.ID, 3)
			if n := len(b.leaves(tree.ID)); n != 9 {
				t.Fatalf("%d parts", n)
			}
			b.asks(server, tree.ID, 9)
			d := data(t, &root)
			for i := range d.Votes {
				d.Votes[i].Task = 0
			}
			if diff := cmp.Diff(tt.votes, d.Votes); diff != "" || root.Result != tt.want {
				t.Errorf("result %q, want %q; votes: %s", root.Result, tt.want, diff)
			}
			if want := strings.Count(tt.script, "(nothing"); d.Abstained != want {
				t.Errorf("%d abstained, want %d", d.Abstained, want)
			}
		})
	}
}

// TestDeathInASummary kills the process at each request of a run whose results
// are put together in levels: no request is made twice.
func TestDeathInASummary(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		after, width := i%2 == 1, 1+3*(i/2)
		t.Run(fmt.Sprintf("after the answer %v, %d at once", after, width), func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: script(t, `replies: [{text: "{{hash}} ", size: 1500, repeat: -1}]`)}
			b := newBench(t, models{"mock:m": m})
			id := b.put(file{"text.txt", numbered(120)})
			config := M{"model": "mock:m", "merge": "summarize", "chunk_tokens": 250, "context_window": 2000,
				"concurrency": width, "mode": "strict"}
			_, want := b.finish(b.launch("Read.", id, config).ID, 2)
			calls := m.Ledger().Totals().Finished
			m.Model = script(t, `replies: [{text: "{{hash}} ", size: 1500, repeat: -1}]`)

			tree := b.launch("Read.", id, config)
			deaths := 0
			for !b.die(m, tree.ID, 2, after) {
				deaths++
				b.close()
				b.open()
			}
			root, err := b.store.Task(t.Context(), tree.Root)
			b.ok(err)
			if root.State != perdure.Completed || root.Result != want.Result {
				t.Errorf("after %d deaths the root is %s with %q, want %q", deaths, root.State, root.Result, want.Result)
			}
			if got := m.Ledger(); len(got.Repeated()) != 0 || got.Totals().Finished != calls {
				t.Errorf("%d answers, want %d; asked again: %+v", got.Totals().Finished, calls, got.Repeated())
			}
			if deaths < calls/3 || len(b.leaves(tree.ID)) >= calls-1 {
				t.Errorf("%d deaths in %d calls", deaths, calls)
			}
		})
	}
}

// When the budget is used up before the summary, the finished parts are the result.
func TestBudgetEndsBeforeTheSummary(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, summarizing)
	b := newBench(t, m)
	id := b.put(file{"a.txt", "one\n"}, file{"b.txt", "two\n"})
	tree, err := b.tryLaunch("Read {file}.", id, M{"model": "openai:m", "merge": "summarize", "batch": true,
		"budget_calls": 2})
	b.ok(err)
	got, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	if got.State != perdure.Partial || !d.Incomplete || strings.Count(root.Result, "part ") != 2 {
		t.Errorf("tree is %s, partial %v, with %q and %+v", got.State, got.Partial, root.Result, d)
	}
	if len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0], "the budget ended before") {
		t.Errorf("notes %q", d.Notes)
	}
	b.asks(server, tree.ID, 2)
}

// A part without a result is listed, and the others are summarized.
func TestSummarizeWithoutAPart(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: "result 1 of 2: .a.txt.", text: "the whole"}
- {match: "b.txt", status: 400, message: "no"}
- {text: "part {{short}}", repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"a.txt", "one\n"}, file{"b.txt", "two\n"}, file{"c.txt", "three\n"})
	tree := b.launch("Read {file}.", id, M{"model": "openai:m", "merge": "summarize", "batch": true})
	got, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	if !got.Partial || root.Result != "the whole" || len(d.Missing) != 1 ||
		!strings.Contains(d.Missing[0].Prompt, "b.txt") {
		t.Errorf("tree is %s, partial %v, with %q and %+v", got.State, got.Partial, root.Result, d)
	}
	if n := server.Ledger().Totals(); n.Started != 4 {
		t.Errorf("requests: %+v", n)
	}
}

// A vote over structured results compares them by value.
func TestVoteStructured(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, `replies:
- {match: "a.txt", text: '{"n": 1}'}
- {match: "b.txt", text: '{"n":2,"m":[]}'}
- {text: '{"m": [], "n": 2}', repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"a.txt", "one\n"}, file{"b.txt", "two\n"}, file{"c.txt", "three\n"})
	tree := b.launch("Read {file}.", id, M{"model": "openai:m", "merge": "vote", "batch": true})
	_, root := b.finish(tree.ID, 1)
	if root.Result != `{"n":2,"m":[]}` {
		t.Errorf("result %q, %+v", root.Result, root.Error)
	}
}

// In a reduction tree votes, scores and results go up through its levels.
func TestMergesInAReductionTree(t *testing.T) {
	t.Parallel()
	for merge, want := range map[string]string{"vote": "b", "best-of-n": "ddd",
		"summarize": "the whole of a, ddd, b and cc"} {
		t.Run(merge, func(t *testing.T) {
			t.Parallel()
			server, m := endpoint(t, `replies:
- {match: "(?s)These are not all parts.*=== results ===", text: "some {{short}}"}
- {match: "(?s)=== results ===.*some.*some.*some", text: "the whole of a, ddd, b and cc"}
- {match: "part [136] of", text: a}
- {match: "part 2 of", text: ddd}
- {match: "part [4579] of", text: b}
- {match: "part 8 of", text: cc}`)
			b := newBench(t, m)
			id := b.put(file{"text.txt", numbered(9 * 23)})
			config := M{"model": "openai:m", "strategy": "map-reduce", "merge": merge, "chunk_tokens": 250,
				"overlap_tokens": -1, "fan_in": 3, "max_children": 9}
			calls := 9
			if merge == "best-of-n" {
				config["judge"] = "rule:len(text)"
			}
			if merge == "summarize" {
				calls += 3 + 1
			}
			tree := b.launch("Look.", id, config)
			got, root := b.finish(tree.ID, 3)
			if got.State != perdure.Completed || root.Result != want {
				t.Errorf("tree is %s with %q, want %q; %+v", got.State, root.Result, want, root.Error)
			}
			b.asks(server, tree.ID, calls)
			if d := data(t, &root); merge == "vote" && (len(d.Votes) != 4 || d.Votes[0].Count != 4) || merge == "best-of-n" &&
				len(d.Scores) != 9 {
				t.Errorf("votes %+v, scores %+v", d.Votes, d.Scores)
			}
		})
	}
}

// Each merge uses the finished parts and lists the missing ones, or, where a part
// that fails is to fail the whole, asks nothing more.
func TestMergesWithALostPart(t *testing.T) {
	t.Parallel()
	for _, merge := range []string{"merge", "concatenate", "summarize", "vote", "best-of-n"} {
		for _, policy := range []string{"partial", "fail"} {
			t.Run(merge+", "+policy, func(t *testing.T) {
				t.Parallel()
				server, m := endpoint(t, `replies:
- {match: "=== results ===", text: "b or c"}
- {match: "strict and fair judge", text: '{"score": 50}'}
- {match: "part 2 of", status: 400, message: "no"}
- {match: "part 1 of", text: "b"}
- {text: "c", repeat: -1}`)
				b := newBench(t, m)
				id := b.put(file{"text.txt", numbered(3 * 23)})
				tree := b.launch("Look.", id, M{"model": "openai:m", "merge": merge, "policy": policy, "chunk_tokens": 250,
					"overlap_tokens": -1})
				got, root := b.finish(tree.ID, 1)
				if policy == "fail" {
					if got.State != perdure.Failed || !strings.Contains(root.Error.Message, "the policy is fail, and") {
						t.Errorf("tree is %s, %+v", got.State, root.Error)
					}
					if n := server.Ledger().Totals().Started; n > 3 {
						t.Errorf("%d requests", n)
					}
					return
				}
				want := map[string]string{"merge": "b\nc", "concatenate": "b\n\nc", "summarize": "b or c", "vote": "b",
					"best-of-n": "b"}[merge]
				calls := map[string]int{"summarize": 4, "best-of-n": 5}[merge]
				d := data(t, &root)
				if got.State != perdure.Partial || root.Result != want || len(d.Missing) != 1 ||
					!strings.HasPrefix(d.Missing[0].Prompt, "[part 2 of 3]") {
					t.Errorf("tree is %s, partial %v, with %q, want %q; missing %+v", got.State, got.Partial, root.Result, want,
						d.Missing)
				}
				if n := server.Ledger().Totals().Started; n != max(calls, 3) {
					t.Errorf("%d requests, want %d", n, max(calls, 3))
				}
			})
		}
	}
}
