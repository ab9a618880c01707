package acp

import "encoding/json"

// Methods of the protocol, those of the agent first.
const (
	methodInitialize   = "initialize"
	methodAuthenticate = "authenticate"
	methodNew          = "session/new"
	methodLoad         = "session/load"
	methodSetMode      = "session/set_mode"
	methodPrompt       = "session/prompt"
	methodCancel       = "session/cancel"
	methodUpdate       = "session/update"
	methodPermission   = "session/request_permission"
	// methodWithdraw withdraws a request.
	methodWithdraw = "$/cancel_request"
)

// protocolVersion is the version of the protocol that this agent speaks.
const protocolVersion = 1

// Reasons for the end of a turn.
const (
	stopEnd       = "end_turn"
	stopCancelled = "cancelled"
)

// object is a JSON object to be sent.
type object = map[string]any

// newParams are the parameters of session/new and session/load.
type newParams struct {
	SessionID string            `json:"sessionId"`
	Cwd       string            `json:"cwd"`
	Servers   []json.RawMessage `json:"mcpServers"`
}

// modeParams are the parameters of session/set_mode.
type modeParams struct {
	SessionID string `json:"sessionId"`
	Mode      Mode   `json:"modeId"`
}

// promptParams are the parameters of session/prompt.
type promptParams struct {
	SessionID string  `json:"sessionId"`
	Prompt    []block `json:"prompt"`
}

// block is a content block of a prompt.
type block struct {
	Type     string   `json:"type"`
	Text     string   `json:"text"`
	Name     string   `json:"name"`
	URI      string   `json:"uri"`
	Resource resource `json:"resource"`
}

// resource is an embedded resource; Text is nil for binary content.
type resource struct {
	URI  string  `json:"uri"`
	Text *string `json:"text"`
}

// textBlock returns a content block.
func textBlock(text string) object { return object{"type": "text", "text": text} }

// textContent returns the content of a tool call.
func textContent(text string) []object {
	return []object{{"type": "content", "content": textBlock(text)}}
}

// planEntry is an entry of a plan.
type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// The states of entries of a plan and of tool calls.
const (
	statusPending    = "pending"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusFailed     = "failed"
)

// entry returns an entry of a plan.
func entry(content, status string) planEntry {
	return planEntry{Content: content, Priority: "medium", Status: status}
}

// modes returns the modes of a session.
func modes(current Mode) object {
	return object{"currentModeId": current, "availableModes": []object{
		{"id": ModeRun, "name": "Run", "description": "Answer a question over the attached files, or over the folder"},
		{"id": ModeLoop, "name": "Loop", "description": "Repeat a coding agent on the folder until a check passes"},
	}}
}
