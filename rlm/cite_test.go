package rlm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// harbours are files of which the model quotes a line each, and one that does not help.
func harbours() []file {
	var files []file
	for _, name := range []string{"north", "south", "west", "dull"} {
		files = append(files, file{name + ".txt", "The harbour of the " + name + ".\nIts depth is five metres.\n" +
			strings.Repeat("It is quiet there in winter, and the boats keep away.\n", 20)})
	}
	return files
}

// quoting answers for each of the harbours: one quote is there, with other white space,
// and one is not.
const quoting = `replies:
- {match: 'Write the one result', text: 'All are deep [^north.txt:1-1], [^south.txt:1-1] and [^west.txt:1-1].'}
- {match: 'harbour of the dull', repeat: -1, text: '(nothing in this part)'}
- {match: 'harbour of the north', repeat: -1, text: "Five. [^1] Sure. [^2]\n\n[^1]: north.txt:1-1\n> The  harbour of the north.\n\n[^2]: north.txt:2\n> Its depth is six metres."}
- {match: 'harbour of the south', repeat: -1, text: "Five. [^1]\n\n[^1]: south.txt:1-1\n> The harbour of the south."}
- {match: 'harbour of the west', repeat: -1, text: "Five. [^1]\n\n[^1]: west.txt:1-1\n> The harbour of the west."}
`

// Each way to merge keeps the quotes and the places of all parts that contributed.
func TestMergesKeepCitations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config M
		calls  int
	}{
		{"merge", M{"merge": "merge"}, 4},
		{"concatenate", M{"merge": "concatenate"}, 4},
		{"summarize", M{"merge": "summarize"}, 5},
		{"vote", M{"merge": "vote"}, 4},
		{"best-of-n", M{"merge": "best-of-n", "judge": "rule:citations"}, 4},
		{"map-reduce", M{"strategy": "map-reduce", "fan_in": 2}, 4},
		{"levels", M{"max_children": 2}, 4},
		{"sequential", M{"strategy": "sequential"}, 4},
		{"batch", M{"batch": true}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, m := endpoint(t, quoting)
			b := newBench(t, m)
			c.config["model"], c.config["cite"], c.config["chunk_tokens"] = "openai:m", true, 350
			c.config["planner"] = "split"
			tree := b.launch("How deep are they?", b.put(harbours()...), c.config)
			got, root := b.finish(tree.ID, 1)
			if got.State != perdure.Completed || got.Partial {
				t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
			}
			b.asks(server, tree.ID, c.calls)
			d := data(t, &root)
			var places []string
			for _, cited := range d.Citations {
				places = append(places, fmt.Sprintf("%s %s:%d", cited.Kind, cited.File, cited.StartLine))
			}
			for _, want := range []string{"north", "south", "west"} {
				for _, kind := range []string{model.CitedQuote, model.CitedRead} {
					if !slices.Contains(places, kind+" "+want+".txt:1") {
						t.Errorf("%s of %s.txt is not among %q", kind, want, places)
					}
				}
			}
			if len(places) != 6 || d.QuotesDropped != 1 {
				t.Errorf("citations %q, %d quotes dropped", places, d.QuotesDropped)
			}
			if c.name == "vote" && (len(d.Votes) != 2 || d.Votes[0].Count != 2) {
				t.Errorf("answers with the same text and other places are not equal: %+v", d.Votes)
			}
			if !strings.Contains(root.Result, "[^1]") || strings.Contains(root.Result, ".txt:") ||
				strings.Contains(root.Result, "six metres") {
				t.Errorf("the answer is %q", root.Result)
			}
		})
	}
}

// Without quotes an answer cites what was read for it.
func TestAnswerCitesWhatWasRead(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, "replies: [{text: 'Deep. [^1]'}]")
	b := newBench(t, m)
	tree := b.launch("How deep are they?", b.put(harbours()[:2]...), M{"model": "openai:m"})
	_, root := b.finish(tree.ID, 1)
	b.asks(server, tree.ID, 1)
	d := data(t, &root)
	if len(d.Citations) != 2 || d.Citations[1].File != "south.txt" || d.Citations[1].EndLine != 22 ||
		d.Citations[1].Kind != model.CitedRead || d.Citations[1].Text != "" || root.Result != "Deep. [^1]" {
		t.Errorf("%q cites %+v", root.Result, d.Citations)
	}
	if asked := server.Ledger().Entries()[0].Prompt; strings.Contains(asked, "quotes") {
		t.Errorf("quotes are asked for without cite: %q", asked)
	}
}

// A model that was asked for quotes and gave none that is in the text is noted, with each planner.
func TestAnswerWithoutQuotesIsNoted(t *testing.T) {
	t.Parallel()
	for _, config := range []M{{}, {"planner": "split", "chunk_tokens": 350}, {"batch": true}} {
		_, m := endpoint(t, `replies: [{repeat: -1, text: "Deep. [^1]\n\n[^1]: north.txt:1\n> It is bottomless."}]`)
		b := newBench(t, m)
		id := b.put(harbours()...)
		config["model"] = "openai:m"
		for _, cite := range []bool{true, false} {
			config["cite"] = cite
			tree := b.launch("How deep are they?", id, config)
			_, root := b.finish(tree.ID, 1)
			if d := data(t, &root); slices.Contains(d.Notes, "no quote supports the answer") != cite {
				t.Errorf("%v: notes %q, %q", config, d.Notes, root.Result)
			}
		}
	}
}
