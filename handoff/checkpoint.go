package handoff

import (
	"encoding/json"
	"time"
)

// SchemaVersion is the version of the checkpoint's format that this package
// writes. Version 1 is the form without a schemaVersion, taskId, nextAction,
// failedApproaches, notAllowed, files, cut and ledger.
const SchemaVersion = 2

// Phase is how far a task is. Other values than the constants are kept as they
// are read.
type Phase string

// The phases.
const (
	PhasePlanning       Phase = "planning"
	PhaseImplementation Phase = "implementation"
	PhaseVerification   Phase = "verification"
	PhaseDocumentation  Phase = "documentation"
)

// Reason is why a checkpoint was written.
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

// Runner is who ran a verification.
type Runner string

// Who can run one. What an agent says of its own work is its claim; what the
// engine ran is a fact.
const (
	RanByEngine Runner = "engine"
	RanByAgent  Runner = "agent"
)

// Extra holds the fields of an object that this package does not know, as they
// were read. They are written back behind the known ones, sorted by name.
type Extra map[string]json.RawMessage

// Step is one that is done.
type Step struct {
	// Step says what was done, in a few words.
	Step          string
	FilesCreated  []string
	FilesModified []string
	Timestamp     time.Time
	// RunAgain marks work that is not in files (a deployment, a call): it
	// cannot be resumed, only run again.
	RunAgain bool
	Extra    Extra
}

// CurrentStep is the one in progress.
type CurrentStep struct {
	Description string
	StartedAt   time.Time
	// PartialWork says how far it is.
	PartialWork string
	Extra       Extra
}

// Decision is one that was made and holds for those who continue.
type Decision struct {
	Decision  string
	Rationale string
	Timestamp time.Time
	Extra     Extra
}

// FailedApproach is what was tried and did not work.
type FailedApproach struct {
	What    string
	Outcome string
	Why     string
	Extra   Extra
}

// Result is that of one activity of a verification contract.
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

// Metadata says who wrote a checkpoint, when and why.
type Metadata struct {
	CreatedBy     string
	LastUpdatedAt time.Time
	Reason        Reason
	// PreviousAgents worked on the task before, the first one first.
	PreviousAgents []string
	Extra          Extra
}

// Work is what was done, decided and is left to do on one task: what a
// checkpoint shows of it and a ledger holds in full.
type Work struct {
	// TaskID names the task: see [Task].
	TaskID string `json:"taskId"`
	Phase  Phase  `json:"phase"`
	// NextAction is one sentence with a path: what to do first.
	NextAction  string       `json:"nextAction,omitempty"`
	CurrentStep *CurrentStep `json:"currentStep,omitempty"`
	// PendingSteps are in the order in which they are to be done; the others
	// are in the order in which they happened.
	PendingSteps     []string         `json:"pendingSteps,omitempty"`
	CompletedSteps   []Step           `json:"completedSteps,omitempty"`
	Decisions        []Decision       `json:"decisions,omitempty"`
	FailedApproaches []FailedApproach `json:"failedApproaches,omitempty"`
	Blockers         []string         `json:"blockers,omitempty"`
	// NotAllowed is what must not be done now.
	NotAllowed   []string     `json:"notAllowed,omitempty"`
	Verification Verification `json:"verification"`
	Metadata     Metadata     `json:"metadata"`
	// Error is the reason of a failure.
	Error string `json:"error,omitempty"`
	Extra Extra  `json:"extra,omitempty"`
}

// Ledger is everything that is known of the work on one task, without limits;
// where it is kept is the caller's business. The zero value is an empty one.
type Ledger struct {
	Work
	// Title and Description of the task are for the resume prompt only.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Files are the touched files as they were last recorded, one entry a path.
	Files []FileEntry `json:"files,omitempty"`
	// Workspace is a hash of all files of the workspace and Snapshot the ID of
	// a snapshot of them, as their makers write them; may be empty.
	Workspace string `json:"workspace,omitempty"`
	Snapshot  string `json:"snapshot,omitempty"`
	// Ref tells readers of a checkpoint where the rest is, for example a
	// command.
	Ref string `json:"ref,omitempty"`
}

// Checkpoint is the field of that name in builder-state.json: as much of the
// work as fits. Its JSON form ([Checkpoint.Compact]) has the fields in a fixed
// order; reading it is lenient where that loses nothing.
type Checkpoint struct {
	// SchemaVersion is 0 in checkpoints of other programs.
	SchemaVersion int
	Work
	// Files has hashes of touched files; nil when there are none.
	Files *Hashes
	// Cut counts what did not fit; nil when everything did.
	Cut *Cut
	// Ledger says where the rest is.
	Ledger string
}

// Hashes are those of the touched files at the time of a checkpoint.
type Hashes struct {
	// Listed has the beginning of the SHA-256 of the content, in hexadecimal,
	// by path; "absent" for a file that was not there.
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
func (w *Work) Touched() []string {
	var paths []string
	seen := make(map[string]bool)
	for _, step := range w.CompletedSteps {
		for _, list := range [][]string{step.FilesCreated, step.FilesModified} {
			for _, path := range list {
				if !seen[path] {
					seen[path] = true
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}
