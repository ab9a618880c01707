// Package endpoint finds the addresses to which agents send the requests to their models, in the
// settings that the agents read themselves, so that these requests can be sent through a meter.
package endpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/jsonc"
)

// Place is where an agent reads its settings.
type Place struct {
	// Dir is the workspace.
	Dir string
	// Env are the agent's variables, of which the last one of a name counts, Args its options.
	Env, Args []string
	// Model is the configured model, in the agent's terms; may be empty.
	Model string
}

// The names of endpoints that several agents have.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Google    = "gemini"
)

// Of returns the addresses of an agent's providers by their names. The error says why the requests
// of the agent cannot be sent through a meter.
func Of(agent string, p Place) (map[string]string, error) {
	switch agent {
	case "claude":
		return ofClaude(p)
	case "codex":
		return ofCodex(p)
	case "gemini":
		return ofGemini(p)
	case "opencode":
		return ofOpencode(p)
	}
	return nil, unknown("where the agent sends its requests is not known")
}

// Unknown is the error for requests that cannot be sent through a meter.
type Unknown struct{ Why string }

// Error returns the reason.
func (u *Unknown) Error() string { return u.Why }

func unknown(format string, args ...any) error { return &Unknown{fmt.Sprintf(format, args...)} }

// value returns the value of a variable.
func (p *Place) value(name string) string {
	for _, v := range slices.Backward(p.Env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// folder returns the folder in a variable, else one in the user's home folder.
func (p *Place) folder(variable, inHome string) string {
	if dir := p.value(variable); dir != "" {
		return dir
	}
	return filepath.Join(p.value("HOME"), inHome)
}

// readJSON reads a file of settings, as JSON with comments, into v. A file that does not exist has
// none; one that is damaged is an error of the agent.
func readJSON(file string, v any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil //nolint:nilerr // no settings
	}
	return decode(text, v, file)
}

func decode(text []byte, v any, from string) error {
	root, err := jsonc.Parse(text)
	if err == nil {
		err = root.Decode(text, v)
	}
	if err != nil {
		return unknown("the settings in %s cannot be read: %s", from, err)
	}
	return nil
}

// upward returns a file of this name in a folder and in those above it, the outermost first.
func upward(dir, name string) []string {
	var files []string
	for {
		files = append([]string{filepath.Join(dir, name)}, files...)
		if dir == filepath.Dir(dir) {
			return files
		}
		dir = filepath.Dir(dir)
	}
}
