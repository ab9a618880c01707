// Package state defines the JSON documents of a loop: the State in the loop's row and the
// Outcome in the row of each iteration. The engine writes them; views read them.
package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/branch"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/verify/machine"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// State is the data that the engine's next step needs.
type State struct {
	// Baseline is the first snapshot, Results the blob with its test results; empty if
	// there are none.
	Baseline workspace.ID `json:"baseline,omitempty"`
	Results  string       `json:"results,omitempty"`
	// Trusted is the snapshot with which protected files are compared after a person
	// approved changes; empty: the baseline. TrustedPassed is set if the check passed then.
	Trusted       workspace.ID `json:"trusted,omitempty"`
	TrustedPassed bool         `json:"trusted_passed,omitempty"`
	// Checked is the baseline as its check left it; empty if the check changed nothing.
	// CheckFiles is the blob with the record of the files that the check wrote.
	Checked    workspace.ID `json:"checked,omitempty"`
	CheckFiles string       `json:"check_files,omitempty"`
	// LeftOut are the reported files that snapshots do not contain. Repository is set if
	// the workspace is the top folder of a git repository.
	LeftOut    []string `json:"left_out,omitempty"`
	Repository bool     `json:"repository,omitempty"`
	// Withheld are the first names of variables of the environment that neither agents nor
	// checks get.
	Withheld []string `json:"withheld,omitempty"`
	// Unset are the names of loop.env that stood for no variable when they were last read.
	Unset []string `json:"unset,omitempty"`
	// Ignored is the blob with the ignored files at the baseline or at the last approval.
	// NoCleanCopy is why no clean-copy check is possible, FailedSetup the setup command
	// that failed.
	Ignored     string `json:"beside,omitempty"`
	NoCleanCopy string `json:"unsealable,omitempty"`
	FailedSetup string `json:"unprepared,omitempty"`
	// Tools is the PATH of the check with its programs, MachineFiles the blob with the record
	// of shared caches and of the folders of PATH, both of the same time as Ignored; nil for a
	// loop of an older version. NoSandbox is why clean copies run without a sandbox.
	Tools        *machine.Tools `json:"tools,omitempty"`
	MachineFiles string         `json:"machine_files,omitempty"`
	NoSandbox    string         `json:"no_sandbox,omitempty"`
	// Metering is the plan of the metrics, with those of the baseline.
	Metering metric.Plan `json:"metering,omitzero"`
	// Past is set for an imported loop.
	Past *record.Past `json:"past,omitempty"`
	// Branch is the end of the branch with the commits of the loop; nil if it has none.
	Branch *branch.Position `json:"branch,omitempty"`
	// Worktree is the folder of the loop's worktree; empty if it has none.
	Worktree string `json:"worktree,omitempty"`
	// Run is the current or last iteration.
	Run Turn `json:"run"`
	// Reverted is why the last iteration was reverted; empty if it was not.
	Reverted string `json:"reverted,omitempty"`
	// FilesOf is the iteration whose files were restored for the next one; 0 if none.
	FilesOf int `json:"files_of,omitempty"`
	// Recoveries counts consecutive recoveries from regressions.
	Recoveries int `json:"recoveries,omitempty"`
	// Recovery is the current recovery, LastRegression identifies the previous one's
	// regression.
	Recovery       *Recovery   `json:"recovery,omitempty"`
	LastRegression FailureMark `json:"last_regression,omitzero"`
	// FailedInCopy are the latest tests that failed only in a clean copy.
	FailedInCopy []string `json:"failed_in_copy,omitempty"`
	// Restored counts deleted tests that were restored without asking a person.
	Restored int `json:"restored,omitempty"`
	// Errors are the last failures, by which a stuck loop is recognized.
	Errors []FailureMark `json:"errors,omitempty"`
	// Levels are the changes of the reinforcement level, the latest last. Rejected is
	// set if a person rejected the last iteration.
	Levels   []LevelChange `json:"levels,omitempty"`
	Rejected bool          `json:"rejected,omitempty"`
	// Allowed are the permits of tool calls that a person allowed.
	Allowed []string `json:"allowed,omitempty"`
	// CallsRead is the offset up to which the journal of tool calls was read.
	CallsRead int64 `json:"calls_read,omitempty"`
	// Overrun is set if a person was asked to allow more iterations.
	Overrun bool `json:"overrun,omitempty"`
	// AgentErrors counts consecutive iterations that ended in an agent error.
	AgentErrors int `json:"agent_errors,omitempty"`
	// HeldOutAccepted is the iteration that a person accepted although the held-out check does not
	// confirm it; 0 if there is none.
	HeldOutAccepted int `json:"held_out_accepted,omitempty"`
	// Gate is the number of the open gate; 0 if there is none.
	Gate int `json:"gate,omitempty"`
	// Answer is a person's addition to the next prompt.
	Answer string `json:"answer,omitempty"`
	// Agent is the index of the current agent in Agents, the chain when it was chosen;
	// Marks are the failures and limits of agents, by name.
	Agent  int                  `json:"agent,omitempty"`
	Agents []string             `json:"agents,omitempty"`
	Marks  map[string]AgentMark `json:"agent_marks,omitempty"`
	// Warned is the highest used share of a budget that was reported, in percent.
	Warned int `json:"warned,omitempty"`
	// Unpriced is set if the cost of the last turn is not known.
	Unpriced bool `json:"unpriced,omitempty"`
	// Counts is set if the loop began with a version that counts all requests of agents for a budget.
	// Uncounted says which requests of the last turn it could not count.
	Counts    bool   `json:"counts,omitempty"`
	Uncounted string `json:"uncounted,omitempty"`
	// AtGate are the files of an unattended loop that left its best iteration while it
	// waits at a gate; nil if it did not.
	AtGate *GateFiles `json:"at_gate,omitempty"`
	// Verdict is how the loop has to end; empty if it continues. Reason is why.
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Selected is the iteration whose files are left in the workspace; 0 if none.
	Selected       int    `json:"selected,omitempty"`
	SelectedReason string `json:"selected_reason,omitempty"`
	// Verified is set if the check passes on the restored files.
	Verified bool `json:"verified,omitempty"`
	// Changed are the files that differ from the baseline at the end of the loop; nil before, and if
	// they are not known.
	Changed *Changed `json:"changed,omitempty"`
	// WayBack is the snapshot taken before the best iteration was restored.
	WayBack []workspace.ID `json:"way_back,omitempty"`
}

