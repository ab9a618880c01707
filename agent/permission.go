package agent

// Permission is what an agent may do without asking; no user is there to be asked.
type Permission string

// The permissions. What each means for an agent is in its preset.
const (
	// PermissionEdits, the default: files of the workspace may be edited. Commands run where
	// the agent has a sandbox for them, where its own rules call them harmless, and where a
	// rule of [Turn].Commands allows them.
	PermissionEdits Permission = "edits"
	// PermissionRead: nothing may be changed.
	PermissionRead Permission = "read"
	// PermissionAll: everything, without a sandbox. For machines and containers that
	// nothing can be lost on.
	PermissionAll Permission = "all"
	// PermissionOwn: what the agent's own settings say.
	PermissionOwn Permission = "own"
)

// CommandRule is a command that an agent may run without asking.
type CommandRule struct {
	// Line is a command line, for example "go test". It allows this command as it is
	// written.
	Line string `json:"line"`
	// More allows further arguments, too. Line then consists of plain words, each of
	// letters, digits and ./:@%+=_-, with one blank between them. A line that runs several
	// commands is allowed only if each of them is.
	More bool `json:"more,omitempty"`
	// Reads: the command only reads and prints. An agent that does not check where
	// redirections write does not get such a rule.
	Reads bool `json:"reads,omitempty"`
}
