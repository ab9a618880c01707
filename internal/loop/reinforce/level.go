package reinforce

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/perdure/perdure/loop/hook"
)

// Defaults of [Config].
const (
	DefaultStandardFrom   = 3
	DefaultAggressiveFrom = 5
	DefaultPlateauPercent = 5
)

// plateauLength is the number of changes of the quality that make a plateau.
const plateauLength = 3

// Config sets how firm reminders are.
type Config struct {
	// Default is the initial level: OFF never reminds; MINIMAL, STANDARD and AGGRESSIVE are
	// minimum levels; ADAPTIVE ignores the number of iterations. Empty: MINIMAL.
	Default hook.Level
	// StandardFrom and AggressiveFrom are the iterations from which the level is at least
	// STANDARD or AGGRESSIVE. 0: the defaults; negative: never.
	StandardFrom, AggressiveFrom int
	// PlateauPercent is the maximum change of the quality, up or down, in each of the last
	// three iterations of a plateau. 0: DefaultPlateauPercent.
	PlateauPercent float64
}

// Facts are the facts known when an iteration begins.
type Facts struct {
	// Iteration is the number of the iteration that begins, from 1.
	Iteration int
	// Qualities are the measured qualities of earlier iterations, the oldest first.
	Qualities []int
	// Regressed is set if one of the last iterations had a regression, Rejected if a person
	// rejected the last one.
	Regressed, Rejected bool
	// Repeated is how many times in a row the last error occurred; 0 without an error.
	Repeated int
	// TestsTouched is set if the last iteration changed tests or files that configure the
	// check.
	TestsTouched bool
	// Asked is the level that a handler requested; may be empty.
	Asked hook.Level
}

// Level returns the level for an iteration, and the reason.
func (c Config) Level(f *Facts) (hook.Level, string) {
	if c.Default == hook.LevelOff {
		return hook.LevelOff, "switched off"
	}
	if f.Asked != "" {
		return f.Asked, "requested by a handler"
	}
	level, reason := hook.LevelMinimal, "the first iterations"
	raise := func(to hook.Level, why string) {
		if rank(to) > rank(level) {
			level, reason = to, why
		}
	}
	if c.Default == hook.LevelStandard || c.Default == hook.LevelAggressive {
		raise(c.Default, "configured minimum")
	}
	plateau, declining := Trend(f.Qualities, c.PlateauPercent)
	switch {
	case f.Rejected:
		raise(hook.LevelAggressive, "a person rejected the previous iteration")
	case f.Regressed:
		raise(hook.LevelAggressive, "a regression was found")
	case f.Repeated > 1:
		raise(hook.LevelAggressive, fmt.Sprintf("the same error occurred %d times", f.Repeated))
	case plateau:
		raise(hook.LevelAggressive, "the quality no longer changes")
	case declining:
		raise(hook.LevelStandard, "the quality is falling")
	case f.TestsTouched:
		raise(hook.LevelStandard, "tests were changed")
	}
	if c.Default == hook.LevelAdaptive {
		return level, reason
	}
	if from := cmp.Or(c.AggressiveFrom, DefaultAggressiveFrom); from > 0 && f.Iteration >= from {
		raise(hook.LevelAggressive, fmt.Sprintf("iteration %d", f.Iteration))
	}
	if from := cmp.Or(c.StandardFrom, DefaultStandardFrom); from > 0 && f.Iteration >= from {
		raise(hook.LevelStandard, fmt.Sprintf("iteration %d", f.Iteration))
	}
	return level, reason
}

// rank orders the levels.
func rank(l hook.Level) int {
	return slices.Index([]hook.Level{hook.LevelOff, hook.LevelMinimal, hook.LevelStandard, hook.LevelAggressive}, l)
}

// Raises reports whether a level is firmer than another.
func Raises(from, to hook.Level) bool { return rank(to) > rank(from) }

// Trend evaluates the last three changes of the quality. On a plateau each is between
// -percent and +percent of the score before; in a decline one fell by more and none rose
// by more. percent 0 is DefaultPlateauPercent.
func Trend(qualities []int, percent float64) (plateau, declining bool) {
	percent = cmp.Or(percent, DefaultPlateauPercent)
	if len(qualities) < plateauLength+1 {
		return false, false
	}
	last := qualities[len(qualities)-plateauLength-1:]
	plateau = true
	for i := 1; i < len(last); i++ {
		change, most := float64(last[i]-last[i-1]), percent/100*float64(last[i-1])
		if change > most {
			return false, false
		}
		if change < -most {
			plateau, declining = false, true
		}
	}
	return plateau, declining
}
