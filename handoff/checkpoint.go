package handoff

import (
	"encoding/json"
	"time"
)

// SchemaVersion is the version of the checkpoint's format that this package
// writes. Version 1 has no schemaVersion, taskId, nextAction, failedApproaches,
// notAllowed, files, cut and ledger.
const SchemaVersion = 2

// Phase is the phase of a task. Other values than the constants are kept.
type Phase string

// The phases.
const (
	PhasePlanning       Phase = "planning"
	PhaseImplementation Phase = "implementation"
	PhaseVerification   Phase = "verification"
	PhaseDocumentation  Phase = "documentation"
)

// Reason is the reason of a checkpoint.
type Reason string

// The reasons.
const (
	ReasonPeriodic     Reason = "periodic"
	ReasonContextLimit Reason = "context_limit"
	ReasonFailure      Reason = "failure"
	ReasonReassignment Reason = "reassignment"
	ReasonRateLimit    Reason = "rate_limit"
	ReasonManual       Reason = "manual"
)

// Status is the result of a verification.
type Status string

// The results.
const (
	StatusPending Status = "pending"
	StatusPassed  Status = "passed"
	StatusFailed  Status = "failed"
	StatusSkipped Status = "skipped"
)

// Runner is the source of a result.
type Runner string

// The sources. Only the results of the engine are verified; those of an agent are what
// it reported.
const (
	RanByEngine Runner = "engine"
	RanByAgent  Runner = "agent"
)

// Extra has the unknown fields of an object as they were read. They are written after the
// known ones, sorted by name.
type Extra map[string]json.RawMessage

// Step is a completed step.
type Step struct {
	// Step describes the step in a few words.
	Step          string
	FilesCreated  []string
	FilesModified []string
	Timestamp     time.Time
	// RunAgain marks work that is not in files (a deployment, a call): it
	// cannot be resumed, only run again.
	RunAgain bool
	Extra    Extra
}

// CurrentStep is the step in progress.
type CurrentStep struct {
	Description string
	StartedAt   time.Time
	// PartialWork describes what is done of it.
	PartialWork string
	Extra       Extra
}

// Decision is a decision that the next agent has to respect.
type Decision struct {
	Decision  string
	Rationale string
	Timestamp time.Time
	Extra     Extra
}

// FailedApproach is an attempt that did not work.
type FailedApproach struct {
	What    string
	Outcome string
	Why     string
	Extra   Extra
}

// Result is the result of one activity of a verification contract.
type Result struct {
	Activity string
	Status   Status
	RunAt    time.Time
	// RanBy is empty in checkpoints of other programs.
	RanBy Runner
	Extra Extra
}

// Verification names the contract of the task and the results so far.
type Verification struct {
	// ContractRef is resolved by [FindContract]: "US-003.verificationContract".
	ContractRef string
	Results     []Result
	Extra       Extra
}

// Metadata has the author, time and reason of a checkpoint.
type Metadata struct {
	CreatedBy     string
	LastUpdatedAt time.Time
	Reason        Reason
	// PreviousAgents worked on the task before, the first one first.
	PreviousAgents []string
	Extra          Extra
}

// Work is the work on one task: in part in a checkpoint, in full in a ledger.
type Work struct {
	// TaskID names the task: see [Task].
	TaskID string `json:"taskId"`
	Phase  Phase  `json:"phase"`
	// NextAction is one sentence with a path: what to do first.
	NextAction  string       `json:"nextAction,omitempty"`
	CurrentStep *CurrentStep `json:"currentStep,omitempty"`
	// PendingSteps are in the order in which to do them, the other lists in the order of
	// time.
	PendingSteps     []string         `json:"pendingSteps,omitempty"`
	CompletedSteps   []Step           `json:"completedSteps,omitempty"`
	Decisions        []Decision       `json:"decisions,omitempty"`
	FailedApproaches []FailedApproach `json:"failedApproaches,omitempty"`
	Blockers         []string         `json:"blockers,omitempty"`
	// NotAllowed are actions that are forbidden for now.
	NotAllowed   []string     `json:"notAllowed,omitempty"`
	Verification Verification `json:"verification"`
	Metadata     Metadata     `json:"metadata"`
	// Error is the reason of a failure.
	Error string `json:"error,omitempty"`
	Extra Extra  `json:"extra,omitempty"`
}

// Ledger is the full record of the work on one task, without limits. The zero value is
// an empty ledger.
type Ledger struct {
	Work
	// Title and Description of the task are for the resume prompt only.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// ContractFile is the file with the contract, relative to the root of the work or absolute;
	// empty for the usual files.
	ContractFile string `json:"contractFile,omitempty"`
	// Files are the touched files as they were last recorded, one entry a path.
	Files []FileEntry `json:"files,omitempty"`
	// Workspace is a hash of all files of the workspace and Snapshot the ID of
	// a snapshot of them, in any format; can be empty.
	Workspace string `json:"workspace,omitempty"`
	Snapshot  string `json:"snapshot,omitempty"`
	// Ref says where the ledger is, for example with a command.
	Ref string `json:"ref,omitempty"`
}

// Checkpoint is the field of that name in builder-state.json: as much of the work as
// fits. Its JSON ([Checkpoint.Compact]) has the fields in a fixed order; it is read
// leniently if that loses nothing.
type Checkpoint struct {
	// SchemaVersion is 0 in checkpoints of other programs.
	SchemaVersion int
	Work
	// Files has hashes of touched files; nil if there are none.
	Files *Hashes
	// Cut counts the entries that did not fit; nil if all did.
	Cut *Cut
	// Ledger says where the other entries are.
	Ledger string
}

// Hashes are the hashes of the touched files at the time of a checkpoint.
type Hashes struct {
	// Listed has the beginning of the SHA-256 of the content, in hexadecimal,
	// by path; "absent" for a file that did not exist.
	Listed map[string]string `json:"listed,omitempty"`
	// Rest counts the touched files that are not listed; RestDigest is the
	// beginning of the [Digest] of their entries.
	Rest       int    `json:"rest,omitempty"`
	RestDigest string `json:"restDigest,omitempty"`
	// Workspace and Snapshot are those of the ledger.
	Workspace string `json:"workspace,omitempty"`
	Snapshot  string `json:"snapshot,omitempty"`
}

// Cut counts the entries that are in the ledger and not in the checkpoint.
type Cut struct {
	CurrentStep      int `json:"currentStep,omitempty"`
	PendingSteps     int `json:"pendingSteps,omitempty"`
	CompletedSteps   int `json:"completedSteps,omitempty"`
	Files            int `json:"files,omitempty"`
	Decisions        int `json:"decisions,omitempty"`
	FailedApproaches int `json:"failedApproaches,omitempty"`
	Blockers         int `json:"blockers,omitempty"`
	NotAllowed       int `json:"notAllowed,omitempty"`
	Results          int `json:"results,omitempty"`
	PreviousAgents   int `json:"previousAgents,omitempty"`
	// Other counts fields of other programs.
	Other int `json:"other,omitempty"`
}

// Touched returns the paths that the completed steps name, each once, in the
// order in which they were first touched.
func (w *Work) Touched() []string { return w.touched(func(string) bool { return true }) }

// touched returns those of the touched files that a function asks for.
func (w *Work) touched(wanted func(path string) bool) []string {
	var paths []string
	seen := make(map[string]bool)
	for _, step := range w.CompletedSteps {
		for _, list := range [][]string{step.FilesCreated, step.FilesModified} {
			for _, path := range list {
				if wanted(path) && !seen[path] {
					seen[path] = true
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}
