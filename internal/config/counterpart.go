package config

import "strings"

// Counterpart returns the setting that has the same meaning as a setting of
// agent_persistence in an aiwg.yml, or "".
func Counterpart(name string) string {
	if strings.HasPrefix(name, "reinforcement.escalation_thresholds.iteration_") {
		return "loop.standard_from, loop.aggressive_from" // by the level
	}
	return map[string]string{
		"enabled":                                         "loop.enabled",
		"detection.mode":                                  "loop.detection",
		"detection.patterns_enabled":                      "loop.patterns_enabled",
		"reinforcement.default_level":                     "loop.reinforcement",
		"reinforcement.quality_plateau_threshold":         "loop.plateau_percent",
		"recovery.max_retries":                            "loop.max_retries",
		"recovery.auto_escalate_on_critical":              "loop.auto_escalate_on_critical",
		"recovery.human_gate_timeout_minutes":             "loop.gate_timeout",
		"best_output_selection.enabled":                   "loop.best_output",
		"best_output_selection.quality_threshold":         "loop.quality_threshold",
		"best_output_selection.require_verification":      "loop.require_verification",
		"performance.detection_latency_budget_ms":         "loop.detection_latency_budget",
		"performance.max_integration_overhead_percentage": "loop.max_overhead_percent",
	}[name]
}
