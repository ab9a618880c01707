package loop

import (
	"os"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// maxWithheld and maxNameBytes limit the names that a loop keeps, maxShown those that
	// its start shows.
	maxWithheld  = 200
	maxNameBytes = 100
	maxShown     = 10
)

// noteWithheld records the names of the variables that neither the loop's agents nor its
// checks get: a check that fails for want of one must be explained.
func (r *run) noteWithheld() {
	names := environ.Withheld(os.Environ(), append(r.inherited(), r.cfg.Env...))
	shown := environ.LikelyNeeded(names, maxShown)
	for i, name := range shown {
		shown[i] = clip.Bytes(name, maxNameBytes)
	}
	if len(names) > 0 {
		r.note(EventWithheld, map[string]any{"variables": len(names), "names": shown})
	}
	r.state.Withheld = names[:min(len(names), maxWithheld)]
	for i, name := range r.state.Withheld {
		r.state.Withheld[i] = clip.Bytes(name, maxNameBytes)
	}
}

// inherited returns the names of the variables that the agents of the loop get for their
// vendors.
func (r *run) inherited() []string {
	var names []string
	for _, name := range r.cfg.Agents() {
		a, err := r.e.cfg.Agents.Agent(name)
		if err != nil { // a fallback that is not installed
			continue
		}
		if known, ok := a.(agent.Inheriting); ok {
			names = append(names, known.Inherits()...)
		}
	}
	return names
}
