package rlm

import (
	"cmp"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

const (
	// DefaultReplTurns is how many replies of the model of a REPL hold code at most.
	DefaultReplTurns = 30
	// MaxReplTurns bounds Config.ReplTurns.
	MaxReplTurns = 1000
)

// Engines of planner repl.
const (
	EnginePython   = "python"
	EngineStarlark = "starlark"
)

// useRepl sets what is not set, and pins the version of the profile.
func (c *Config) useRepl() {
	if c.Planner != PlannerRepl {
		return
	}
	c.ReplEngine = cmp.Or(c.ReplEngine, EnginePython)
	c.ReplTurns = cmp.Or(c.ReplTurns, DefaultReplTurns)
	if p, ok := turn.Find(c.ReplProfile); ok {
		c.ReplProfile = p.Version
	}
}

// checkRepl reports what planner repl does not support.
func (c *Config) checkRepl(bad func(field, format string, args ...any), between func(field string, n, low, high int64),
	oneOf func(field, value string, later []string, now ...string)) {
	if c.Planner != PlannerRepl {
		return
	}
	oneOf("repl_engine", c.ReplEngine, nil, EnginePython, EngineStarlark)
	between("repl_turns", int64(c.ReplTurns), 1, MaxReplTurns)
	if _, ok := turn.Find(c.ReplProfile); !ok {
		oneOf("repl_profile", c.ReplProfile, nil, turn.Names()...)
	}
	switch {
	case c.Batch:
		bad("planner", "a batch reads each file; planner repl answers one question about all of them")
	case c.writesNothing():
		bad("planner", "model %q writes no code; choose another with --model", c.Model)
	case c.Samples > 1:
		bad("samples", "planner repl gives one answer; leave out --samples, or --planner repl")
	case c.Merge == MergeVote || c.Merge == MergeBest:
		bad("planner", "planner repl gives one answer, so there is nothing to merge by %s", c.Merge)
	case c.MinScore != nil:
		bad("min_score", "answers of planner repl are not judged; leave out --min-score, or --planner repl")
	case c.When != "" || c.Strategy != perdure.Parallel:
		bad("strategy", "planner repl has no parts to run in a strategy")
	}
}

// useRepl makes the root a REPL.
func (p *planning) useRepl(root *node, direct room, err error) error {
	if err != nil {
		return err
	}
	sub := p.cfg.windowOf(p.models[1])
	const bytesPerToken = 3 // few, so that a prompt of this length fits
	root.Window, root.Answer = direct.window, direct.answer
	root.Repl = &replPlan{Profile: p.cfg.ReplProfile, Engine: p.cfg.ReplEngine, Turns: p.cfg.ReplTurns,
		SubCallBytes: max(sub-p.cfg.answerOf(sub), 0) * bytesPerToken, Fits: true}
	if f := p.cfg.Fork; f != nil && len(f.Questions) > 0 {
		root.Repl.Turns += f.At
	}
	if p.reader != nil && len(p.reader.Manifest().Files) > maxReplFiles {
		return invalid(fmt.Sprintf("planner repl: the context has %d files, at most %d", len(p.reader.Manifest().Files),
			maxReplFiles), "name fewer files with --context, or use another planner")
	}
	return nil
}

// maxReplFiles is the most files of a context in the dictionary of a REPL.
const maxReplFiles = 200_000
