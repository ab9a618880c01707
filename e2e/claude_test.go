package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// claudeVar names a folder with the turns of the agent that the scripts call claude:
// 1.jsonl, 2.jsonl and so on, each used once, with a call of a tool in each line. Its
// prompts are appended to the file told in the folder.
const claudeVar = "CLAUDE_FAKE_TURNS"

// playClaude imitates Claude Code as far as loops use it: it has --settings, prints its
// stream, and runs the hooks around its calls. Like Claude Code, it continues after
// every failure of a hook except exit status 2.
func playClaude(ctx context.Context, args []string, prompt io.Reader, out io.Writer) error {
	c := &claude{folder: os.Getenv(claudeVar), out: out}
	if _, err := io.Copy(io.Discard, prompt); err != nil {
		return err
	}
	if at := slices.Index(args, "--settings"); at >= 0 {
		if err := json.Unmarshal([]byte(args[at+1]), &c.settings); err != nil {
			return err
		}
	}
	c.say(`{"type":"system","subtype":"init","session_id":"s-1","model":"m"}`)
	for i, call := range c.calls() {
		if err := c.do(ctx, fmt.Sprintf("toolu_%d", i), call); err != nil {
			return err
		}
	}
	c.say(`{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":10,` +
		`"output_tokens":2}}`)
	return nil
}

type claude struct {
	folder   string
	out      io.Writer
	settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Command string }
		}
	}
}

type claudeCall struct {
	Tool  string         `json:"tool"`
	Input map[string]any `json:"input"`
}

func (c *claude) say(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// calls are those of the next turn.
func (c *claude) calls() (all []claudeCall) {
	for n := 1; n < 10; n++ {
		name := filepath.Join(c.folder, fmt.Sprintf("%d.jsonl", n))
		text, err := os.ReadFile(name)
		if err != nil || os.Rename(name, name+".taken") != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			var call claudeCall
			if json.Unmarshal([]byte(line), &call) == nil {
				all = append(all, call)
			}
		}
		return all
	}
	return nil
}

// do makes a call, unless a hook refuses it.
func (c *claude) do(ctx context.Context, id string, call claudeCall) error {
	input, err := json.Marshal(call.Input)
	if err != nil {
		return err
	}
	c.say(`{"type":"assistant","message":{"id":"m-%s","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}}`,
		id, id, call.Tool, input)
	refused, told, err := c.hook(ctx, "PreToolUse", id, call)
	if err != nil {
		return err
	}
	event := "PostToolUse"
	if !refused {
		if call.make(ctx) != nil {
			event = "PostToolUseFailure"
		}
		var more string
		if _, more, err = c.hook(ctx, event, id, call); err != nil {
			return err
		}
		told += more
	}
	f, err := os.OpenFile(filepath.Join(c.folder, "told"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s refused=%v %s: %s\n", call.Tool, refused, input, strings.ReplaceAll(told, "\n", " / "))
	c.say(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"is_error":%v,"content":"x"}]}}`,
		id, refused)
	return errors.Join(err, f.Close())
}

// make makes the change of a tool.
func (call *claudeCall) make(ctx context.Context) error {
	if call.Tool == "Write" {
		return os.WriteFile(fmt.Sprint(call.Input["file_path"]), []byte(fmt.Sprint(call.Input["content"])), 0o600)
	}
	return exec.CommandContext(ctx, "sh", "-c", fmt.Sprint(call.Input["command"])).Run()
}

// hook runs the hooks of an event and keeps to them.
func (c *claude) hook(ctx context.Context, event, id string, call claudeCall) (refused bool, told string, err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return false, "", err
	}
	doc, err := json.Marshal(map[string]any{"session_id": "s-1", "cwd": cwd, "hook_event_name": event,
		"tool_name": call.Tool, "tool_input": call.Input,
		"tool_use_id": id, "permission_mode": "acceptEdits"})
	if err != nil {
		return false, "", err
	}
	for _, group := range c.settings.Hooks[event] {
		for _, h := range group.Hooks {
			cmd := exec.CommandContext(ctx, "sh", "-c", h.Command)
			var out, fault bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(doc), &out, &fault
			var answer struct {
				Specific struct {
					PermissionDecision, PermissionDecisionReason,
					AdditionalContext string
				} `json:"hookSpecificOutput"`
			}
			var exit *exec.ExitError
			switch err := cmd.Run(); {
			case errors.As(err, &exit) && exit.ExitCode() == 2:
				refused, told = true, told+fault.String()
			case err == nil && json.Unmarshal(out.Bytes(), &answer) == nil:
				s := answer.Specific
				refused = refused || s.PermissionDecision == "deny" || s.PermissionDecision == "ask"
				told += s.PermissionDecisionReason + s.AdditionalContext
			}
		}
	}
	return refused, told, nil
}