// Changed are changed files: their number, and the first names.
type Changed struct {
	Count int      `json:"count"`
	Names []string `json:"names,omitempty"`
}

// GateFiles are the files of a loop that waits at a gate.
type GateFiles struct {
	// Left is the snapshot of the files about which the gate asks, Shown the one whose files
	// are in the workspace.
	Left  workspace.ID `json:"left"`
	Shown workspace.ID `json:"shown"`
}

// Turn is the progress of an iteration.
type Turn struct {
	Number int `json:"number,omitempty"`
	// Spawns counts the tasks created for it.
	Spawns int `json:"spawns,omitempty"`
	// Before and After are the snapshots before and after the agent's work.
	Before workspace.ID `json:"before,omitempty"`
	After  workspace.ID `json:"after,omitempty"`
	// Working is set while the agent may be running: a process that finds it set takes
	// over after a crash.
	Working bool `json:"working,omitempty"`
	// Settings are the agent's settings before its turn, Left those after it.
	Settings string `json:"settings,omitempty"`
	Left     string `json:"left,omitempty"`
	// Kept is the snapshot after the last turn that another followed, taken at KeptAt; a
	// crash restores it. Reopened is set after such a crash, so that the prompt repeats
	// the results so far.
	Kept     workspace.ID `json:"kept,omitempty"`
	KeptAt   time.Time    `json:"kept_at,omitzero"`
	Reopened bool         `json:"reopened,omitempty"`
	// Retries and Fresh count the current agent's turns after its failures and after a
	// full context; SpentMS is its time in this iteration.
	Retries int   `json:"retries,omitempty"`
	Fresh   int   `json:"fresh,omitempty"`
	SpentMS int64 `json:"spent_ms,omitempty"`
	// Exhausted is set if no agent of the chain is left.
	Exhausted bool `json:"exhausted,omitempty"`
	// Risky are the agent's risky calls, Wanted the permits that a person has to grant,
	// and Calls the last judged calls.
	Risky  []policy.Risky `json:"risky,omitempty"`
	Calls  []policy.Risky `json:"calls,omitempty"`
	Wanted []string       `json:"wanted,omitempty"`
	// Measured is of the last turn.
	Measured
	// Sight is how tool calls are observed, Denied the number of refused ones.
	Sight  agent.Sight `json:"sight,omitempty"`
	Denied int         `json:"denied,omitempty"`
	// Unpermitted are the calls that the agent's own permissions denied.
	Unpermitted Unpermitted `json:"unpermitted,omitzero"`
	// Turns counts the agent's turns in this iteration.
	Turns int `json:"turns,omitempty"`
	// Waits counts consecutive waits for a rate limit.
	Waits     int       `json:"waits,omitempty"`
	WaitUntil time.Time `json:"wait_until,omitzero"`
	// Failure is the error of the agent's last turn; empty if it succeeded.
	Failure string `json:"failure,omitempty"`
	// Retried are the errors of the turns that another turn followed, up to MaxRetried.
	Retried []TurnError `json:"retried,omitempty"`
	// Blocked is set if a handler of regression_detected requires a person.
	Blocked bool `json:"blocked,omitempty"`
	// Inject is the text that handlers add to the prompt.
	Inject string `json:"inject,omitempty"`
	// Level is the reinforcement level, Reminder its text.
	Level    hook.Level `json:"level,omitempty"`
	Reminder string     `json:"reminder,omitempty"`
	// Text is the agent's last message.
	Text string `json:"text,omitempty"`
	// Warnings are the warnings of the iteration so far.
	Warnings []string `json:"warnings,omitempty"`
	// AgentMS, SnapshotMS and HooksMS are the times of the iteration so far.
	AgentMS    int64 `json:"agent_ms,omitempty"`
	SnapshotMS int64 `json:"snapshot_ms,omitempty"`
	HooksMS    int64 `json:"hooks_ms,omitempty"`
	// Check is the result of the completion command, Metrics are the other measurements.
	Check   *Check          `json:"check,omitempty"`
	Metrics *metric.Metrics `json:"metrics,omitempty"`
}

// Unpermitted are calls that an agent's own permissions denied.
type Unpermitted struct {
	Count int `json:"count"`
	// Calls are the first of them, each once: command lines, or tools with their files.
	Calls []string `json:"calls,omitempty"`
}

// MaxRetried bounds the errors that are kept of an iteration.
const MaxRetried = 10

// TurnError is the error of a turn of the agent after which the iteration continued.
type TurnError struct {
	At      time.Time `json:"timestamp"`
	Message string    `json:"error_message"`
}

// FailureMark identifies a failure, without the parts that differ each time.
type FailureMark struct {
	Error string `json:"error"`
	Files string `json:"files"`
}

// AgentMark is the state of an agent of the chain.
type AgentMark struct {
	// Failed is set if the agent failed permanently in this loop.
	Failed bool `json:"failed,omitempty"`
	// Until is when its rate limit ends.
	Until time.Time `json:"until,omitzero"`
}

// LevelChange is a change of the reinforcement level.
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
