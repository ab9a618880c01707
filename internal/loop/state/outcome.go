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
	"github.com/perdure/perdure/internal/verify/decider"
	"github.com/perdure/perdure/internal/verify/trial"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Outcome is the record of an iteration: the data of its row.
type Outcome struct {
	Iteration int       `json:"iteration"`
	Timestamp time.Time `json:"timestamp"`
	// Quality is the score in percent, nil if nothing was measured, Parts its components,
	// and Delta the change since the previous iteration.
	Quality *int           `json:"quality_score"`
	Parts   map[string]int `json:"quality_breakdown,omitempty"`
	Delta   *int           `json:"quality_delta,omitempty"`
	// Scorer is the command that set the score; empty if it was computed.
	Scorer string `json:"scorer,omitempty"`
	// Before and After are the snapshots before and after the agent's work.
	Before workspace.ID `json:"snapshot_before,omitempty"`
	After  workspace.ID `json:"snapshot_path,omitempty"`
	// Artifacts are the changed files, up to a limit; Changed is their number.
	Artifacts []string `json:"artifacts,omitempty"`
	Changed   int      `json:"files_changed"`
	// FileDiff shows what changed in them, up to a limit.
	FileDiff string `json:"file_diff,omitempty"`
	Check    Check  `json:"test_results"`
	// Metrics are the measurements other than tests; nil if none were made.
	Metrics *metric.Metrics `json:"metrics,omitempty"`
	// CleanCopy is the result of the clean-copy check; nil if there was none.
	CleanCopy *cleancheck.Verdict `json:"sealed,omitempty"`
	// Diff compares the test results with the baseline's; its lists are shortened.
	Diff *testreport.Diff `json:"baseline_diff,omitempty"`
	// Regressions are the regressions that were found.
	Regressions []regression.Regression `json:"regressions,omitempty"`
	// Imported is set if the iteration was imported: its files are not known.
	Imported bool `json:"imported,omitempty"`
	// Accepted is set if a person approved the regressions.
	Accepted   bool       `json:"accepted,omitempty"`
	Recoveries []Recovery `json:"recovery_history,omitempty"`
	// AgentText is the agent's last message, AgentError the error of its turn.
	Agent      string `json:"agent,omitempty"`
	AgentText  string `json:"agent_text,omitempty"`
	AgentError string `json:"agent_error,omitempty"`
	// Retried are the errors of earlier turns of the iteration, which another turn followed.
	Retried []TurnError `json:"retried_errors,omitempty"`
	// GuardLost is set if the agent, or the check, killed its guard process: the check
	// was not judged, and the files were restored.
	GuardLost bool `json:"guard_lost,omitempty"`
	// Deciders are the changed files that decide what the check runs, up to a limit.
	Deciders []decider.Decider `json:"deciding_files,omitempty"`
	// Findings are those in the files that changed since the baseline, up to a limit.
	Findings []detect.Finding `json:"findings,omitempty"`
	// Risky are the risky tool calls, and Calls the last calls that could change
	// something, both up to a limit; the journal has all.
	Risky []policy.Risky `json:"risky_actions,omitempty"`
	Calls []policy.Risky `json:"tool_call_history,omitempty"`
	// Level is the reinforcement level.
	Level hook.Level `json:"reinforcement_level,omitempty"`
	// Handoff is the agent's checkpoint; nil if it recorded none.
	Handoff *handoff.Checkpoint `json:"handoff,omitempty"`
	// Commit is the commit of the iteration; empty if the loop makes none.
	Commit string `json:"commit,omitempty"`
	// Sight is how tool calls were observed, Denied the number of refused ones.
	Sight  agent.Sight `json:"sight,omitempty"`
	Denied int         `json:"denied,omitempty"`
	// Unpermitted are the calls that the agent's own permissions denied.
	Unpermitted Unpermitted `json:"unpermitted,omitzero"`
	// InputTokens, OutputTokens and CostUSD are the usage, as far as it is known.
	InputTokens  int64    `json:"input_tokens,omitempty"`
	OutputTokens int64    `json:"output_tokens,omitempty"`
	CostUSD      *float64 `json:"cost_usd,omitempty"`
	Measured
	Times Times `json:"times"`
	// NewTests are the trials of the tests that the iteration added or changed.
	NewTests []trial.Trial `json:"new_tests,omitempty"`
	// Warnings list exceeded time limits and files that snapshots do not contain.
	Warnings []string `json:"warnings,omitempty"`
}

