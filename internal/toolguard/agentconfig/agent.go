// Package agentconfig edits the configuration of coding agents, so that they run perdure's
// hook and find its skill document: by insertions, which can be undone exactly.
package agentconfig

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/perdure/perdure/internal/agenthook"
)

// Scope is what a configuration is for.
type Scope string

// Scopes: all projects of the user, or one project.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Scopes returns all scopes, the one that agents read first at the beginning.
func Scopes() []Scope { return []Scope{Project, User} }

// Place is where agents have their configuration.
type Place struct {
	// Getenv returns environment variables.
	Getenv func(string) string
	// Project is the root of the project, an absolute path.
	Project string
}

// Agent is an agent with hooks.
type Agent struct {
	// Name is that of its dialect, Title the one for people, Program its program.
	Name, Title, Program string
	// Package is the command that installs the agent.
	Package string

	// home returns the folder of its configuration in a scope, "" if it is not known.
	home func(p Place, s Scope) string
	// hooks is the file with the hooks in that folder, skills the folder with skills.
	hooks  func(s Scope) string
	skills string
	format format
}

// format is the format of the file with an agent's hooks.
type format int

const (
	formatJSON   format = iota // settings with members for each event
	formatTOML                 // settings of Codex
	formatPlugin               // a file of its own
)

// Agents returns the agents with hooks.
func Agents() []Agent {
	plain := func(name string) func(Scope) string { return func(Scope) string { return name } }
	return []Agent{
		{
			Name: "claude-code", Title: "Claude Code", Program: "claude", Package: "npm install -g @anthropic-ai/claude-code",
			home: under("CLAUDE_CONFIG_DIR", "", ".claude", ".claude"), skills: "skills",
			// The other settings of a project are shared with its repository.
			hooks: func(s Scope) string {
				return map[Scope]string{User: "settings.json", Project: "settings.local.json"}[s]
			},
		},
		{
			Name: "codex", Title: "Codex", Program: "codex", Package: "npm install -g @openai/codex",
			home: under("CODEX_HOME", "", ".codex", ".codex"), hooks: plain("config.toml"), skills: "skills", format: formatTOML,
		},
		{
			Name: "opencode", Title: "OpenCode", Program: "opencode", Package: "npm install -g opencode-ai",
			home:  under("XDG_CONFIG_HOME", "opencode", filepath.Join(".config", "opencode"), ".opencode"),
			hooks: plain(filepath.Join("plugin", "perdure.js")), skills: "skills", format: formatPlugin,
		},
		{
			Name: "gemini", Title: "Gemini CLI", Program: "gemini", Package: "npm install -g @google/gemini-cli",
			home: under("GEMINI_CLI_HOME", ".gemini", ".gemini", ".gemini"), hooks: plain("settings.json"), skills: "skills",
		},
	}
}

// AgentOf returns the agent of a name, and false if there is none.
func AgentOf(name string) (Agent, bool) {
	all := Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

// under returns the function that finds an agent's folder: sub in the folder of a variable,
// else home in the user's home folder, or project in the project.
func under(variable, sub, home, project string) func(p Place, s Scope) string {
	return func(p Place, s Scope) string {
		if s == Project {
			return filepath.Join(p.Project, project)
		}
		if dir := p.Getenv(variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, sub)
		}
		if dir := p.Getenv("HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, home)
		}
		return ""
	}
}

// File returns the file with the agent's hooks in a scope, "" if it is not known.
func (a *Agent) File(p Place, s Scope) string {
	dir := a.home(p, s)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, a.hooks(s))
}

// skill returns the file of the skill document.
func (a *Agent) skill(p Place, s Scope) string {
	return filepath.Join(a.home(p, s), a.skills, "perdure-handoff", "SKILL.md")
}

// Line returns the command line of the hook as the agent runs it.
func (a *Agent) Line(program string) string {
	return agenthook.Line([]string{program, "hook"}, a.Name)
}

// Files returns the files and folders that install the hooks of agents: who can write them can
// remove the hooks.
func Files(getenv func(string) string) []string {
	var all []string
	for _, a := range Agents() {
		if name := a.File(Place{Getenv: getenv}, User); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// Root returns the project of a folder: the nearest one with a store or a repository from the
// folder upwards, or the folder.
func Root(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, name := range []string{".perdure", ".git"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}
