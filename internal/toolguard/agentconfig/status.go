package agentconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/perdure/perdure/internal/agenthook"
)

// State is the state of the hook of an agent.
type State string

// States. Untrusted hooks are installed, and the agent skips them.
const (
	None      State = "none"
	InProject State = "project"
	InUser    State = "user"
	NoTrust   State = "untrusted"
)

// Status returns the state of the hook of an agent, and the file with it.
func (a *Agent) Status(p Place) (State, string) {
	for _, s := range Scopes() {
		path := a.File(p, s)
		if s == Project && path == a.File(p, User) {
			continue // the project is the home folder
		}
		text, err := readFile(path)
		if err != nil || !bytes.Contains(text, []byte(agenthook.Mark)) && a.format != formatPlugin || len(text) == 0 {
			continue
		}
		if a.NeedsTrust() {
			trust := text
			if file := a.trustFile(p, s); file != "" {
				if trust, err = readFile(file); err != nil {
					continue
				}
			}
			if !trustedHooks(path, text, trust) {
				return NoTrust, path
			}
		}
		return State(s), path
	}
	return None, ""
}

// Installed returns the command line of the hook in an agent's configuration, as the agent
// runs it; nil without one.
func (a *Agent) Installed(p Place, s Scope) ([]string, error) {
	text, err := readFile(a.File(p, s))
	if err != nil || text == nil {
		return nil, err
	}
	if a.format == formatPlugin {
		words, ok := agenthook.PluginCommand(string(text))
		if !ok {
			return nil, errors.New("the plugin has no command")
		}
		return words, nil
	}
	line, err := a.lineIn(text)
	if err != nil || line == "" {
		return nil, err
	}
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}, nil
	}
	return []string{"sh", "-c", line}, nil
}

// lineIn returns the command line of the hook before a call in settings.
func (a *Agent) lineIn(text []byte) (string, error) {
	var groups []agenthook.Group
	if err := a.decode(text, &groups); err != nil {
		return "", err
	}
	for _, g := range groups {
		for _, h := range g.Hooks {
			if ours(h.Command) {
				return h.Command, nil
			}
		}
	}
	return "", nil
}

// Test runs an installed hook as the agent does. It returns an error unless the hook denies a
// destructive call and leaves a harmless one to the agent.
func (a *Agent) Test(ctx context.Context, words, environ []string) error {
	dir, err := os.MkdirTemp("", "perdure-hook-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for command, denies := range map[string]bool{"git reset --hard": true, "ls": false} {
		event := map[string]any{"hook_event_name": agenthook.Before(a.Name), "session_id": "perdure-install", "cwd": dir,
			"tool_name": "Bash", "tool_input": map[string]string{"command": command}, "tool_use_id": "perdure-install"}
		input, err := json.Marshal(event)
		if err != nil {
			return err
		}
		var out, fault bytes.Buffer
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, environ
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &fault
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("the hook failed: %w: %s", err, strings.TrimSpace(fault.String()))
		}
		if denied := strings.Contains(out.String(), `"deny"`); denied != denies {
			return fmt.Errorf("the hook answers %q about %q", strings.TrimSpace(out.String()), command)
		}
	}
	return nil
}
