package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/opencode"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// Limits on what is remembered of tool calls, so that an agent that begins
// calls without end does not fill the memory. The oldest are forgotten.
const (
	maxCalls     = 4096
	maxCallBytes = 16 << 20
	maxPaths     = 256
)

// toolFields are the fields of tool_call, tool_call_update, and of the call in
// a permission request. Absent fields keep their previous values.
type toolFields struct {
	ToolCallID string  `json:"toolCallId"`
	Title      *string `json:"title"`
	Name       string  `json:"name"`
	Kind       string  `json:"kind"`
	Status     string  `json:"status"`
	Content    content `json:"content"`
	Locations  []struct {
		Path string `json:"path"`
	} `json:"locations"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Meta      json.RawMessage `json:"_meta"`
}

// toolMeta contains vendor extensions of the protocol.
type toolMeta struct {
	ClaudeCode struct {
		ToolName string `json:"toolName"`
	} `json:"claudeCode"`
	ToolName string `json:"toolName"`
	// Output is what the Codex adapter sends instead of rawOutput.
	Output terminalOutput `json:"terminal_output_delta"`
	// Whole is the same for clients that show terminals.
	Whole terminalOutput `json:"terminal_output"`
	Exit  *struct {
		Code *int64 `json:"exit_code"`
	} `json:"terminal_exit"`
}

type terminalOutput struct {
	Data string `json:"data"`
}

// knownCall is the known part of a tool call.
type knownCall struct {
	call   agent.ToolCall
	output ending
	// failed is whether its command ended otherwise than with 0, which some
	// agents call completed.
	failed bool
	// denied is whether it was refused, here or by the agent's permissions.
	denied bool
}

// calls are the tool calls of a turn. It is not safe for concurrent use.
type calls struct {
	known map[string]*knownCall
	order []string // of known, oldest first
	bytes int      // that they take
	// begun counts calls.
	begun int
}

// merge adds an update of a call and returns what is known of it now.
func (c *calls) merge(f *toolFields) *knownCall {
	k := c.known[f.ToolCallID]
	if k == nil {
		k = c.begin(f.ToolCallID)
	}
	c.bytes -= k.size()
	k.merge(f)
	c.bytes += k.size()
	c.trim()
	return k
}

func (c *calls) begin(id string) *knownCall {
	if c.known == nil {
		c.known = make(map[string]*knownCall)
	}
	k := &knownCall{call: agent.ToolCall{ID: clean(id), Kind: agent.ToolOther, Status: agent.ToolPending}}
	c.known[id] = k
	c.order = append(c.order, id)
	c.bytes += k.size()
	c.begun++
	return k
}

// forget drops a call.
func (c *calls) forget(id string) {
	c.bytes -= c.known[id].size()
	delete(c.known, id)
	i := slices.Index(c.order, id)
	c.order = slices.Delete(c.order, i, i+1)
}

// trim forgets the oldest calls, never the newest.
func (c *calls) trim() {
	for len(c.order) > 1 && (len(c.order) > maxCalls || c.bytes > maxCallBytes) {
		c.forget(c.order[0])
	}
}

// takeOutput returns the end of what a call wrote and forgets it.
func (c *calls) takeOutput(k *knownCall) string {
	text := k.output.String()
	c.bytes -= len(k.output.text)
	k.output = ending{}
	return text
}

// size is about how many bytes it takes.
func (k *knownCall) size() int {
	n := 2*len(k.call.ID) + len(k.call.Name) + len(k.call.Title) + len(k.call.Command) + len(k.call.Input) +
		len(k.output.text)
	for _, path := range k.call.Paths {
		n += len(path)
	}
	return n
}

func (k *knownCall) merge(f *toolFields) {
	if f.Title != nil {
		k.call.Title = clean(*f.Title)
	}
	var meta toolMeta
	if jsonrpc.Present(f.Meta) {
		_ = jsonrpc.Lenient(f.Meta, &meta) // invalid fields count as absent
	}
	k.call.Name = clean(cmp.Or(f.Name, meta.ClaudeCode.ToolName, meta.ToolName, k.call.Name))
	if f.Kind != "" {
		k.call.Kind = toolKind(f.Kind)
	}
	if status := toolStatus(f.Status); status != "" {
		k.call.Status = status
	}
	if jsonrpc.Present(f.RawInput) {
		k.call.Input = f.RawInput
	}
	k.call.Paths = k.paths(f)
	if k.call.Kind == agent.ToolExecute {
		k.call.Command = k.command()
	}
	k.hear(f, &meta)
	if k.failed && k.call.Status == agent.ToolCompleted {
		k.call.Status = agent.ToolFailed
	}
	if k.denied && k.call.Status == agent.ToolFailed {
		k.call.Status = agent.ToolDenied
	}
}

// hear keeps what the tool wrote: whole results replace what was known,
// parts of a terminal's are appended.
func (k *knownCall) hear(f *toolFields, meta *toolMeta) {
	k.output.add(clean(meta.Output.Data + meta.Whole.Data))
	if e := meta.Exit; e != nil && e.Code != nil {
		k.failed = *e.Code != 0
	}
	text := f.Content.text()
	if jsonrpc.Present(f.RawOutput) {
		raw := readOutput(f.RawOutput)
		if exit := cmp.Or(raw.ExitCode, raw.Metadata.Exit); exit != nil {
			k.failed = *exit != 0
		}
		if text == "" {
			text = raw.text()
		}
	}
	k.denied = k.denied || opencode.Denied(text)
	if text != "" || f.Content.shows() {
		k.output = ending{}
		k.output.add(text)
	}
}

// rawOutput is a tool's raw output: words, or the fields that agents use.
type rawOutput struct {
	Output    string `json:"output"`
	Formatted string `json:"formatted_output"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Error     string `json:"error"`
	ExitCode  *int64 `json:"exit_code"`
	Metadata  struct {
		Exit *int64 `json:"exit"`
	} `json:"metadata"`
}