// Measured says how the usage of an iteration was measured, and how full the context of the agent
// was at most.
type Measured struct {
	// Usage is where the tokens are from, the worst of several turns; empty if they are unknown.
	Usage agent.Source `json:"usage_source,omitempty"`
	// ContextPercent is the used part of the context, and Context where that is from; empty if
	// nothing was heard of the agent.
	ContextPercent int          `json:"context_percent,omitempty"`
	Context        agent.Source `json:"context_source,omitempty"`
}

// Times are the durations of the parts of an iteration, in milliseconds.
type Times struct {
	Agent    int64 `json:"agent_ms"`
	Check    int64 `json:"check_ms"`
	Snapshot int64 `json:"snapshot_ms"`
	Hooks    int64 `json:"hooks_ms"`
	// Metrics is the time of the commands that measure metrics, CleanCopy that of the
	// clean-copy check, Mutations that of the trials of new tests, and Engine that of everything
	// else.
	Metrics   int64 `json:"metrics_ms,omitempty"`
	Mutations int64 `json:"mutations_ms,omitempty"`
	CleanCopy int64 `json:"sealed_ms,omitempty"`
	Engine    int64 `json:"engine_ms"`
}

// Check is the result of one run of the completion command.
type Check struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Passed  bool   `json:"passed"`
	// Weak is set if only the exit status is known, because there are no test results.
	Weak bool `json:"weak_evidence,omitempty"`
	// Skipped is set if the command was not run because the loop was ending, TimedOut if
	// it was stopped at its time limit.
	Skipped  bool `json:"skipped,omitempty"`
	TimedOut bool `json:"timed_out,omitempty"`
	// Output is the end of its output.
	Output string `json:"output,omitempty"`
	// Results is the blob of the test results.
	Results string            `json:"results,omitempty"`
	Counts  testreport.Counts `json:"counts"`
	// Failing are the failing tests, up to a limit, and Messages their messages. Broken
	// are suites that could not run.
	Failing  []string `json:"failing,omitempty"`
	Messages []string `json:"messages,omitempty"`
	Broken   []string `json:"broken,omitempty"`
	// Incomplete is why the test run has no end record.
	Incomplete string `json:"incomplete,omitempty"`
	TookMS     int64  `json:"took_ms"`
}

// Row returns the row of the outcome. If it is too long, its lists are left out.
func (o *Outcome) Row(status record.IterationStatus, task perdure.TaskID) (*record.Iteration, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(raw) > record.MaxIterationBytes { // lists of long names
		small := *o
		small.Artifacts, small.Diff, small.NewTests, small.Deciders = nil, nil, nil, nil
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

// Void reports whether the quality of the iteration does not count, because the iteration
// has regressions that no person accepted: a check passes easily without its tests.
func (o *Outcome) Void() bool { return len(o.Regressions) > 0 && !o.Accepted }

// Eligible reports whether a loop may select an iteration: it ended, was not reverted,
// and has no regression that is not accepted.
func (o *Outcome) Eligible(it *record.Iteration) bool {
	return it.Number > 0 && (it.Status == record.IterationKept || it.Status == record.IterationFailed) &&
		it.EndedAt != nil && o.Quality != nil && o.After != "" && !o.Void()
}

// Prefers reports whether a loop selects an eligible iteration over an earlier eligible
// one, which may be nil. Of equal iterations the earlier one is selected.
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

// Marks returns the false alarms to record for finding; see [regression.Found.Marks].
func (o *Outcome) Marks(finding string) []record.FalseAlarm {
	return (&regression.Found{Iteration: o.Iteration, Regressions: o.Regressions, Findings: o.Findings}).Marks(finding)
}
