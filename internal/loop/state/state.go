// Package state is the documents of a loop: the State in its row and the Outcome in
// the row of each iteration. The engine writes them; views read them.
package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// State is the engine's document: what the next step needs to know. What is of
// the past stands in the rows of the iterations.
type State struct {
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
	Run Turn `json:"run"`
	// Reverted tells that the last iteration was taken back, and why.
	Reverted string `json:"reverted,omitempty"`
	// FilesOf is the iteration whose files were brought back for the next one; 0
	// without one.
	FilesOf int `json:"files_of,omitempty"`
	// Recoveries counts regressions in a row that were recovered from.
	Recoveries int `json:"recoveries,omitempty"`
	// Recovery is the one under way, LastRegression how the one before looked.
	Recovery       *Recovery   `json:"recovery,omitempty"`
	LastRegression FailureMark `json:"last_regression,omitzero"`
	// Restored counts deleted tests that were restored instead of asking.
	Restored int `json:"restored,omitempty"`
	// Errors are the last failures of iterations, for noticing a loop that is stuck.
	Errors []FailureMark `json:"errors,omitempty"`
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
	Marks  map[string]AgentMark `json:"agent_marks,omitempty"`
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

// Turn is how far an iteration is.
type Turn struct {
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

// FailureMark is how an iteration failed, without what differs each time.
type FailureMark struct {
	Error string `json:"error"`
	Files string `json:"files"`
}

// AgentMark is what is known of an agent of the chain.
type AgentMark struct {
	// Failed: it did not get its work done in this loop.
	Failed bool `json:"failed,omitempty"`
	// Until is when its limit ends.
	Until time.Time `json:"until,omitzero"`
}

// LevelChange is a change of the level of reinforcement.
type LevelChange struct {
	At        time.Time  `json:"timestamp"`
	Iteration int        `json:"iteration"`
	From      hook.Level `json:"from_level,omitempty"`
	To        hook.Level `json:"to_level"`
	Reason    string     `json:"reason"`
}

// Read reads the state in a loop's row.
func Read(raw json.RawMessage) (*State, error) {
	var s State
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read state of loop: %w", err)
	}
	return &s, nil
}
