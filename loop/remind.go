package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop/hook"
)

const (
	// lookedBack is how many iterations the level of reinforcement goes by.
	lookedBack = 5
	// worseFor is how many iterations a regression keeps the level up.
	worseFor = 2
	// maxLevels is how many changes of the level are kept.
	maxLevels = 100
)

// remind chooses how firmly the agent is reminded of the rules in this iteration,
// and writes the reminder.
func (r *run) remind(ctx context.Context, asked hook.Level) error {
	if r.cfg.Plain {
		return nil
	}
	last, err := r.past(ctx, lookedBack)
	if err != nil {
		return err
	}
	cfg := reinforce.Config{Default: r.cfg.Reinforcement, StandardFrom: r.cfg.StandardFrom,
		AggressiveFrom: r.cfg.AggressiveFrom,
		PlateauPercent: r.cfg.PlateauPercent}
	facts := r.levelFacts(last)
	facts.Asked = asked
	level, reason := cfg.Level(&facts)
	if err := r.setLevel(ctx, level, reason, facts.Qualities); err != nil {
		return err
	}
	about := r.about(ctx, last)
	about.Repeated = facts.Repeated
	about.Plateau, about.Declining = reinforce.Trend(facts.Qualities, cfg.PlateauPercent)
	texts, err := r.e.texts()
	if err != nil {
		return fmt.Errorf("read reminders: %w", err)
	}
	text, err := texts.Text(ctx, level, &about, reinforce.MaxSession)
	if err != nil { // a text of the user's
		r.e.cfg.Logger.Warn("reminder not written", "tree_id", string(r.l.Tree.ID), "error", err)
	}
	r.state.Run.Reminder = text
	return nil
}

// past are the outcomes of the last iterations, the latest first.
func (r *run) past(ctx context.Context, most int) ([]state.Outcome, error) {
	list, err := r.e.records.LastIterations(ctx, r.l.Tree.ID, r.state.Run.Number, most)
	if err != nil {
		return nil, err
	}
	var past []state.Outcome
	for i := range list {
		if o, err := state.ReadOutcome(&list[i]); err == nil { // one that cannot be read says nothing
			past = append(past, o)
		}
	}
	return past, nil
}

// levelFacts are what the level goes by.
func (r *run) levelFacts(last []state.Outcome) reinforce.Facts {
	f := reinforce.Facts{Iteration: r.state.Run.Number, Rejected: r.state.Rejected, Repeated: r.sameErrors()}
	for i := range last {
		o := &last[i]
		if o.Quality != nil {
			f.Qualities = append([]int{*o.Quality}, f.Qualities...)
		}
		f.Regressed = f.Regressed || i < worseFor && len(o.Regressions) > 0 && !o.Accepted
		f.TestsTouched = f.TestsTouched || i == 0 && slices.ContainsFunc(o.Artifacts, func(name string) bool {
			class := project.Classify(name).Class
			return class == project.TestFile || class.Protected()
		})
	}
	return f
}

// setLevel records a change of the level, and calls the handlers when it rises.
func (r *run) setLevel(ctx context.Context, level hook.Level, reason string, qualities []int) error {
	s := &r.state
	var from hook.Level
	if n := len(s.Levels); n > 0 {
		from = s.Levels[n-1].To
	}
	s.Run.Level = level
	if level == from {
		return nil
	}
	s.Levels = append(s.Levels[max(0, len(s.Levels)-maxLevels+1):],
		state.LevelChange{At: time.Now().UTC(), Iteration: s.Run.Number, From: from, To: level, Reason: reason})
	r.note(EventLevel, map[string]any{"iteration": s.Run.Number, "from": from, "to": level, "reason": reason})
	if from == "" || !reinforce.Raises(from, level) {
		return nil
	}
	r.did(hook.ReinforcementEscalation, builtinReminder, 0, hook.Allow,
		map[string]any{"reinforcement_level": string(level), "reason": reason})
	var deltas []int
	for i := 1; i < len(qualities); i++ {
		deltas = append(deltas, qualities[i]-qualities[i-1])
	}
	_, err := r.ask(ctx, hook.ReinforcementEscalation, fmt.Sprintf("the level rises from %s to %s: %s", from, level,
		reason), map[string]any{
		"from_level": string(from), "to_level": string(level), "reason": reason, "quality_deltas": deltas})
	return err
}

// placeInText is how tools write where something is.
var placeInText = lazyregexp.New(`[\w./\\-]+\.[A-Za-z]{1,8}:\d+`)

// about is what the reminder is about: what the last iteration left.
func (r *run) about(ctx context.Context, last []state.Outcome) reinforce.About {
	a := reinforce.About{Iteration: r.state.Run.Number}
	if len(last) == 0 {
		return a
	}
	o := &last[0]
	for _, g := range o.Regressions {
		a.Worse = append(a.Worse, clip.OneLine(g.Text))
	}
	if back, err := r.broughtBack(ctx); err == nil && back != nil {
		o = back
	}
	files := make(map[string]string)
	if report, err := r.savedResults(ctx, o.Check.Results); err == nil && report != nil {
		for _, t := range report.Failing() {
			files[t.ID] = t.File
		}
	}
	const shown = 8
	for _, id := range o.Check.Failing[:min(len(o.Check.Failing), shown)] {
		a.Failing = append(a.Failing, reinforce.Failing{Name: id, File: files[id]})
	}
	a.Error, a.ErrorKind = errorOf(o)
	a.Place = placeInText().FindString(a.Error)
	return a
}

// errorOf is the last error of an iteration, and its kind.
func errorOf(o *state.Outcome) (text, kind string) {
	if o.AgentError != "" {
		kind, text, ok := strings.Cut(o.AgentError, ": ")
		if !ok {
			return o.AgentError, "agent"
		}
		return clip.OneLine(text), kind
	}
	if o.Check.Passed {
		return "", ""
	}
	for _, m := range o.Check.Messages {
		if m = clip.OneLine(m); m != "" {
			return clip.Bytes(m, 300), "check"
		}
	}
	return lastLine(o.Check.Output), "check"
}
