package hook

import (
	"cmp"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/nearest"
)

// Name is the name of a hook: a moment in a loop at which handlers are asked.
type Name string

// The hooks of a loop; [Table] says when they come and what they carry.
const (
	LoopStart               Name = "loop_start"
	PreIteration            Name = "pre_iteration"
	PreToolCall             Name = "pre_tool_call"
	PostToolCall            Name = "post_tool_call"
	PostIteration           Name = "post_iteration"
	RegressionDetected      Name = "regression_detected"
	OnError                 Name = "on_error"
	StuckLoopDetected       Name = "stuck_loop_detected"
	ReinforcementEscalation Name = "reinforcement_escalation"
	LoopComplete            Name = "loop_complete"

	RateLimited       Name = "rate_limited"
	BudgetWarning     Name = "budget_warning"
	GateOpened        Name = "gate_opened"
	GateAnswered      Name = "gate_answered"
	LoopPaused        Name = "loop_paused"
	CheckpointWritten Name = "checkpoint_written"
)

// Time-outs of handlers that set none of their own.
const (
	DefaultTimeout           = 5 * time.Second
	DefaultToolTimeout       = 2 * time.Second  // of pre_tool_call
	DefaultRegressionTimeout = 10 * time.Second // of regression_detected
)

// NoTimeout disables the time-out, as every negative value does.
const NoTimeout time.Duration = -1

// OnFault says how a [FaultError] of a handler is treated.
type OnFault string

// The policies for faults.
const (
	// FaultContinues: the fault is logged and the loop continues.
	FaultContinues OnFault = "continue"
	// FaultBlocks: the fault counts as BLOCK.
	FaultBlocks OnFault = "block"
)

// Row describes a hook.
type Row struct {
	// Hook is its name.
	Hook Name
	// When is the moment, in words.
	When string
	// Inputs are the members of metadata.inputs. A hook leaves out what is not
	// known.
	Inputs []Input
	// Timeout ends a handler that sets none of its own; negative is none.
	Timeout time.Duration
	// OnFault is the policy for faults of handlers that set none.
	OnFault OnFault
	// Destructive limits FaultBlocks to destructive calls: if inputs.destructive
	// is false, the loop continues after a fault.
	Destructive bool
	// Detects: built-in handlers detect regressions here, and
	// [Config].LatencyBudget applies.
	Detects bool
}

// Input is a member of metadata.inputs.
type Input struct {
	// Name is the key in the JSON object.
	Name string
	// Type is the type in JSON: string, integer, number, boolean, object or
	// array.
	Type string
	// What describes the value.
	What string
}

// Table returns a row for every hook, in the order in which they run in a loop.
func Table() []Row {
	rows := slices.Concat(workRows(), troubleRows(), noticeRows())
	for i := range rows {
		rows[i].Timeout = cmp.Or(rows[i].Timeout, DefaultTimeout)
		rows[i].OnFault = cmp.Or(rows[i].OnFault, FaultContinues)
	}
	return rows
}

// workRows returns the hooks of a loop without errors, except loop_complete.
func workRows() []Row {
	return []Row{
		{Hook: LoopStart, When: "the loop begins, before its first iteration", Inputs: []Input{
			{"task", "string", "what the agent is to do"},
			{"completion_criteria", "string", "the command that decides whether it is done"},
			{"workspace", "string", "the folder the agent works in, absolute"},
			{"configuration", "object", "the settings of the loop"},
		}},
		{Hook: PreIteration, When: "before each iteration, when its prompt is made", Inputs: []Input{
			{"iteration_number", "integer", "from 1"},
			{"task_context", "string", "what the agent is to do"},
			{"error_history", "array", "earlier errors: iteration, error"},
			{"risk_patterns", "array", "names of patterns that were noticed, for example repeated_error"},
			{"reinforcement_level", "string", "OFF, MINIMAL, STANDARD, AGGRESSIVE or ADAPTIVE"},
			{"failing_checks", "array", "names of the checks that fail now"},
			{"quality_trajectory", "array", "the scores of the iterations until now"},
			{"baseline_metrics", "object", "what was measured before the first iteration, or when a person last accepted " +
				"changes"},
			{"metrics", "object", "what was measured after the last iteration"},
		}},
		{Hook: PreToolCall, When: "before a risky call of a tool", Timeout: DefaultToolTimeout, OnFault: FaultBlocks,
			Destructive: true, Detects: true, Inputs: append(toolInputs(),
				Input{"destructive", "boolean", "the call can destroy what no commit holds; when it is left out, it may"},
			)},
		{Hook: PostToolCall, When: "after a risky call of a tool",
			Detects: true, Inputs: append(toolInputs(),
				Input{"status", "string", "completed or failed"},
				Input{"baseline", "object", "metrics before the first iteration"},
				Input{"current", "object", "metrics after the call, those that need no run of the tests"},
				Input{"tests_before", "integer", "tests in the files that a risky call touched, before it"},
				Input{"tests_after", "integer", "and after it"},
				Input{"findings", "array", "signs of regressions in these files: type, tier, severity, file, line, message"},
			)},
		{Hook: PostIteration, When: "after each iteration, before it is judged", Detects: true, Inputs: []Input{
			{"iteration_number", "integer", "from 1"},
			{"baseline", "object", "metrics before the first iteration"},
			{"current", "object", "metrics after this one"},
			{"quality_score", "number", "0 to 100"},
			{"quality_breakdown", "object", "the parts of the score"},
			{"quality_delta", "number", "the change of the score"},
			{"test_results", "object", "results of the tests"},
			{"artifacts", "array", "paths of the files that changed"},
			{"regressions", "array", "regressions found in the test results and the files"},
			{"completion_check", "object", "the completion command: command, passed, exit_code"},
		}},
	}
}

