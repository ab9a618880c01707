package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
)

// Runs describes in one line what a loop with this configuration runs, and which of the
// user's variables it passes, for a user who decides whether to trust it.
func (c *Config) Runs() string {
	text := fmt.Sprintf("runs the agent %s", strings.Join(c.Agents(), " or "))
	if c.Permission != "" && c.Permission != agent.PermissionEdits {
		text += fmt.Sprintf(" (permission %s)", c.Permission)
	}
	text += fmt.Sprintf(" and the check %q in %s", c.Until, c.Workspace)
	for _, command := range slices.Concat([]Metric{{Name: "scorer", Command: c.Scorer}, {Name: "sealed_setup",
		Command: c.SealedSetup}, {Name: "coverage", Command: c.Coverage}, {Name: "types", Command: c.Types},
		{Name: "lint", Command: c.Lint}}, c.Metrics) {
		if line := cmp.Or(command.Command, Off); line != Off && line != Auto {
			text += fmt.Sprintf("; %s: %q", command.Name, line)
		}
	}
	if len(c.Env) > 0 {
		text += "; passes the variables " + strings.Join(c.Env, ", ")
	}
	return text
}
