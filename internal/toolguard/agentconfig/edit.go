package agentconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/perdure/perdure/internal/agenthook"
	"github.com/perdure/perdure/internal/text/jsonc"
)

// The lines around what perdure adds to a file of Codex.
const (
	tomlBegin = "# >>> perdure: hooks; `perdure uninstall codex` removes this block"
	tomlEnd   = "# <<< perdure"
)

// tomlTrust returns the line before the trust in hooks of another file.
func tomlTrust(file string) string {
	return "# >>> perdure: trust in the hooks of " + tomlString(file) + "; `perdure uninstall codex --project` removes it"
}

// addHooks returns the edits, one after the other, that add the hook to an agent's settings.
func (a *Agent) addHooks(text []byte, line string) ([]jsonc.Edit, error) {
	if a.format == formatTOML {
		var b strings.Builder
		for _, event := range agenthook.Events(a.Name) {
			fmt.Fprintf(&b, "[[hooks.%s]]\n[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n", event, event,
				tomlString(line), agenthook.Seconds)
		}
		return appendTOML(text, tomlBegin, b.String())
	}
	if len(bytes.TrimSpace(text)) == 0 {
		doc, err := settingsFor(a.Name, line)
		return []jsonc.Edit{{At: len(text), New: doc}}, err
	}
	var edits []jsonc.Edit
	for _, event := range agenthook.Events(a.Name) {
		edit, err := jsonc.Append(text, []string{"hooks", event}, agenthook.GroupOf(a.Name, line))
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit)
		text = jsonc.Apply(text, []jsonc.Edit{edit})
	}
	return edits, nil
}

// settingsFor returns settings with nothing but the hook.
func settingsFor(name, line string) (string, error) {
	groups := make(map[string][]agenthook.Group)
	for _, event := range agenthook.Events(name) {
		groups[event] = []agenthook.Group{agenthook.GroupOf(name, line)}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(map[string]any{"hooks": groups})
	return b.String(), err
}

// tomlString returns a string as TOML: strings of JSON are strings of TOML.
func tomlString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\x7f", `\u007f`)
}

// appendTOML returns the edit that appends a block to a document of TOML.
func appendTOML(text []byte, begin, block string) ([]jsonc.Edit, error) {
	if err := validTOML(text); err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	block = begin + "\n" + block + tomlEnd + "\n"
	switch {
	case len(text) == 0:
	case !bytes.HasSuffix(text, []byte("\n")):
		block = "\n\n" + block
	default:
		block = "\n" + block
	}
	edit := jsonc.Edit{At: len(text), New: strings.ReplaceAll(block, "\n", newline)}
	if err := validTOML(jsonc.Apply(text, []jsonc.Edit{edit})); err != nil {
		return nil, fmt.Errorf("hooks cannot be appended to the hooks of the file, write them as [[hooks.NAME]]: %w", err)
	}
	return []jsonc.Edit{edit}, nil
}

// validTOML returns an error with the line of a fault in a document.
func validTOML(text []byte) error {
	var v map[string]any
	err := toml.Unmarshal(text, &v)
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		return &jsonc.Error{Line: parse.Position.Line, Msg: parse.Message}
	}
	return err
}

// removeHooks returns settings without perdure's hook, and whether it was in them.
func (a *Agent) removeHooks(text []byte) (out []byte, found bool, err error) {
	if a.format == formatTOML {
		return removeTOML(text, tomlBegin)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return text, false, nil
	}
	if _, err := jsonc.Parse(text); err != nil {
		return nil, false, err
	}
	for _, event := range agenthook.Events(a.Name) {
		var n int
		text, n, err = jsonc.Remove(text, []string{"hooks", event}, func(group json.RawMessage) bool {
			var g agenthook.Group
			return json.Unmarshal(group, &g) == nil && len(g.Hooks) == 1 && ours(g.Hooks[0].Command)
		})
		if err != nil {
			return nil, false, err
		}
		found = found || n > 0
	}
	return text, found, nil
}

// ours reports whether a command line is that of perdure's hook.
func ours(line string) bool { return strings.Contains(line, agenthook.Mark) }

// removeTOML returns a document without the blocks of perdure that begin with a line.
func removeTOML(text []byte, begin string) (out []byte, found bool, err error) {
	if err := validTOML(text); err != nil {
		return nil, false, err
	}
	out = removeBlocks(text, begin)
	if err := validTOML(out); err != nil {
		return nil, false, fmt.Errorf("the file is not valid without the block of perdure: %w", err)
	}
	return out, len(out) != len(text), nil
}

// removeBlocks removes blocks with the empty line before each.
func removeBlocks(text []byte, begin string) []byte {
	var kept []string
	inBlock := false
	for line := range strings.Lines(string(text)) {
		switch bare := strings.TrimSpace(line); {
		case bare == begin:
			inBlock = true
			if n := len(kept); n > 0 && strings.TrimSpace(kept[n-1]) == "" {
				kept = kept[:n-1]
			}
		case inBlock:
			inBlock = bare != tomlEnd
		default:
			kept = append(kept, line)
		}
	}
	if inBlock { // the end of the block is missing: what follows is not known to be perdure's
		return text
	}
	return []byte(strings.Join(kept, ""))
}

// decode decodes the groups of hooks before a call in settings.
func (a *Agent) decode(text []byte, groups *[]agenthook.Group) error {
	event := agenthook.Before(a.Name)
	var config struct {
		Hooks map[string]json.RawMessage `json:"hooks"`
	}
	if a.format == formatTOML {
		var all map[string]any
		if err := toml.Unmarshal(text, &all); err != nil {
			return err
		}
		raw, err := json.Marshal(all)
		if err != nil {
			return err
		}
		text = raw
	}
	root, err := jsonc.Parse(text)
	if err == nil {
		err = root.Decode(text, &config)
	}
	if err != nil || config.Hooks[event] == nil {
		return err
	}
	return json.Unmarshal(config.Hooks[event], groups)
}