// troubleRows returns the hooks for regressions and errors, and loop_complete.
func troubleRows() []Row {
	return []Row{
		{Hook: RegressionDetected, When: "a regression was found, before recovery begins",
			Timeout: DefaultRegressionTimeout, OnFault: FaultBlocks, Inputs: []Input{
				{"regression_type", "string", "the type of the worst one"},
				{"severity", "string", "critical, high, medium or low"},
				{"iteration", "integer", "where it was found"},
				{"details", "object", "baseline_value, current_value, diff"},
				{"regressions", "array", "all of them: regression_type, severity, details"},
			}},
		{Hook: OnError, When: "an iteration met an error", Inputs: []Input{
			{"error_type", "string", "its kind"},
			{"error_message", "string", "what it says"},
			{"stack_trace", "string", "the stack trace, if known"},
			{"iteration", "integer", "where it happened"},
			{"error_count", "integer", "errors of the loop until now"},
			{"same_error_repeated", "integer", "how often this one came in a row"},
		}},
		{Hook: StuckLoopDetected, When: "the loop makes no progress; the user will be asked", Timeout: NoTimeout,
			OnFault: FaultBlocks, Inputs: []Input{
				{"pattern", "string", "same_error, agent_errors, oscillation or beyond_plan"},
				{"iteration", "integer", "where it was noticed"},
				{"error_count", "integer", "errors of the loop until now"},
				{"recovery_attempts", "integer", "recoveries until now"},
				{"error_history", "array", "the errors: iteration, error"},
			}},
		{Hook: ReinforcementEscalation, When: "the level of reinforcement rises", Inputs: []Input{
			{"from_level", "string", "the level until now"},
			{"to_level", "string", "the new one"},
			{"reason", "string", "why"},
			{"quality_deltas", "array", "the latest changes of the score"},
		}},
		{Hook: LoopComplete, When: "the loop ended: completed, failed or aborted alike", Inputs: []Input{
			{"status", "string", "completed, failed or aborted"},
			{"total_iterations", "integer", "how many there were"},
			{"selected_iteration", "integer", "whose result is in the workspace"},
			{"selection_reason", "string", "why"},
			{"quality_trajectory", "array", "the scores of all iterations"},
			{"regression_events", "integer", "how many regressions there were"},
			{"cost_usd", "number", "what it cost"},
			{"completion_report_path", "string", "the report"},
		}},
	}
}

// noticeRows returns the hooks that are notifications.
func noticeRows() []Row {
	return []Row{
		{Hook: RateLimited, When: "the loop begins to wait for a rate limit", Inputs: []Input{
			{"agent", "string", "the agent whose limit was reached"},
			{"until", "string", "when it ends, RFC 3339"},
			{"message", "string", "the agent's message"},
		}},
		{Hook: BudgetWarning, When: "most of a budget is used",
			Inputs: []Input{
				{"resource", "string", "usd, tokens, iterations or time"},
				{"used", "number", "how much is used"},
				{"limit", "number", "the limit"},
				{"percent", "number", "used of limit"},
			}},
		{Hook: GateOpened, When: "a person is asked", Inputs: []Input{
			{"gate_id", "string", "the gate"},
			{"kind", "string", "what it is about"},
			{"reason", "string", "why it was opened"},
			{"options", "array", "the possible answers"},
		}},
		{Hook: GateAnswered, When: "a person answered", Inputs: []Input{
			{"gate_id", "string", "the gate"},
			{"kind", "string", "what it is about"},
			{"decision", "string", "the answer"},
			{"decided_by", "string", "the user who answered"},
			{"reason", "string", "the reason the user stated"},
		}},
		{Hook: LoopPaused, When: "the loop cannot continue until the user fixes a problem", Inputs: []Input{
			{"reason", "string", "the problem"},
		}},
		{Hook: CheckpointWritten, When: "the work of an iteration was recorded for the agent that continues it",
			Inputs: []Input{
				{"path", "string", "the builder-state.json that shows it"},
				{"reason", "string", "context_limit, failure, rate_limit, timeout, reassignment or periodic"},
				{"agent", "string", "the agent that worked until now"},
				{"files", "integer", "how many files the iteration changed so far"},
			}},
	}
}

func toolInputs() []Input {
	return []Input{
		{"tool", "string", "the agent's name for the tool"},
		{"kind", "string", "edit, delete, move, execute or other"},
		{"target", "string", "what the call is about: the file or the command line"},
		{"command", "string", "the command line of a call that runs one"},
		{"paths", "array", "the files it touches"},
		{"input", "object", "the input of the tool"},
		{"call_id", "string", "the agent's name for the call"},
		{"risk_level", "string", "low, medium, high or critical"},
		{"risk_pattern", "string", "the risk pattern it matches"},
	}
}

// Names returns the names of all hooks, in the order of [Table].
func Names() []Name {
	rows := Table()
	names := make([]Name, len(rows))
	for i, row := range rows {
		names[i] = row.Hook
	}
	return names
}

// known reports whether there is a hook of this name.
func (n Name) known() bool { return slices.Contains(Names(), n) }

// nearestName guesses which hook was meant.
func nearestName(name Name) (string, bool) {
	var all []string
	for _, n := range Names() {
		all = append(all, string(n))
	}
	return nearest.Word(string(name), all)
}