func readOutput(raw json.RawMessage) rawOutput {
	var o rawOutput
	if json.Unmarshal(raw, &o.Output) != nil {
		o = rawOutput{}
		_ = jsonrpc.Lenient(raw, &o) // invalid fields count as absent
	}
	return o
}

func (o *rawOutput) text() string {
	return clean(cmp.Or(o.Output, o.Formatted, o.Stdout+o.Stderr, o.Error))
}

// paths returns the files known so far and those of f, without duplicates.
func (k *knownCall) paths(f *toolFields) []string {
	paths := k.call.Paths
	add := func(path string) {
		if path = clean(path); path != "" && len(paths) < maxPaths && !slices.Contains(paths, path) {
			paths = append(slices.Clip(paths), path) // earlier events keep theirs
		}
	}
	for _, b := range f.Content {
		if b.Type == "diff" {
			add(b.Path)
		}
	}
	if k.call.Kind == agent.ToolExecute {
		return paths // what else looks like a path is a folder to run in
	}
	for _, l := range f.Locations {
		add(l.Path)
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(f.RawInput, &input) != nil {
		return paths
	}
	for _, field := range []string{"file_path", "filePath", "path", "absolute_path", "notebook_path"} {
		var path string
		if json.Unmarshal(input[field], &path) == nil {
			add(path)
		}
	}
	changes := make(map[string]json.RawMessage) // the Codex adapter's edits, by file
	if json.Unmarshal(input["changes"], &changes) == nil {
		for _, path := range slices.Sorted(maps.Keys(changes)) {
			add(path)
		}
	}
	return paths
}

// command finds the command line in the input of a call that runs one; agents
// that send no input put it into the title.
func (k *knownCall) command() string {
	if !jsonrpc.Present(k.call.Input) {
		return strings.Trim(k.call.Title, "`")
	}
	var input struct {
		Command json.RawMessage `json:"command"`
		Cmd     json.RawMessage `json:"cmd"`
	}
	_ = jsonrpc.Lenient(k.call.Input, &input) // in what is not an object nothing is found
	for _, raw := range []json.RawMessage{input.Command, input.Cmd} {
		var line string
		if json.Unmarshal(raw, &line) == nil && line != "" {
			return clean(line)
		}
		var words []string
		if json.Unmarshal(raw, &words) == nil && len(words) > 0 {
			return clean(joinWords(words))
		}
	}
	return ""
}

// joinWords makes one command line of words. A shell that was given a script
// is left out, since the script is the command.
func joinWords(words []string) string {
	if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\$`|&;<>()*?[]#~{}!") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// toolKind translates the protocol's kind; those that are new are "other".
func toolKind(kind string) agent.ToolKind {
	switch k := agent.ToolKind(kind); k {
	case agent.ToolRead, agent.ToolEdit, agent.ToolDelete, agent.ToolMove, agent.ToolSearch,
		agent.ToolExecute, agent.ToolFetch, agent.ToolThink, agent.ToolOther:
		return k
	}
	return agent.ToolOther
}

// toolStatus translates the protocol's status; empty when it says none.
func toolStatus(status string) agent.ToolStatus {
	switch status {
	case "pending":
		return agent.ToolPending
	case "in_progress":
		return agent.ToolRunning
	case "completed":
		return agent.ToolCompleted
	case "failed", "cancelled":
		return agent.ToolFailed
	}
	return ""
}
