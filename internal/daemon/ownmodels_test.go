package daemon_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/daemon"
)

// A request without a model gets that of the daemon's settings, one with a model keeps it.
func TestRequestTakesTheConfiguredModel(t *testing.T) {
	t.Parallel()
	c := served(t, open(t, daemon.Config{Session: "serve",
		Own: json.RawMessage(`{"model":"mock:text=own","sub_model":"mock:text=sub","max_depth":1}`)}))
	for config, want := range map[string]string{
		"":                              "own",
		`{}`:                            "own",
		`{ "max_depth": 2 }`:            "own",
		`{"model":"mock:text=theirs"}`:  "theirs",
		`{"sub_model":"mock:text=sub"}`: "own",
	} {
		req := client.TreeRequest{Prompt: "x"}
		if config != "" {
			req.Config = json.RawMessage(config)
		}
		if _, err := c.Estimate(t.Context(), req); err != nil {
			t.Errorf("%s: estimate: %v", config, err)
		}
		tree, err := c.CreateTree(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		if _, err := c.WaitTree(t.Context(), tree.ID); err != nil {
			t.Fatal(err)
		}
		r, err := c.Result(t.Context(), tree.ID)
		if err != nil || r.Text() != want {
			t.Errorf("%s: result %q, %v, want %q", config, r.Text(), err, want)
		}
	}
}
