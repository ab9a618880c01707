package state

import "time"

// Diagnosis is the assumed cause of a regression.
type Diagnosis string

// Diagnoses of a regression.
const (
	CognitiveLoad  Diagnosis = "cognitive_load"
	TaskComplexity Diagnosis = "task_complexity"
	Ambiguity      Diagnosis = "specification_ambiguity"
	RewardHacking  Diagnosis = "reward_hacking"
	GenuineFix     Diagnosis = "genuine_fix"
)

// Recovery is the reaction to a regression.
type Recovery struct {
	Iteration int       `json:"iteration"`
	Attempt   int       `json:"attempt"`
	Diagnosis Diagnosis `json:"diagnosis"`
	// Confidence is in percent.
	Confidence int            `json:"confidence"`
	Why        string         `json:"why"`
	Steps      []RecoveryStep `json:"steps"`
	// Outcome is retried, reverted or escalated.
	Outcome string `json:"outcome,omitempty"`
}

// RecoveryStep is a step of a recovery: pause, diagnose, adapt, retry or escalate.
type RecoveryStep struct {
	Step       string    `json:"step"`
	ExecutedAt time.Time `json:"executed_at"`
	Text       string    `json:"text,omitempty"`
}

// Did adds a step.
func (v *Recovery) Did(step, text string) {
	v.Steps = append(v.Steps, RecoveryStep{Step: step, ExecutedAt: time.Now().UTC(), Text: text})
}
