package loop

import (
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// state is the engine's document: what the next step needs to know. What is of
// the past stands in the rows of the iterations.
type state struct {
	// Baseline is the snapshot of the beginning, Results the blob with its test
	// results; empty when there are none.
	Baseline workspace.ID `json:"baseline,omitempty"`
	Results  string       `json:"results,omitempty"`
	// Trusted is the snapshot that protected files are compared with, after
	// somebody approved changes; empty: the baseline.
	Trusted workspace.ID `json:"trusted,omitempty"`
	// LeftOut are files that snapshots leave out and that were told of. Repository
	// tells that the workspace is the top of one.
	LeftOut    []string `json:"left_out,omitempty"`
	Repository bool     `json:"repository,omitempty"`
	// Beside is the blob that names the ignored files of the beginning, or of when
	// changes were approved. Unsealable is why nothing can be sealed here, Unprepared
	// the setup command that was tried.
	Beside     string `json:"beside,omitempty"`
	Unsealable string `json:"unsealable,omitempty"`
	Unprepared string `json:"unprepared,omitempty"`
	// Metering is how the metrics are taken, and those of the baseline.
	Metering metric.Plan `json:"metering,omitzero"`
	// Past is of a loop that began elsewhere.
	Past *record.Past `json:"past,omitempty"`
	// Run is the iteration at work, or the last one.
	Run turnState `json:"run"`
	// Reverted tells that the last iteration was taken back, and why.
	Reverted string `json:"reverted,omitempty"`
	// FilesOf is the iteration whose files were brought back for the next one; 0
	// without one.
	FilesOf int `json:"files_of,omitempty"`
	// Recoveries counts regressions in a row that were recovered from.
	Recoveries int `json:"recoveries,omitempty"`
	// Recovery is the one under way, LastRegression how the one before looked.
	Recovery       *Recovery   `json:"recovery,omitempty"`
	LastRegression failureMark `json:"last_regression,omitzero"`
	// Restored counts deleted tests that were restored instead of asking.
	Restored int `json:"restored,omitempty"`
	// Errors are the last failures of iterations, for noticing a loop that is stuck.
	Errors []failureMark `json:"errors,omitempty"`
	// Levels are the changes of the level of reinforcement, the latest last.
	// Rejected tells that a person rejected the last iteration.
	Levels   []LevelChange `json:"levels,omitempty"`
	Rejected bool          `json:"rejected,omitempty"`
	// Allowed are calls that a person allowed.
	Allowed []string `json:"allowed,omitempty"`
	// CallsRead is how far the journal of tool calls was read.
	CallsRead int64 `json:"calls_read,omitempty"`
	// Overrun tells that a person was asked about more iterations than planned.
	Overrun bool `json:"overrun,omitempty"`
	// AgentErrors counts iterations in a row that ended in an agent error.
	AgentErrors int `json:"agent_errors,omitempty"`
	// Gate is the number of the open gate, 0 without one.
	Gate int `json:"gate,omitempty"`
	// Answer is what a person added for the next prompt.
	Answer string `json:"answer,omitempty"`
	// Agent is which of the agents works now, Agents who they were when that was
	// decided, and Marks what is known of them by their names.
	Agent  int                  `json:"agent,omitempty"`
	Agents []string             `json:"agents,omitempty"`
	Marks  map[string]agentMark `json:"agent_marks,omitempty"`
	// Warned is the highest share of a budget that was told of, in percent.
	Warned int `json:"warned,omitempty"`
	// Verdict, when set, is how the loop is to end, and Reason why.
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Selected is the iteration that is left in the workspace; 0 is none.
	Selected       int    `json:"selected,omitempty"`
	SelectedReason string `json:"selected_reason,omitempty"`
	// Verified tells that the check passes on what was brought back.
	Verified bool `json:"verified,omitempty"`
	// WayBack is the snapshot of what was there before the best was restored.
	WayBack []workspace.ID `json:"way_back,omitempty"`
}

// turnState is how far an iteration is.
type turnState struct {
	Number int `json:"number,omitempty"`
	// Spawns counts the tasks that were made for it.
	Spawns int `json:"spawns,omitempty"`
	// Before and After are the snapshots around the agent's work.
	Before workspace.ID `json:"before,omitempty"`
	After  workspace.ID `json:"after,omitempty"`
	// Working is set while the agent may be at work: who finds it set follows a
	// crash.
	Working bool `json:"working,omitempty"`
	// Settings are the settings as the agent found them, Left as it left them.
	Settings string `json:"settings,omitempty"`
	Left     string `json:"left,omitempty"`
	// Kept is the snapshot behind the last turn that ended and was followed by
	// another, at the time KeptAt: a crash goes back to it. Reopened tells that one
	// did, so that the agent is told what is known already.
	Kept     workspace.ID `json:"kept,omitempty"`
	KeptAt   time.Time    `json:"kept_at,omitzero"`
	Reopened bool         `json:"reopened,omitempty"`
	// Retries and Fresh count turns of the present agent after failures of its own,
	// and after a full context; SpentMS is its time in this iteration.
	Retries int   `json:"retries,omitempty"`
	Fresh   int   `json:"fresh,omitempty"`
	SpentMS int64 `json:"spent_ms,omitempty"`
	// Exhausted tells that no agent of the chain is left.
	Exhausted bool `json:"exhausted,omitempty"`
	// Risky are the agent's risky calls, Wanted those that a person is to be asked
	// about.
	Risky []policy.Risky `json:"risky,omitempty"`
	// Calls are the last of its calls that were judged.
	Calls  []policy.Risky `json:"calls,omitempty"`
	Wanted []string       `json:"wanted,omitempty"`
	// Sight is how the agent's calls of tools are seen, Denied how many were.
	Sight  agent.Sight `json:"sight,omitempty"`
	Denied int         `json:"denied,omitempty"`
	// Turns counts the turns of the agent in this iteration.
	Turns int `json:"turns,omitempty"`
	// Waits counts waits for a rate limit in a row.
	Waits     int       `json:"waits,omitempty"`
	WaitUntil time.Time `json:"wait_until,omitzero"`
	// Failure is how the agent's last turn failed; empty when it did not.
	Failure string `json:"failure,omitempty"`
	// Blocked tells that a handler of regression_detected wants a person.
	Blocked bool `json:"blocked,omitempty"`
	// Inject is what handlers want the agent to be told.
	Inject string `json:"inject,omitempty"`
	// Level is how firmly the agent is reminded of the rules, Reminder the text.
	Level    hook.Level `json:"level,omitempty"`
	Reminder string     `json:"reminder,omitempty"`
	// Text is what the agent said last.
	Text string `json:"text,omitempty"`
	// Warnings are those of the iteration so far.
	Warnings []string `json:"warnings,omitempty"`
	// What was measured of the iteration so far.
	AgentMS    int64 `json:"agent_ms,omitempty"`
	SnapshotMS int64 `json:"snapshot_ms,omitempty"`
	HooksMS    int64 `json:"hooks_ms,omitempty"`
	// Check is what the completion command came to.
	Check *Check `json:"check,omitempty"`
	// Metrics are what was measured besides.
	Metrics *metric.Metrics `json:"metrics,omitempty"`
}

// failureMark is how an iteration failed, without what differs each time.
type failureMark struct {
	Error string `json:"error"`
	Files string `json:"files"`
}

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
	Regressions []Regression `json:"regressions,omitempty"`
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

// Regression is a fact that something got worse.
type Regression = regression.Regression
