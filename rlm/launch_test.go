package rlm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// TestRefusals: what cannot work is refused with its numbers, before a tree
// exists.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t), "mock:small": script(t, "window: 2000\nreplies: [{text: x}]"),
		"openai:x": echo(t)})
	big := b.put(file{"big.txt", numbered(5000)}) // 200,000 bytes, 50,000 tokens
	empty := b.put(file{"a.txt", ""}, file{"b.txt", ""})
	none := b.put()
	tests := []struct {
		name, prompt, context string
		config                M
		want                  []string
	}{
		{"empty prompt", " \n", "", M{}, []string{"prompt is empty"}},
		{"unknown model", "p", "", M{"model": "mock:other"}, []string{"mock:other"}},
		{"unknown sub-model", "p", "", M{"sub_model": "mock:other"}, []string{"mock:other"}},
		{"configuration", "p", "", M{"max_depth": 9}, []string{"max_depth"}},
		{"empty files", "p", empty, M{}, []string{"2 files are empty"}},
		{"no files", "p", none, M{}, []string{"it has no files"}},
		{"batch without files", "p", "", M{"batch": true}, []string{"there are no files"}},
		{"planner none", "p", big, M{"model": "mock:small", "planner": "none"},
			[]string{"about 5", "planner is none", "mock:small"}},
		{"depth 0", "p", big, M{"model": "mock:small", "max_depth": 0}, []string{"max_depth", "--max-depth"}},
		{"nodes", "p", big, M{"model": "mock:m", "chunk_tokens": 500, "max_nodes": 50},
			[]string{"max_nodes, 50", "parts of at most 500 tokens", "--max-nodes to ", "--chunk-tokens to about"}},
		{"part larger than the window", "p", big, M{"model": "mock:small", "chunk_tokens": 5000},
			[]string{"chunk_tokens: 5000", "mock:small", "--chunk-tokens "}},
		{"overlap", "p", big, M{"model": "mock:m", "chunk_tokens": 500, "overlap_tokens": 300},
			[]string{"overlap_tokens: 300"}},
		{"prompt larger than the window", strings.Repeat("word ", 2000), "", M{"model": "mock:small"},
			[]string{"prompt (about 2500 tokens)", "2000 tokens of model"}},
		{"prompt larger than the window beside parts", strings.Repeat("word ", 2000), big, M{"model": "mock:small"},
			[]string{"prompt (about 26", "2000 tokens of model"}},
		{"dollars without a price", "p", "", M{"model": "openai:x", "budget_usd": 1.0},
			[]string{"budget_usd", "price", "--budget-tokens"}},
		{"dollars without the price of an agent that code may name", "p", "", M{"model": "mock:m", "planner": "repl",
			"budget_usd": 1.0, "agents": M{"x": M{"model": "openai:x"}}}, []string{"budget_usd", "openai:x", "price"}},
	}
	for _, tt := range tests {
		_, err := b.tryLaunch(tt.prompt, tt.context, tt.config)
		if !errors.Is(err, perdure.ErrInvalid) {
			t.Errorf("%s: error is %v", tt.name, err)
			continue
		}
		text := err.Error() + " " + perdure.HintOf(err)
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: it does not tell %q: %s", tt.name, want, text)
			}
		}
	}
	if _, err := b.tryLaunch("p", "ctx-unknown", M{}); !errors.Is(err, perdure.ErrNotFound) {
		t.Errorf("unknown context: %v", err)
	}
	if _, err := b.exec.Launch(t.Context(), rlm.LaunchRequest{Kind: "loop", Prompt: "p"}); !errors.Is(err,
		perdure.ErrInvalid) {
		t.Errorf("unknown kind: %v", err)
	}
	trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{})
	b.ok(err)
	if len(trees) != 0 {
		t.Errorf("%d trees were created", len(trees))
	}
}

func TestTheSameKeyIsTheSameTree(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	req := rlm.LaunchRequest{Prompt: "p", Config: json.RawMessage(`{"model":"mock:m"}`), IdempotencyKey: "key"}
	first, err := b.exec.Launch(t.Context(), req)
	b.ok(err)
	second, err := b.exec.Launch(t.Context(), req)
	b.ok(err)
	if first.ID != second.ID {
		t.Errorf("trees %q and %q", first.ID, second.ID)
	}
}

func TestLaunchKeepsWhatItDecided(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.put(file{"a.txt", numbered(1000)})
	tree := b.launch("p", id, M{"model": "mock:m", "chunk_tokens": 1000, "max_nodes": 77, "budget_tokens": 9000,
		"budget_calls": 6, "timeout": "1m"})
	var c rlm.Config
	b.ok(json.Unmarshal(tree.Config, &c))
	if c.Model != "mock:m" || c.MaxChildren != rlm.DefaultMaxChildren || c.Temperature == nil {
		t.Errorf("the configuration is kept without its defaults: %s", tree.Config)
	}
	want := perdure.Limits{MaxNodes: 77, SoftNodes: 100, Calls: 6, Tokens: 9000, WallTime: 60e9}
	if tree.Limits != want {
		t.Errorf("limits are %+v", tree.Limits)
	}
	if err := b.exec.Check(&tree); err != nil {
		t.Errorf("it cannot be executed here: %v", err)
	}
	delete(b.models, "mock:m")
	if err := b.exec.Check(&tree); err == nil {
		t.Error("it could be executed without its model")
	}
}
