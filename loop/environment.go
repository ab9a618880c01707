package loop

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop/record"
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

// noteUnset records the names of --env and loop.env that stand for no variable, when they
// change.
func (r *run) noteUnset() {
	unset := environ.Unset(os.Environ(), r.cfg.Env)
	if len(unset) > 0 && !slices.Equal(unset, r.state.Unset) {
		r.note(EventWithheld, map[string]any{"unset": unset})
	}
	r.state.Unset = unset
}

// missing returns a sentence about the variables that a failing check does not get and that its
// output names; empty if there are none. The agent can control the output, so the sentence has
// no command that passes a secret.
func (r *run) missing(c *state.Check) string {
	if c.Passed {
		return ""
	}
	names := environ.Named(environ.Withheld(os.Environ(), r.cfg.Env),
		slices.Concat([]string{c.Output}, c.Messages, c.Broken)...)
	if len(names) == 0 {
		return ""
	}
	names = names[:min(len(names), maxShown)]
	text := "the output of the check names variables that checks do not get: " + strings.Join(names, ", ")
	secrets := environ.Secrets(names)
	passable := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(secrets, name) })
	if len(passable) > 0 {
		text += fmt.Sprintf("; `--env %s` passes them", strings.Join(passable, ","))
	}
	if len(secrets) > 0 {
		text += "; names of secrets: " + strings.Join(secrets, ", ") + ", which code of the agent could read in a check"
	}
	return text
}

// withheldFrom returns the variables of this process that an agent does not get and that the error of its
// turn names.
func (r *run) withheldFrom(f *agent.Error) []string {
	withheld := environ.Withheld(os.Environ(), slices.Concat(r.cfg.Env, r.inherited()))
	return environ.Named(withheld, f.Msg, f.Hint, f.Detail)
}

// missingForAgent returns the command that passes the variables which the failed turn of an agent misses;
// empty if it names none. The user decides whether to type it.
func (r *run) missingForAgent(f *agent.Error) string {
	names := r.withheldFrom(f)
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names[:min(len(names), maxShown)], ",")
	return fmt.Sprintf("; agents and checks do not get %[1]s: `perdure loop resume %[2]s --env %[1]s` passes it", list,
		ID(&r.l.Tree))
}

// withMissing adds the variables that the check of the last iteration misses to the reason for
// which the loop failed.
func (r *run) withMissing(ctx context.Context) error {
	if r.state.Verdict != string(record.Failed) {
		return nil
	}
	last, err := r.past(ctx, 1)
	if err != nil || len(last) == 0 {
		return err
	}
	if text := r.missing(&last[0].Check); text != "" {
		r.state.Reason += "; " + text
	}
	return nil
}

// inherited returns the names of the variables that the agents of the loop get for their
// vendors.
func (r *run) inherited() []string {
	var names []string
	for i := range r.cfg.Agents() {
		a, err := r.e.cfg.Agents.Agent(r.e.agentSpec(&r.cfg, i))
		if err != nil { // a fallback that is not installed
			continue
		}
		if known, ok := a.(agent.Inheriting); ok {
			names = append(names, known.Inherits()...)
		}
	}
	return names
}
