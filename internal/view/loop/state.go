package loop

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/verify/decider"
	"github.com/perdure/perdure/internal/verify/trial"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// State is the state of a loop as other programs read it: a document of
// loop-state 2, with the persistence extension. What is not known is left out.
type State struct {
	Version       string         `json:"version"`
	LoopID        string         `json:"loop_id"`
	TreeID        string         `json:"tree_id"`
	Status        string         `json:"status"`
	Step          string         `json:"step,omitempty"`
	Iteration     int            `json:"iteration"`
	Reason        string         `json:"reason,omitempty"`
	Task          string         `json:"task,omitempty"`
	Criteria      string         `json:"completion_criteria,omitempty"`
	StartedAt     *time.Time     `json:"started_at"`
	LastUpdated   *time.Time     `json:"last_updated"`
	CompletedAt   *time.Time     `json:"completed_at"`
	Directory     string         `json:"working_directory,omitempty"`
	Configuration *Configuration `json:"configuration,omitempty"`
	// Withheld are names of variables of the environment that agents and checks do not get.
	Withheld []string `json:"withheld_variables,omitempty"`
	// Branch has the commits of the loop, the last of which is Commit.
	Branch   string  `json:"branch,omitempty"`
	Commit   string  `json:"commit,omitempty"`
	Progress *Checks `json:"progress,omitempty"`
	Metrics  *Totals `json:"metrics,omitempty"`

	Baseline          *Metrics            `json:"baseline_metrics,omitempty"`
	History           []Iteration         `json:"iteration_history"`
	Omitted           int                 `json:"omitted_iterations,omitempty"`
	Best              *Choice             `json:"best_iteration"`
	Selected          *Choice             `json:"selected_iteration"`
	LastQuality       *int                `json:"last_iteration_quality"`
	LastVoid          bool                `json:"last_quality_void,omitempty"`
	RegressionNow     *bool               `json:"regression_detected"`
	Regressions       []Event             `json:"regression_events"`
	Level             string              `json:"reinforcement_level,omitempty"`
	Levels            []state.LevelChange `json:"reinforcement_history,omitempty"`
	Attempts          int                 `json:"recovery_attempts"`
	Recoveries        []Recovery          `json:"recovery_history"`
	Recovering        bool                `json:"recovery_in_progress"`
	Stuck             bool                `json:"stuck_loop_detected"`
	Errors            []AgentError        `json:"error_history"`
	ErrorCount        int                 `json:"error_count"`
	LastError         *AgentError         `json:"last_error"`
	Risky             []Action            `json:"risky_actions,omitempty"`
	LastRisky         *Action             `json:"last_risky_action,omitempty"`
	Calls             []Action            `json:"tool_call_history,omitempty"`
	Before            string              `json:"pre_iteration_snapshot,omitempty"`
	Detecting         bool                `json:"detection_enabled"`
	Patterns          []string            `json:"detected_patterns"`
	PersistenceTotals *LayerMeasures      `json:"persistence_metrics,omitempty"`
	LastCheckpoint    string              `json:"last_checkpoint,omitempty"`
	ReportPath        string              `json:"completion_report_path,omitempty"`
	Gates             []Gate              `json:"gates"`
	// HeldOut is the held-out check; nil if there is none, and for agents.
	HeldOut *HeldOut `json:"held_out,omitempty"`

	past *past
}

// Action is a call of a tool; one that could do harm has a level.
type Action struct {
	Tool      string    `json:"tool"`
	Target    string    `json:"target,omitempty"`
	Level     string    `json:"risk_level,omitempty"`
	Pattern   string    `json:"risk_pattern,omitempty"`
	Timestamp time.Time `json:"timestamp"`
	Iteration int       `json:"iteration"`
	// Verdict is ALLOW, WARN or BLOCK; empty when the call was only seen.
	Verdict  string `json:"verdict,omitempty"`
	Snapshot string `json:"snapshot_path,omitempty"`
}

// Configuration is the configuration of the loop, with defaults.
type Configuration struct {
	MaxIterations int `json:"max_iterations"`
	// TimeoutMinutes bounds the agent's time in an iteration; nil means no limit.
	TimeoutMinutes   *float64         `json:"timeout_minutes"`
	IdleMinutes      *float64         `json:"idle_timeout_minutes"`
	CheckMinutes     *float64         `json:"check_timeout_minutes"`
	GateMinutes      *float64         `json:"human_gate_timeout_minutes"`
	Agent            string           `json:"agent"`
	Fallback         []string         `json:"fallback,omitempty"`
	MaxRetries       int              `json:"max_retries"`
	Scorer           string           `json:"scorer,omitempty"`
	QualityThreshold int              `json:"quality_threshold"`
	Selection        config.Selection `json:"selection"`
	KeepLast         bool             `json:"keep_last"`
	Unattended       bool             `json:"unattended"`
	// Own is the configuration as perdure has it, without what stands elsewhere.
	Own map[string]json.RawMessage `json:"perdure,omitempty"`
}

// Checks are the runs of the completion command.
type Checks struct {
	All  []CheckRun `json:"completion_checks"`
	Last *CheckRun  `json:"last_completion_check"`
}

