package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure/loop/hook"
)

// Loop is the section loop: what loops are begun with.
type Loop struct {
	// Agent is who works; Model is the agent's own name for a model, Permission
	// what it may do without asking: edits, read, all or own.
	Agent, Model, Permission string
	MaxIterations            int
	// Timeout bounds the agent's time in one iteration, IdleTimeout how long it may
	// be silent, CheckTimeout a run of the completion command.
	Timeout, IdleTimeout, CheckTimeout time.Duration
	MaxRetries                         int
	// QualityThreshold is in percent.
	QualityThreshold int
	// Hooks are the user's handlers, in the order in which they are asked. They
	// exist in the file only.
	Hooks hook.Settings
}

// hookEntry is a handler as the file has it.
type hookEntry struct {
	Hook    string `yaml:"hook"`
	Name    string `yaml:"name"`
	Command string `yaml:"command"`
	URL     string `yaml:"url"`
	Timeout string `yaml:"timeout"`
	OnFault string `yaml:"on_fault"`
}

// hookList reads the list of handlers.
func (p *fileParser) hookList(n ast.Node) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		p.add(n, "%s is a list; write - hook: NAME", hook.SettingsKey)
		return
	}
	var entries []hookEntry
	if err := yaml.NodeToValue(n, &entries, yaml.DisallowUnknownField()); err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n")
		p.add(n, "%s: %s", hook.SettingsKey, problem)
		return
	}
	for i, e := range entries {
		s := hook.Setting{Hook: hook.Name(e.Hook), Name: e.Name, Command: e.Command, URL: e.URL, OnFault: hook.OnFault(e.OnFault)}
		if e.Timeout == noLimit {
			s.Timeout = hook.NoTimeout
		} else if e.Timeout != "" {
			d, err := ParseDuration(e.Timeout)
			if err != nil || d <= 0 {
				p.add(n, "%s[%d].timeout: %q is no time like 5s, or %s", hook.SettingsKey, i, e.Timeout, noLimit)
			}
			s.Timeout = d
		}
		p.hooks = append(p.hooks, s)
	}
	if err := p.hooks.Validate(); err != nil {
		p.add(n, "%s", strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
	}
}

// hookTemplate shows in a new file how handlers are written.
const hookTemplate = `
# Programs and addresses that are asked at the hooks of loops; perdure schema
# hook-message and hook-reply say what they are told and what they answer:
# loop:
#   hooks:
#     - hook: post_iteration
#       command: ./scripts/after-iteration
#       timeout: 10s
#     - hook: gate_opened
#       url: https://example.com/notify
#       on_fault: continue
`
