package policy

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/storage/userdir"
	"github.com/perdure/perdure/internal/toolguard/agentconfig"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// Policy configures how calls are judged.
type Policy struct {
	// Root is the workspace, an absolute path without symbolic links.
	Root string
	// Own are folders of perdure in addition to those named .perdure.
	Own []string
	// Protected, if set, reports whether a file configures checks, by its path in the
	// workspace.
	Protected func(rel string) bool
	// Answers override those of the table.
	Answers map[risk.Pattern]risk.Answer
	// Allowed are permits of calls that a person allowed.
	Allowed []string
}

// Outside returns the policy of calls that no loop judges: in the project that contains the
// folder dir, which an agent may have removed. own is the folder of perdure. The hook of an
// agent and the preview of a command line both use it.
func Outside(dir, own string, answers map[risk.Pattern]risk.Answer) (*Policy, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("find project of tool call: %w", err)
	}
	return &Policy{Root: agentconfig.Root(dir), Own: []string{own}, Answers: answers}, nil
}

// Judgement is the result of judging a call.
type Judgement struct {
	// Findings are the risks of the call, the worst first, with the answers of the policy.
	Findings []risk.Finding
	// Answer is the strictest answer of the findings.
	Answer risk.Answer
}

// Mutates reports whether a call may change something.
func Mutates(c *agent.ToolCall) bool {
	return !slices.Contains([]agent.ToolKind{agent.ToolRead, agent.ToolSearch, agent.ToolFetch, agent.ToolThink}, c.Kind)
}

// Judge judges a call that is made in the folder dir. If dir is empty or no longer exists, the
// call is judged as made in the workspace.
func (p *Policy) Judge(c *agent.ToolCall, dir string) Judgement {
	dir = p.folder(dir)
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // the agent cannot name it either
	}
	at := risk.Where{Root: p.Root, Dir: dir, Home: home, Own: p.Own, Protected: p.Protected,
		Filled: isFilled}
	// An agent that can write these could approve its own changes, trust its own settings, or
	// hide changes of the log, or remove the hooks of the agent.
	waivers, _ := rules.OwnFile(os.Getenv)
	for _, own := range append(agentconfig.Files(os.Getenv), waivers, userdir.Config(os.Getenv),
		userdir.State(os.Getenv)) {
		if own != "" {
			at.Own = append(slices.Clip(at.Own), own)
		}
	}
	for key, answer := range p.Answers {
		if command, ok := strings.CutPrefix(string(key), risk.CommandPrefix); ok {
			if at.Commands == nil {
				at.Commands = make(map[string]risk.Answer)
			}
			at.Commands[command] = answer
		}
	}
	found := risk.Assess(p.followed(describeWhole(c), at.Dir), at)
	for i := range found {
		f := &found[i]
		f.Target = strings.TrimPrefix(f.Target, p.Root+string(filepath.Separator)) // one name for each file
		f.Answer = cmp.Or(f.Set, p.Answers[f.Pattern], f.Answer)
		if f.Answer == risk.Gate && slices.Contains(p.Allowed, permit(f)) {
			f.Answer = risk.Warn // a person allowed it
		}
	}
	return Judgement{Findings: found, Answer: risk.Strictest(found)}
}

// folder returns the folder of a call without symbolic links.
func (p *Policy) folder(dir string) string {
	if dir == "" {
		return p.Root
	}
	to, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return p.Root
	}
	return to
}

// describeWhole returns a call with the paths and the command in its input. An agent can report a
// call of another server's tool without them.
func describeWhole(c *agent.ToolCall) *agent.ToolCall {
	bare := Mutates(c) && c.Command == "" && len(c.Paths) == 0
	if len(c.Input) == 0 || c.Kind != agent.ToolOther && !bare {
		return c
	}
	full, known := *c, agent.Describe(c.ID, c.Name, c.Input)
	full.Command = cmp.Or(c.Command, known.Command)
	for _, name := range known.Paths {
		if !slices.Contains(c.Paths, name) {
			full.Paths = append(slices.Clip(full.Paths), name)
		}
	}
	if c.Kind == agent.ToolOther {
		full.Kind = known.Kind
	}
	return &full
}

// isFile reports whether a value that has the form of a path, in a call of a tool that is not
// known, can be a file: an absolute path begins with a folder that exists, and one without an
// extension exists itself. Others are addresses, branches and types of media.
func (p *Policy) isFile(name, dir string) bool {
	slashed := filepath.ToSlash(name)
	if filepath.IsAbs(name) {
		top, _, _ := strings.Cut(strings.TrimPrefix(slashed, "/"), "/")
		_, err := os.Lstat(string(filepath.Separator) + top)
		return err == nil || p.holds(name) || !strings.HasPrefix(slashed, "/")
	}
	if !strings.Contains(slashed, "/") || filepath.Ext(name) != "" || strings.HasPrefix(slashed, ".") ||
		strings.HasPrefix(slashed, "~") || strings.ContainsAny(slashed, "*?") {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// followed returns a call with the targets of symbolic links added to its paths. A path
// that leads into the workspace under another name is a path of the workspace.
func (p *Policy) followed(c *agent.ToolCall, dir string) *agent.ToolCall {
	real := *c
	real.Paths = nil
	unknown := len(c.Input) > 0 && agent.Describe("", c.Name, nil).Kind == agent.ToolOther
	for _, given := range c.Paths {
		if unknown && !p.isFile(given, dir) {
			continue
		}
		name := absolute(dir, given)
		to := filepath.Join(target(filepath.Dir(name)), filepath.Base(name))
		if c.Kind != agent.ToolDelete && c.Kind != agent.ToolMove { // those apply to the link, not to its target
			to = target(name)
		}
		if to == name || p.holds(name) || !p.holds(to) {
			real.Paths = append(real.Paths, given)
		}
		if to != name {
			real.Paths = append(real.Paths, to)
		}
	}
	return &real
}

// holds reports whether a path is in the workspace.
func (p *Policy) holds(name string) bool {
	rel, err := filepath.Rel(p.Root, name)
	return err == nil && filepath.IsLocal(rel)
}

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// target resolves the links of a path whose last parts need not exist.
func target(name string) string {
	if to, err := filepath.EvalSymlinks(name); err == nil {
		return to
	}
	parent := filepath.Dir(name)
	if parent == name {
		return name
	}
	return filepath.Join(target(parent), filepath.Base(name))
}

// permit returns the permit that allows a finding.
func permit(f *risk.Finding) string { return string(f.Pattern) + " " + f.Target }

// Wanted returns the permits that a person has to grant.
func (j *Judgement) Wanted() []string {
	var wanted []string
	for i := range j.Findings {
		if f := &j.Findings[i]; f.Answer == risk.Gate {
			wanted = append(wanted, permit(f))
		}
	}
	return wanted
}

// Destructive reports whether the call can destroy data of which there is no copy.
func (j *Judgement) Destructive() bool {
	return slices.ContainsFunc(j.Findings, func(f risk.Finding) bool { return f.Destructive })
}

// Allowed reports whether an answer lets a call through.
func Allowed(a risk.Answer) bool { return a == risk.Allow || a == risk.Warn }

// Text returns the message to the agent.
func (j *Judgement) Text() string {
	var lines []string
	for _, f := range j.Findings {
		if line := f.Target + ": " + f.Text; f.Text != "" && f.Answer != risk.Allow && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
