package tree

import (
	"encoding/json"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// executionOptions returns the options of `perdure run` that correspond to the members of
// execution_config.
func executionOptions() map[string]string {
	return map[string]string{"model": "--model", "temperature": "--temperature", "seed": "--seed",
		"execution_mode": "--mode", "context_window_tokens": "--context-window"}
}

// execution reads the execution_config of a state, nil for none, and notes its settings. An
// imported state belongs to no run that is executed, so they act on nothing.
func (o *object) execution() json.RawMessage {
	n := o.n.Get(nodeExecution)
	if n.IsNull() || n.Cut || n.Kind != jsontree.Object {
		return nil // of another type: renamed with the other metadata
	}
	for _, m := range n.Members {
		if m.Value.IsNull() || m.Name == "execution_mode" && m.Value.Text() == "default" {
			continue // asks for nothing
		}
		remedy := "perdure has no such setting"
		if option := executionOptions()[m.Name]; option != "" {
			remedy = "a run takes it from " + option
		}
		o.noteAs(NotApplied, m.Value, "metadata.execution_config.%s = %.80s is kept and not applied, because imported "+
			"states are not executed; %s", m.Name, compacted(m.Value), remedy)
	}
	return o.raw(nodeExecution)
}
