package acp

import (
	"errors"
	"os"
	"slices"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/endpoint"
	"github.com/perdure/perdure/internal/agenthook"
	"github.com/perdure/perdure/internal/process/environ"
)

// steering is how an agent is started so that it runs a turn's hook and uses a turn's endpoints.
type steering struct {
	// env are variables that override all others, meta the member _meta of a new session.
	env  []string
	meta map[string]any
	// files are removed after the turn.
	files []string
}

// steer returns how the agent is started for a turn; env is its environment without that.
func (p *Preset) steer(turn *agent.Turn, env []string) (*steering, error) {
	s := &steering{}
	hook := turn.Hook
	if !p.Hooks {
		hook = nil
	}
	if len(hook)+len(turn.Endpoints) == 0 {
		return s, nil
	}
	var err error
	switch p.Name {
	case "claude":
		s.steerClaude(hook, turn.Endpoints)
	case "codex":
		err = s.steerCodex(turn.Endpoints, env)
	case "gemini":
		s.env = endpoint.GeminiVariables(turn.Endpoints)
	case nameOpencode:
		err = s.steerOpencode(hook, turn.Endpoints, env)
	}
	return s, err
}

// remove removes the files.
func (s *steering) remove() {
	for _, name := range s.files {
		_ = os.Remove(name)
	}
}

// steerClaude sets settings of the session: they override those in the user's files.
func (s *steering) steerClaude(hook []string, to map[string]string) {
	settings := map[string]any{}
	if hook != nil {
		settings["hooks"] = groups("claude-code", hook)
	}
	if set := endpoint.ClaudeVariables(to); set != nil {
		settings["env"] = set
		for name, value := range set {
			s.env = append(s.env, name+"="+value)
		}
	}
	s.meta = map[string]any{"claudeCode": map[string]any{"options": map[string]any{"settings": settings}}}
}

// groups returns the hooks of an agent in its settings.
func groups(name string, hook []string) map[string]any {
	all := map[string]any{}
	for _, event := range agenthook.Events(name) {
		all[event] = []any{agenthook.GroupOf(name, agenthook.Line(hook, name))}
	}
	return all
}

// steerCodex sets settings of the adapter's sessions. It runs no hooks that the user has not trusted.
func (s *steering) steerCodex(to map[string]string, env []string) error {
	config, err := endpoint.CodexConfig(valueOf(env, endpoint.VarCodexConfig), to, nil)
	s.env = []string{endpoint.VarCodexConfig + "=" + config}
	return err
}

// steerOpencode sets settings with a plugin.
func (s *steering) steerOpencode(hook []string, to map[string]string, env []string) error {
	plugin := ""
	if hook != nil {
		text, err := agenthook.Plugin(hook)
		if err != nil {
			return err
		}
		f, err := os.CreateTemp("", "perdure-hooks-*.js")
		if err != nil {
			return err
		}
		plugin = f.Name()
		s.files = append(s.files, plugin)
		_, err = f.WriteString(text)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	config, err := endpoint.OpencodeConfig(valueOf(env, endpoint.VarOpencodeConfig), plugin, to)
	s.env = []string{endpoint.VarOpencodeConfig + "=" + config}
	return err
}

// valueOf returns the value of a variable, the last one of its name.
func valueOf(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if len(v) > len(name) && v[len(name)] == '=' && v[:len(name)] == name {
			return v[len(name)+1:]
		}
	}
	return ""
}

// environment returns the variables of the agent for a turn, without those that steer it.
func (a *Agent) environment(turn *agent.Turn) []string {
	return slices.Concat(environ.Base(os.Environ(), slices.Concat(a.Inherits(), turn.Inherit)),
		a.preset.env(&a.cfg, turn), a.cfg.Env, turn.Env)
}

// Hooked reports whether the agent runs [agent.Turn].Hook.
func (a *Agent) Hooked() bool { return a.preset.Hooks }

// Endpoints returns the addresses of the preset's providers; see [agent.Metered].
func (a *Agent) Endpoints(dir string, inherit []string) (map[string]string, error) {
	return endpoint.Of(a.cfg.Preset, endpoint.Place{Dir: dir, Env: a.environment(&agent.Turn{Inherit: inherit}),
		Args: a.cfg.Command[1:], Model: a.cfg.Model})
}

// HooksOff returns why the preset runs no hooks; see [agent.HookChecker].
func (a *Agent) HooksOff(dir string, inherit []string) string {
	p := endpoint.Place{Dir: dir, Env: a.environment(&agent.Turn{Inherit: inherit}), Args: a.cfg.Command[1:]}
	if why := endpoint.HooksOff(a.cfg.Preset, p); why != "" || a.cfg.Preset != "codex" {
		return why
	}
	if !endpoint.TrustsHook(p, agenthook.Mark) {
		return "the adapter of Codex runs only hooks that you installed and trusted: `perdure install codex` does both"
	}
	return ""
}
