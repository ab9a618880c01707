package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Outcome is the record of an iteration: the data of its row.
type Outcome struct {
	Iteration int       `json:"iteration"`
	Timestamp time.Time `json:"timestamp"`
	// Quality and its parts, in percent; nil and empty where nothing was measured.
	Quality *int           `json:"quality_score"`
	Parts   map[string]int `json:"quality_breakdown,omitempty"`
	Delta   *int           `json:"quality_delta,omitempty"`
	// Scorer names who gave the quality when it was not made from facts.
	Scorer string `json:"scorer,omitempty"`
	// Before and After are the snapshots around the agent's work.
	Before workspace.ID `json:"snapshot_before,omitempty"`
	After  workspace.ID `json:"snapshot_path,omitempty"`
	// Artifacts are the files that changed, at most maxArtifacts; Changed is how
	// many there are.
	Artifacts []string `json:"artifacts,omitempty"`
	Changed   int      `json:"files_changed"`
	Check     Check    `json:"test_results"`
	// Metrics are measures besides the tests; nil where none were taken.
	Metrics *metric.Metrics `json:"metrics,omitempty"`
	// Sealed is what came of a clean copy; nil where none was made.
	Sealed *cleancheck.Verdict `json:"sealed,omitempty"`
	// Diff compares with the baseline; shortened lists.
	Diff *testreport.Diff `json:"baseline_diff,omitempty"`
	// Regressions are facts against the iteration.
	Regressions []regression.Regression `json:"regressions,omitempty"`
	// Imported tells that the iteration was elsewhere: of its files nothing is
	// known here.
	Imported bool `json:"imported,omitempty"`
	// Accepted tells that a person approved them.
	Accepted   bool       `json:"accepted,omitempty"`
	Recoveries []Recovery `json:"recovery_history,omitempty"`
	// AgentText is what the agent said last, AgentError how its turn failed.
	Agent      string `json:"agent,omitempty"`
	AgentText  string `json:"agent_text,omitempty"`
	AgentError string `json:"agent_error,omitempty"`
	// Findings are signs of regressions in the files that changed since the
	// baseline, at most maxFindings.
	Findings []detect.Finding `json:"findings,omitempty"`
	// Risky are its calls of tools that could do harm, at most maxRisky.
	Risky []policy.Risky `json:"risky_actions,omitempty"`
	// Calls are the last of its calls that could change something, at most maxRisky;
	// the journal has all.
	Calls []policy.Risky `json:"tool_call_history,omitempty"`
	// Level is how firmly it was reminded of the rules.
	Level hook.Level `json:"reinforcement_level,omitempty"`
	// Handoff is what the agent recorded of its work; nil when it recorded nothing.
	Handoff *handoff.Checkpoint `json:"handoff,omitempty"`
	// Sight is how its calls of tools were seen, Denied how many were refused.
	Sight  agent.Sight `json:"sight,omitempty"`
	Denied int         `json:"denied,omitempty"`
	// Tokens and CostUSD are what the agent's turns took, as far as it tells.
	InputTokens  int64    `json:"input_tokens,omitempty"`
	OutputTokens int64    `json:"output_tokens,omitempty"`
	CostUSD      *float64 `json:"cost_usd,omitempty"`
	// Times say what the iteration took, in milliseconds.
	Times Times `json:"times"`
	// Warnings say what took longer than it may, and what snapshots do not have.
	Warnings []string `json:"warnings,omitempty"`
}

// Times are what parts of an iteration took, in milliseconds.
type Times struct {
	Agent    int64 `json:"agent_ms"`
	Check    int64 `json:"check_ms"`
	Snapshot int64 `json:"snapshot_ms"`
	Hooks    int64 `json:"hooks_ms"`
	// Metrics is what the commands took that measure more than tests.
	Metrics int64 `json:"metrics_ms,omitempty"`
	// Sealed is what clean copies took, with the commands in them.
	Sealed int64 `json:"sealed_ms,omitempty"`
	// Engine is everything else that the engine added.
	Engine int64 `json:"engine_ms"`
}

// Check is what one run of the completion command came to.
type Check struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Passed  bool   `json:"passed"`
	// Weak tells that no results of tests could be read: the exit status is all
	// that is known.
	Weak bool `json:"weak_evidence,omitempty"`
	// Skipped tells that the command was not run, because the loop was to end.
	Skipped bool `json:"skipped,omitempty"`
	// TimedOut tells that the command was stopped.
	TimedOut bool `json:"timed_out,omitempty"`
	// Output is the end of what it printed, at most maxOutput bytes.
	Output string `json:"output,omitempty"`
	// Results is the blob of the test results.
	Results string            `json:"results,omitempty"`
	Counts  testreport.Counts `json:"counts"`
	// Failing are the names of tests that fail, at most maxFailing, and Messages
	// what they say. Broken are suites that could not run.
	Failing  []string `json:"failing,omitempty"`
	Messages []string `json:"messages,omitempty"`
	Broken   []string `json:"broken,omitempty"`
	// Incomplete is why the runner's end record is missing.
	Incomplete string `json:"incomplete,omitempty"`
	TookMS     int64  `json:"took_ms"`
}

// Row returns the row of the outcome. Lists are left out of a row that is too long.
func (o *Outcome) Row(status record.IterationStatus, task perdure.TaskID) (*record.Iteration, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(raw) > record.MaxIterationBytes { // lists of long names
		small := *o
		small.Artifacts, small.Diff = nil, nil
		if raw, err = json.Marshal(&small); err != nil {
			return nil, err
		}
	}
	return &record.Iteration{Number: o.Iteration, Task: task, Status: status, Quality: o.Quality, Data: raw}, nil
}

// ReadOutcome reads the outcome in the row of an iteration.
func ReadOutcome(it *record.Iteration) (Outcome, error) {
	var o Outcome
	if err := json.Unmarshal(it.Data, &o); err != nil {
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

// Marks are the findings that a regression (its ID) or the beginning of a
// fingerprint stands for, to be marked as false alarms; empty stands for all
// regressions.
func (o *Outcome) Marks(finding string) []record.FalseAlarm {
	return (&regression.Found{Iteration: o.Iteration, Regressions: o.Regressions, Findings: o.Findings}).Marks(finding)
}