// CheckRun is one of them. Number 0 is that of the baseline.
type CheckRun struct {
	Iteration int        `json:"iteration"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
	Passed    bool       `json:"passed"`
	Exit      int        `json:"exit_status"`
	Output    string     `json:"output,omitempty"`
}

// Totals sum up the loop.
type Totals struct {
	Iterations int `json:"total_iterations"`
	// Successful iterations were kept, failed ones were reverted or ended in an
	// error of the agent.
	Successful int `json:"successful_iterations"`
	Failed     int `json:"failed_iterations"`
	// Tokens and CostUSD are nil where they are not known.
	Tokens  *int64   `json:"total_tokens,omitempty"`
	CostUSD *float64 `json:"total_cost_usd"`
	Seconds float64  `json:"total_duration_seconds"`
	Mean    *float64 `json:"average_iteration_time_seconds"`
}

// Metrics are measures of the workspace.
type Metrics struct {
	CapturedAt *time.Time `json:"captured_at,omitempty"`
	metric.Metrics
}

// TestResults are what a check came to.
type TestResults struct {
	// Verification is passed or failed.
	Verification string   `json:"verification_status"`
	Total        *int     `json:"total,omitempty"`
	Passed       *int     `json:"passed,omitempty"`
	Failed       *int     `json:"failed,omitempty"`
	Skipped      *int     `json:"skipped,omitempty"`
	Failing      []string `json:"failing_tests,omitempty"`
}

// Iteration is one repetition.
type Iteration struct {
	Iteration int                    `json:"iteration"`
	Timestamp *time.Time             `json:"timestamp"`
	Status    record.IterationStatus `json:"status"`
	Quality   *int                   `json:"quality_score"`
	Parts     map[string]int         `json:"quality_breakdown,omitempty"`
	Delta     *int                   `json:"quality_delta"`
	// Void is set if the quality does not count, because of regressions.
	Void      bool     `json:"quality_void,omitempty"`
	Scorer    string   `json:"scorer,omitempty"`
	Artifacts []string `json:"artifacts"`
	Changed   int      `json:"files_changed"`
	Snapshot  *string  `json:"snapshot_path"`
	// SnapshotID is there where the path is that of a file.
	SnapshotID string       `json:"snapshot_id,omitempty"`
	Commit     string       `json:"commit,omitempty"`
	Tests      *TestResults `json:"test_results"`
	Metrics    *Metrics     `json:"metrics_snapshot"`
	Regressed  *bool        `json:"regression_detected"`
	Agent      string       `json:"agent,omitempty"`
	Input      int64        `json:"input_tokens,omitempty"`
	Output     int64        `json:"output_tokens,omitempty"`
	CostUSD    *float64     `json:"cost_usd,omitempty"`
	state.Measured
	// NewTests are the trials of the tests that the iteration added or changed.
	NewTests []trial.Trial `json:"new_tests,omitempty"`
	// Deciders are the files that decide what the check runs and that changed since the baseline.
	Deciders []decider.Decider `json:"deciding_files,omitempty"`
	Times    *state.Times      `json:"times,omitempty"`
}

// Choice is the iteration that was chosen, or would be now.
type Choice struct {
	Iteration int    `json:"iteration"`
	Quality   *int   `json:"quality_score"`
	Snapshot  string `json:"snapshot_path,omitempty"`
	// SnapshotID is there where the path is that of a file.
	SnapshotID string `json:"snapshot_id,omitempty"`
	Reason     string `json:"selection_reason,omitempty"`
}

// Recovery is what was done about the regressions of an iteration.
type Recovery struct {
	Event     string     `json:"event_id,omitempty"`
	Iteration int        `json:"iteration"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
	Attempt   int        `json:"attempt"`
	Outcome   string     `json:"outcome,omitempty"`
	// Steps are those that were taken, by their names in capitals.
	Steps map[string]Step `json:"steps"`
}

// Step is a step of a recovery. The diagnosis has a confidence from 0 to 1.
type Step struct {
	ExecutedAt time.Time `json:"executed_at"`
	Text       string    `json:"text,omitempty"`
	Diagnosis  string    `json:"diagnosis,omitempty"`
	Confidence *float64  `json:"confidence,omitempty"`
	Cause      string    `json:"root_cause,omitempty"`
}

// AgentError is how an agent's turn failed.
type AgentError struct {
	Iteration int        `json:"iteration"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
	Type      string     `json:"error_type,omitempty"`
	Message   string     `json:"error_message"`
}

// LayerMeasures measure the supervision itself.
type LayerMeasures struct {
	Detections     int      `json:"detections"`
	FalseAlarms    *int     `json:"false_positives,omitempty"`
	FalseAlarmRate *float64 `json:"false_positive_rate,omitempty"`
	Overhead       *float64 `json:"integration_overhead_percentage,omitempty"`
}

// Gate is a question to a person and what was decided.
type Gate struct {
	Gate       int              `json:"gate"`
	Iteration  int              `json:"iteration"`
	Kind       perdure.GateKind `json:"kind"`
	Title      string           `json:"title"`
	Options    []string         `json:"options"`
	OpenedAt   time.Time        `json:"opened_at"`
	ExpiresAt  *time.Time       `json:"expires_at,omitempty"`
	Answer     string           `json:"answer,omitempty"`
	AnsweredBy string           `json:"answered_by,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	AnsweredAt *time.Time       `json:"answered_at,omitempty"`
}
