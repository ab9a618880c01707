package agentconfig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/agenthook"
	"github.com/perdure/perdure/internal/text/jsonc"
)

// ErrForeign is the error for a file at the place of one of perdure's that is not.
var ErrForeign = errors.New("the file was not written by perdure")

// Source is what is installed.
type Source struct {
	// Program is the path of perdure.
	Program string
	// Skill is the skill document.
	Skill string
}

// skillMark is in each skill document that perdure writes.
const skillMark = "<!-- written by perdure install -->"

// skillText returns the skill document as agents read it.
func (s Source) skillText() string {
	return "---\nname: perdure-handoff\ndescription: Record the steps of long work and resume work of other agents with " +
		"perdure handoff. Use it at the start of work with several steps, after each step, and before the session ends.\n" +
		"---\n\n" + skillMark + "\n\n" + s.Skill
}

// Install returns the changes that install the hook and the skill document of an agent. The
// error names the file and the line of a fault.
func (a *Agent) Install(p Place, s Scope, from Source) ([]*Change, error) {
	hooks, err := a.plan(p, a.File(p, s), func(base []byte) ([]jsonc.Edit, error) {
		if a.format == formatPlugin {
			text, err := agenthook.Plugin([]string{from.Program, "hook"})
			return []jsonc.Edit{{New: text}}, err
		}
		return a.addHooks(base, a.Line(from.Program))
	}, a.removeHooks)
	if err != nil {
		return nil, err
	}
	skill, err := a.plan(p, a.skill(p, s), func([]byte) ([]jsonc.Edit, error) {
		return []jsonc.Edit{{New: from.skillText()}}, nil
	}, wholeFile(skillMark))
	if err != nil {
		return nil, err
	}
	hooks.Whole, skill.Whole = a.format == formatPlugin, true
	return []*Change{hooks, skill}, nil
}

// wholeFile removes a file that perdure wrote as a whole, which a mark shows.
func wholeFile(mark string) func([]byte) ([]byte, bool, error) {
	return func(text []byte) ([]byte, bool, error) {
		if !bytes.Contains(text, []byte(mark)) {
			return nil, false, ErrForeign
		}
		return nil, true, nil
	}
}

// plan returns the change that adds edits to a file. What an earlier installation added is
// replaced.
func (a *Agent) plan(p Place, path string, add func(base []byte) ([]jsonc.Edit, error),
	remove func([]byte) ([]byte, bool, error)) (*Change, error) {
	if path == "" {
		return nil, errors.New("the folder of the agent's settings is not known: HOME is not set")
	}
	c, err := a.unplan(p, path, remove)
	if err != nil {
		return nil, err
	}
	c.base = c.After
	if c.edits, err = add(c.base); err != nil {
		return nil, faultIn(path, err)
	}
	c.After = c.base
	for _, e := range c.edits {
		c.After = jsonc.Apply(c.After, []jsonc.Edit{e})
	}
	// An installation that is complete stays, also if the user has moved it.
	if c.Before != nil && a.same(c) {
		c.After = c.Before
	}
	return c, nil
}

// same reports whether a file already has everything that a change would add.
func (a *Agent) same(c *Change) bool {
	if bytes.Equal(c.Before, c.After) {
		return true
	}
	if a.format == formatTOML && !trustedHooks(c.Path, c.Before, c.Before) {
		return false // the trust is recorded anew
	}
	for _, e := range c.edits {
		if !bytes.Contains(c.Before, []byte(strings.TrimSpace(e.New))) {
			return false
		}
	}
	return true
}

// Uninstall returns the changes that remove the hook and the skill document of an agent.
func (a *Agent) Uninstall(p Place, s Scope) ([]*Change, error) {
	var all []*Change
	// The folders that were made for the first are in those for the other.
	files := []struct {
		path   string
		remove func([]byte) ([]byte, bool, error)
	}{{a.skill(p, s), wholeFile(skillMark)}, {a.File(p, s), a.removeHooks}}
	for _, f := range files {
		c, err := a.unplan(p, f.path, f.remove)
		if errors.Is(err, ErrForeign) {
			continue // it is not ours
		}
		if err != nil {
			return nil, err
		}
		c.Whole = a.format == formatPlugin || f.path != a.File(p, s)
		all = append(all, c)
	}
	trust := a.trustFile(p, s)
	if trust == "" {
		return all, nil
	}
	text, err := readFile(trust)
	if err != nil || text == nil {
		return all, err
	}
	out, _, err := removeTOML(text, tomlTrust(a.File(p, s)))
	if err != nil {
		return nil, faultIn(trust, err)
	}
	return append(all, &Change{Path: trust, Before: text, After: out, plain: true}), nil
}

// unplan returns the change that removes what perdure added to a file.
func (a *Agent) unplan(p Place, path string, remove func([]byte) ([]byte, bool, error)) (*Change, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c := &Change{Path: path, Before: text, After: text}
	if text == nil {
		return c, nil
	}
	r := p.recorded(path)
	if base, ok := r.exact(text); ok {
		c.After = base
		return c, nil
	}
	if a.format == formatPlugin && strings.HasSuffix(path, ".js") {
		remove = wholeFile("perdure uninstall opencode")
	}
	out, found, err := remove(text)
	if err != nil {
		return nil, faultIn(path, err)
	}
	if found {
		c.After = out
	}
	rest := strings.Join(strings.Fields(string(out)), "")
	if found && r != nil && r.Created && (rest == "" || rest == "{}") {
		c.After = nil
	}
	return c, nil
}

// faultIn adds the file to an error.
func faultIn(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

// Apply makes changes. On an error those before it stay.
func Apply(p Place, changes []*Change) error {
	for _, c := range changes {
		if err := p.write(c); err != nil {
			return err
		}
	}
	return nil
}
