package reinforce

import (
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

// plateauLength is over how many changes of the quality a plateau is looked for.
const plateauLength = 3

// Config says how firm reminders are.
type Config struct {
	// Default is the level to begin with: OFF says nothing ever; MINIMAL, STANDARD
	// and AGGRESSIVE are the least there is; ADAPTIVE goes by the risk alone, not by
	// the number of iterations. Empty: MINIMAL.
	Default hook.Level
	// StandardFrom and AggressiveFrom are the iterations from which the level is at
	// least that. 0: the defaults; negative: never.
	StandardFrom, AggressiveFrom int
	// PlateauPercent is how much the quality may change in each of the last three
	// iterations, up or down, for a plateau. 0: DefaultPlateauPercent.
	PlateauPercent float64
}

// Facts are what is known when an iteration begins.
type Facts struct {
	// Iteration is the one that begins, from 1.
	Iteration int
	// Qualities are those of the iterations until now, the earliest first, as far
	// as they were measured.
	Qualities []int
	// Regressed tells that one of the last iterations made something worse, Rejected
	// that a person rejected the last one.
	Regressed, Rejected bool
	// Repeated is how often the last error came in a row; 0 without one.
	Repeated int
	// TestsTouched tells that the last iteration changed tests, or what the check
	// hangs on.
	TestsTouched bool
	// Asked is the level that a handler asked for; may be empty.
	Asked hook.Level
}

// Level returns the level for an iteration, and why.
func (c Config) Level(f *Facts) (hook.Level, string) {
	if c.Default == hook.LevelOff {
		return hook.LevelOff, "it is switched off"
	}
	if f.Asked != "" {
		return f.Asked, "a handler asked for it"
	}
	level, reason := hook.LevelMinimal, "the first iterations"
	raise := func(to hook.Level, why string) {
		if rank(to) > rank(level) {
			level, reason = to, why
		}
	}
	if c.Default == hook.LevelStandard || c.Default == hook.LevelAggressive {
		raise(c.Default, "it is the least that is set")
	}
	plateau, declining := Trend(f.Qualities, c.PlateauPercent)
	switch {
	case f.Rejected:
		raise(hook.LevelAggressive, "a person rejected the iteration before")
	case f.Regressed:
		raise(hook.LevelAggressive, "something got worse")
	case f.Repeated > 1:
		raise(hook.LevelAggressive, fmt.Sprintf("the same error came %d times", f.Repeated))
	case plateau:
		raise(hook.LevelAggressive, "the quality does not change any more")
	case declining:
		raise(hook.LevelStandard, "the quality falls")
	case f.TestsTouched:
		raise(hook.LevelStandard, "tests were changed")
	}
	if c.Default == hook.LevelAdaptive {
		return level, reason
	}
	if from := orDefault(c.AggressiveFrom, DefaultAggressiveFrom); from > 0 && f.Iteration >= from {
		raise(hook.LevelAggressive, fmt.Sprintf("iteration %d", f.Iteration))
	}
	if from := orDefault(c.StandardFrom, DefaultStandardFrom); from > 0 && f.Iteration >= from {
		raise(hook.LevelStandard, fmt.Sprintf("iteration %d", f.Iteration))
	}
	return level, reason
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

// rank orders the levels.
func rank(l hook.Level) int {
	return slices.Index([]hook.Level{hook.LevelOff, hook.LevelMinimal, hook.LevelStandard, hook.LevelAggressive}, l)
}

// Raises tells whether a level is firmer than another.
func Raises(from, to hook.Level) bool { return rank(to) > rank(from) }

// Trend looks at the last three changes of the quality: on a plateau each is
// between -percent and +percent of the score before; in a decline one fell by
// more and none rose by more. percent 0 is DefaultPlateauPercent.
func Trend(qualities []int, percent float64) (plateau, declining bool) {
	if percent == 0 {
		percent = DefaultPlateauPercent
	}
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
