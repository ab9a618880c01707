package command

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// codexLine is an event of "codex exec --json".
type codexLine struct {
	Type     string          `json:"type"`
	ThreadID string          `json:"thread_id"`
	Item     json.RawMessage `json:"item"`
	Usage    *codexUsage     `json:"usage"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Message string `json:"message"`
}

// codexUsage is a running total of the thread, across its turns. The input
// includes cached tokens.
type codexUsage struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

func (u codexUsage) tokens() tokens {
	return tokens{in: u.Input, out: u.Output, cached: u.Cached, written: u.CacheWrite}
}

type codexItem struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Text    string `json:"text"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Command string `json:"command"`
	Changes []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Query     string          `json:"query"`
	Items     []struct {
		Text      string `json:"text"`
		Completed bool   `json:"completed"`
	} `json:"items"`
}

// codexParser reads "codex exec --json".
type codexParser struct {
	stream
	// last is the last error, which a turn.failed usually repeats.
	last string
}

func (p *codexParser) stdout(line []byte) {
	var l codexLine
	if !object(line) || !decode(line, &l) {
		p.rec.say(agent.EventOutput, string(line))
		return
	}
	switch l.Type {
	case "thread.started":
		if p.rec.from.id != "" && l.ThreadID != p.rec.from.id {
			// Asked for a thread whose name it does not know, it begins another one.
			p.rec.another(l.ThreadID)
			return
		}
		p.rec.opened(l.ThreadID)
	case "turn.started":
	case "item.started", "item.updated", "item.completed":
		p.item(strings.TrimPrefix(l.Type, "item."), l.Item)
	case "turn.completed":
		p.rec.ended("completed")
		if l.Usage != nil {
			p.rec.total = &total{tokens: l.Usage.tokens()}
			p.rec.measured()
		}
	case "turn.failed":
		p.rec.ended("failed")
		p.rec.bad(cmp.Or(l.Error.Message, p.last, "the turn failed"), 0)
	case "error":
		p.last = cmp.Or(l.Message, l.Error.Message)
		p.trouble(p.last)
	default:
		p.rec.say(agent.EventUnknown, "")
	}
}

// trouble reads an error that may not be the end: "Reconnecting... 1/5 (…)".
func (p *codexParser) trouble(text string) {
	found := classify(text, 0, p.rec.now())
	if m := reReconnecting().FindStringSubmatch(text); m != nil && found.Class() == agent.ClassWait {
		p.rec.waits(found, number(m[1]), number(m[2]))
		return
	}
	p.rec.say(agent.EventNotice, text)
}

// reReconnecting is how it says that it tries again.
var reReconnecting = lazyregexp.New(`^Reconnecting(?:\.\.\. (\d+)/(\d+))?`)

func (p *codexParser) item(stage string, raw json.RawMessage) {
	var it codexItem
	if !decode(raw, &it) {
		p.rec.say(agent.EventUnknown, "")
		return
	}
	switch it.Type {
	case "agent_message":
		if stage == "completed" {
			p.rec.message(it.Text)
		}
	case "reasoning":
		if stage == "completed" {
			p.rec.say(agent.EventThought, it.Text)
		}
	case "todo_list":
		p.rec.say(agent.EventThought, it.plan())
	case "error":
		p.rec.say(agent.EventNotice, it.Message)
	case "command_execution", "file_change", "mcp_tool_call", "web_search":
		p.call(stage, it)
	default:
		p.rec.say(agent.EventUnknown, "")
	}
}

func (p *codexParser) call(stage string, it codexItem) {
	call := it.call()
	call.Status = agent.ToolRunning
	kind := agent.EventToolCall
	if stage == "completed" {
		kind, call.Status = agent.EventToolResult, statusOf(it.Status == "failed")
		if it.Status == "declined" {
			call.Status = agent.ToolDenied
		}
	}
	p.rec.tell(agent.Event{Kind: kind, Call: &call})
}

func (it codexItem) call() agent.ToolCall {
	call := agent.ToolCall{ID: it.ID, Name: it.Type, Kind: agent.ToolOther, Title: it.Type}
	switch it.Type {
	case "command_execution":
		call.Kind, call.Command, call.Title = agent.ToolExecute, it.Command, it.Command
	case "file_change":
		call.Kind = agent.ToolEdit
		deleted := 0
		for _, c := range it.Changes {
			call.Paths = append(call.Paths, c.Path)
			if c.Kind == "delete" {
				deleted++
			}
		}
		if deleted > 0 && deleted == len(it.Changes) {
			call.Kind = agent.ToolDelete
		}
		call.Title = strings.TrimSpace(call.Name + " " + strings.Join(call.Paths, ", "))
	case "mcp_tool_call":
		call.Name = it.Server + "." + it.Tool
		call.Title, call.Input = call.Name, it.Arguments
	case "web_search":
		call.Kind, call.Title = agent.ToolFetch, it.Query
	}
	return call
}

func (it codexItem) plan() string {
	var b strings.Builder
	for _, step := range it.Items {
		mark := "[ ] "
		if step.Completed {
			mark = "[x] "
		}
		b.WriteString(mark + step.Text + "\n")
	}
	return b.String()
}

func (p *codexParser) finish(int) {
	if !p.rec.over {
		p.rec.unfinished(p.last, errorLine(p.said))
	}
}

// codexArgs is the command line; the prompt is on standard input.
func codexArgs(c Config, id string) []string {
	// Outside a repository it would refuse to work; the user chose the workspace.
	args := c.options("exec --json --skip-git-repo-check", map[Permission]string{
		PermissionRead:  "--sandbox read-only",
		PermissionEdits: "--sandbox workspace-write",
		PermissionAll:   "--dangerously-bypass-approvals-and-sandbox",
	})
	if id != "" {
		args = append(args, "resume", id)
	}
	return append(args, "-")
}
