package policy

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// Policy says how calls are judged.
type Policy struct {
	// Root is the workspace, an absolute path without symbolic links.
	Root string
	// Own are folders that are perdure's besides those named .perdure.
	Own []string
	// Protected, when set, tells of further files that decide what is checked, by
	// their paths in the workspace.
	Protected func(rel string) bool
	// Answers stand over those of the table.
	Answers map[risk.Pattern]risk.Answer
	// Allowed are calls that a person allowed, by their permits.
	Allowed []string
}

// Judgement is what is thought of a call.
type Judgement struct {
	// Findings are its risks, the gravest first, with the answers of the policy.
	Findings []risk.Finding
	// Answer is the strictest of them.
	Answer risk.Answer
}

// Mutates tells whether a call may change something.
func Mutates(c *agent.ToolCall) bool {
	return !slices.Contains([]agent.ToolKind{agent.ToolRead, agent.ToolSearch, agent.ToolFetch, agent.ToolThink}, c.Kind)
}

// Judge judges a call that is made in the folder dir; empty is the workspace.
func (p *Policy) Judge(c *agent.ToolCall, dir string) Judgement {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then nobody can name it either
	}
	at := risk.Where{Root: p.Root, Dir: cmp.Or(dir, p.Root), Home: home, Own: p.Own, Protected: p.Protected}
	if waivers, _ := rules.OwnFile(os.Getenv); waivers != "" { // who can write these approves himself
		at.Own = append(slices.Clone(p.Own), waivers)
	}
	found := risk.Assess(p.followed(c, at.Dir), at)
	for i := range found {
		f := &found[i]
		f.Target = strings.TrimPrefix(f.Target, p.Root+string(filepath.Separator)) // one file has one name
		f.Answer = cmp.Or(p.Answers[f.Pattern], f.Answer)
		if f.Answer == risk.Gate && slices.Contains(p.Allowed, permit(f)) {
			f.Answer = risk.Warn // a person allowed it
		}
	}
	return Judgement{Findings: found, Answer: risk.Strictest(found)}
}

// followed is a call with the files that its paths lead to beside them. A path that
// leads into the workspace by another name is one of the workspace.
func (p *Policy) followed(c *agent.ToolCall, dir string) *agent.ToolCall {
	real := *c
	real.Paths = nil
	for _, given := range c.Paths {
		name := absolute(dir, given)
		to := filepath.Join(target(filepath.Dir(name)), filepath.Base(name))
		if c.Kind != agent.ToolDelete && c.Kind != agent.ToolMove { // those are of the link, not of where it leads
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

// holds tells whether a path is one of the workspace.
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

// target is where a path leads, of which the end need not exist.
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

// permit names what a person allows.
func permit(f *risk.Finding) string { return string(f.Pattern) + " " + f.Target }

// Wanted are the permits that a person is to be asked for.
func (j *Judgement) Wanted() []string {
	var wanted []string
	for i := range j.Findings {
		if f := &j.Findings[i]; f.Answer == risk.Gate {
			wanted = append(wanted, permit(f))
		}
	}
	return wanted
}

// Destructive tells whether the call can destroy what nothing else holds.
func (j *Judgement) Destructive() bool {
	return slices.ContainsFunc(j.Findings, func(f risk.Finding) bool { return f.Destructive })
}

// Allowed tells whether an answer lets a call through.
func Allowed(a risk.Answer) bool { return a == risk.Allow || a == risk.Warn }

// Text is what the agent is told.
func (j *Judgement) Text() string {
	var lines []string
	for _, f := range j.Findings {
		if line := f.Target + ": " + f.Text; f.Text != "" && f.Answer != risk.Allow && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
