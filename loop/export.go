package loop

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Standing is what the engine knows of a loop beside its row, for those who show
// loops. Zero values are what is not known, or is not so.
type Standing struct {
	// Baseline is the snapshot of the beginning; Before and After are those around
	// the agent's work in the iteration at work, or in the last one.
	Baseline, Before, After workspace.ID
	// Turns counts the agent's turns in that iteration, Waits those waits for a
	// rate limit that follow each other. Working is set while the agent may be at
	// work. Failure is how its last turn failed.
	Turns, Waits int
	Working      bool
	Failure      string
	// Check is what the completion command came to in that iteration; nil while
	// it was not run.
	Check *Check
	// Recovery is the one under way; nil without one.
	Recovery *Recovery
	// Gate is the open gate that the handlers were told of; 0 is none.
	Gate int
	// Agent is the place of the agent that works among [config.Config.AgentAt]'s.
	Agent int
	// Levels are the changes of the level of reinforcement, the latest last.
	Levels []LevelChange
	// Reason says why the loop ended, or waits.
	Reason string
	// Selected is the iteration that is left in the workspace, 0 for none, and
	// SelectedReason why. Verified tells that the check passed on it again.
	Selected       int
	SelectedReason string
	Verified       bool
	// Past is of a loop that began elsewhere; nil for others.
	Past *record.Past
	// WayBack are the snapshots of what was there before it was brought back.
	WayBack []workspace.ID
}

// ReadStanding reads the state of a loop's row.
func ReadStanding(raw json.RawMessage) (Standing, error) {
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return Standing{}, fmt.Errorf("read state of loop: %w", err)
	}
	return Standing{
		Baseline: s.Baseline, Before: s.Run.Before, After: s.Run.After, Turns: s.Run.Turns, Waits: s.Run.Waits,
		Working: s.Run.Working,
		Gate:    max(0, s.Gate), Failure: s.Run.Failure, Check: s.Run.Check, Recovery: s.Recovery, Agent: s.Agent,
		Levels: s.Levels, Reason: s.Reason,
		Selected: s.Selected, SelectedReason: s.SelectedReason, Verified: s.Verified, WayBack: s.WayBack, Past: s.Past,
	}, nil
}

// ReadOutcome reads the record of an iteration.
func ReadOutcome(it *record.Iteration) (Outcome, error) {
	o, err := readOutcome(it)
	if err != nil {
		return o, fmt.Errorf("read iteration %d: %w", it.Number, err)
	}
	return o, nil
}

// Eligible reports whether a loop may leave an iteration in the workspace: it is
// over, was not taken back, and has no regression that nobody accepted.
func (o *Outcome) Eligible(it *record.Iteration) bool {
	return it.Number > 0 && (it.Status == record.IterationKept || it.Status == record.IterationFailed) &&
		it.EndedAt != nil &&
		o.Quality != nil && o.After != "" && (len(o.Regressions) == 0 || o.Accepted)
}

// Prefers reports whether a loop rather leaves an iteration in the workspace than
// an earlier one, both of them eligible; than may be nil. Of equals the earlier
// stays.
func Prefers(c *config.Config, o, than *Outcome) bool {
	if than == nil {
		return true
	}
	if c.RequireVerification && o.Check.Passed != than.Check.Passed {
		return o.Check.Passed
	}
	threshold := c.QualityThreshold
	switch c.Selection {
	case config.MostRecentAboveThreshold:
		if above := *o.Quality >= threshold; above || *than.Quality >= threshold {
			return above
		}
	case config.HighestQualityVerified:
		if o.Check.Passed != than.Check.Passed {
			return o.Check.Passed
		}
	case config.HighestQuality:
	}
	return *o.Quality > *than.Quality
}
