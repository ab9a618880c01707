package agentconfig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/perdure/perdure/internal/text/jsonc"
)

// Hook is a hook as Codex lists it.
type Hook struct {
	Key     string `json:"key"`
	Command string `json:"command"`
	Hash    string `json:"currentHash"`
	// Status is trusted or untrusted.
	Status string `json:"trustStatus"`
	// Source is the file of the hook.
	Source string `json:"sourcePath"`
}

// trusted is the status of a hook that the user trusts.
const trusted = "trusted"

// trustFile returns the file with the agent's trust in hooks of a scope, "" if the agent needs
// none or keeps it in the file of the hooks.
func (a *Agent) trustFile(p Place, s Scope) string {
	if a.format == formatTOML && s == Project {
		return a.File(p, User)
	}
	return ""
}

// NeedsTrust reports whether the agent skips hooks that its user has not trusted.
func (a *Agent) NeedsTrust() bool { return a.format == formatTOML }

// ListHooks asks a program of Codex for the hooks that it runs in a folder.
func ListHooks(ctx context.Context, program, dir string, environ []string) ([]Hook, error) {
	cmd := exec.CommandContext(ctx, program, "app-server")
	cmd.Dir, cmd.Env = dir, environ
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("list hooks of codex: %w", err)
	}
	hooks, err := askHooks(stdin, stdout, dir)
	err = errors.Join(err, stdin.Close())
	if err != nil {
		_ = cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, stdout) // it ends with its standard input
	_ = cmd.Wait()
	if err != nil {
		return nil, fmt.Errorf("list hooks of codex: %w", errors.Join(context.Cause(ctx), err))
	}
	return hooks, nil
}

// hooksRequest is the ID of the request.
const hooksRequest = 2

// maxLine limits a line of the answer.
const maxLine = 16 << 20

func askHooks(to io.Writer, from io.Reader, dir string) ([]Hook, error) {
	asks := []any{
		map[string]any{"id": 1, "method": "initialize", "params": map[string]any{"clientInfo": map[string]string{
			"name": "perdure", "version": "1"}}},
		map[string]any{"method": "initialized"},
		map[string]any{"id": hooksRequest, "method": "hooks/list", "params": map[string]any{"cwds": []string{dir}}},
	}
	for _, ask := range asks {
		if err := json.NewEncoder(to).Encode(ask); err != nil {
			return nil, err
		}
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var answer struct {
			ID     any
			Error  *struct{ Message string }
			Result struct{ Data []struct{ Hooks []Hook } }
		}
		if json.Unmarshal(lines.Bytes(), &answer) != nil || fmt.Sprint(answer.ID) != fmt.Sprint(hooksRequest) {
			continue
		}
		if answer.Error != nil {
			return nil, errors.New(answer.Error.Message)
		}
		var all []Hook
		for _, d := range answer.Result.Data {
			all = append(all, d.Hooks...)
		}
		return all, nil
	}
	return nil, errors.Join(lines.Err(), errors.New("no answer"))
}

// Own returns the hooks that run a command line.
func Own(all []Hook, line string) []Hook {
	var own []Hook
	for _, h := range all {
		if h.Command == line {
			own = append(own, h)
		}
	}
	return own
}

// Untrusted returns the hooks that are not trusted.
func Untrusted(all []Hook) []Hook {
	var list []Hook
	for _, h := range all {
		if h.Status != trusted {
			list = append(list, h)
		}
	}
	return list
}

// Trust returns the change that makes the agent trust hooks.
func (a *Agent) Trust(p Place, s Scope, hooks []Hook) (*Change, error) {
	path, begin := a.File(p, s), tomlBegin
	file := a.trustFile(p, s)
	if file != "" {
		path, begin = file, tomlTrust(path)
	}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c := &Change{Path: path, Before: text, After: text, base: text, plain: file != ""}
	var b strings.Builder
	for _, h := range Untrusted(hooks) {
		fmt.Fprintf(&b, "[hooks.state.%s]\ntrusted_hash = %s\n", tomlString(h.Key), tomlString(h.Hash))
	}
	if b.Len() == 0 {
		return c, nil
	}
	edits, err := appendTOML(text, begin, b.String())
	if err != nil {
		return nil, faultIn(path, err)
	}
	if r := p.recorded(path); r != nil && hash(text) == r.After { // both edits are undone together
		if base, ok := r.exact(text); ok {
			c.base, c.edits = base, r.Added
		}
	}
	c.edits = append(c.edits, edits...)
	c.After = jsonc.Apply(text, edits)
	return c, nil
}

// trustedHooks reports whether all hooks of perdure in a file are trusted.
func trustedHooks(hooksFile string, hooksText, trustText []byte) bool {
	type group struct {
		Hooks []struct {
			Command string `toml:"command"`
		} `toml:"hooks"`
	}
	var config struct {
		Hooks map[string]toml.Primitive `toml:"hooks"`
	}
	meta, err := toml.Decode(string(hooksText), &config)
	if err != nil {
		return false
	}
	state := stateOf(trustText)
	found := 0
	for event, raw := range config.Hooks {
		var groups []group
		if meta.PrimitiveDecode(raw, &groups) != nil {
			continue // the state
		}
		for i, g := range groups {
			for j, h := range g.Hooks {
				if !ours(h.Command) {
					continue
				}
				found++
				if state[fmt.Sprintf("%s:%s:%d:%d", hooksFile, snake(event), i, j)] == "" {
					return false
				}
			}
		}
	}
	return found > 0
}

// stateOf returns the hashes of trusted hooks by their keys.
func stateOf(text []byte) map[string]string {
	var config struct {
		Hooks struct {
			State map[string]struct {
				Hash string `toml:"trusted_hash"`
			} `toml:"state"`
		} `toml:"hooks"`
	}
	if toml.Unmarshal(text, &config) != nil {
		return nil
	}
	hashes := make(map[string]string)
	for key, s := range config.Hooks.State {
		hashes[key] = s.Hash
	}
	return hashes
}

// snake returns the name of an event as in keys: pre_tool_use for PreToolUse.
func snake(event string) string {
	var b strings.Builder
	for i, r := range event {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}
