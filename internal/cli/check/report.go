package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/verify/evidence"
)

// maxFindings bounds the number of findings.
const maxFindings = 5000

// Report is the output of check --json.
type Report struct {
	Verdict detect.Verdict `json:"verdict"`
	Mode    detect.Mode    `json:"mode"`
	// Compared describes the compared versions, Base is the ID of the older one.
	Compared string    `json:"compared"`
	Base     string    `json:"base"`
	Findings []Finding `json:"findings"`
	Waived   []Waived  `json:"waived"`
	// Skipped are the files that were not analysed.
	Skipped []detect.Skipped `json:"skipped"`
	// Moved are tests that were recognized elsewhere.
	Moved []detect.Moved `json:"moved"`
	// Files is the number of changed files.
	Files int `json:"files"`
	// Notes are remarks on the settings.
	Notes []string `json:"notes"`

	rules []detect.Pattern
}

// Finding is a finding with its fingerprint and what to do about it.
type Finding struct {
	detect.Finding
	Fingerprint string `json:"fingerprint"`
	Advice      string `json:"advice"`
}

func reported(f *detect.Finding) Finding {
	return Finding{*f, f.Fingerprint(), detect.Advice(f.Pattern, f.Type)}
}

// Waived is a finding with the waiver that suppresses it.
type Waived struct {
	Finding
	Waiver detect.Waiver `json:"waiver"`
}

// report runs the detectors and returns the findings in the given paths.
func (v *versions) report(ctx context.Context, c *commands, s *settings, args []string) (*Report, error) {
	only, err := v.only(c.Cwd, args)
	if err != nil {
		return nil, err
	}
	wrong := ""
	in := detect.Input{Mode: s.mode, Rules: s.rules, Waivers: s.waivers, Now: s.now,
		Limits: detect.Limits{Findings: maxFindings}}
	in.Changes = v.changes(s.set.Protected, &wrong)
	found, err := detect.Run(ctx, &in)
	if limit, ok := errors.AsType[*detect.LimitError](err); ok {
		return nil, env.UsageError("compare with a newer --base", "%s", limit)
	}
	if err != nil {
		return nil, fromWorkspace(err)
	}
	if wrong != "" {
		return nil, env.UsageError("correct the file before the commit",
			"the change makes the project's settings invalid: %s", wrong)
	}
	r := &Report{Verdict: detect.Allow, Mode: in.Mode, Compared: v.text, Base: v.base, Files: found.Files,
		Findings: []Finding{}, Waived: []Waived{}, Skipped: []detect.Skipped{}, Moved: []detect.Moved{},
		Notes: append([]string{}, s.notes...), rules: s.set.Catalog()}
	for i := range found.Findings {
		if f := &found.Findings[i]; only(f.File) {
			r.Findings = append(r.Findings, reported(f))
			r.Verdict = worse(r.Verdict, f.Action)
		}
	}
	for i := range found.Waived {
		if w := &found.Waived[i]; only(w.File) {
			r.Waived = append(r.Waived, Waived{reported(&w.Finding), w.Waiver})
		}
	}
	for _, skip := range append(v.skipped(), found.Skipped...) {
		if skip.File == "" || only(skip.File) {
			r.Skipped = append(r.Skipped, skip)
		}
	}
	for _, m := range found.Moved {
		if only(m.From.File) || only(m.To.File) {
			r.Moved = append(r.Moved, m)
		}
	}
	slices.SortStableFunc(r.Skipped, func(a, b detect.Skipped) int { return strings.Compare(a.File, b.File) })
	r.Notes = append(r.Notes, v.unused(found.Unused)...)
	if v.note != "" {
		r.Notes = append(r.Notes, v.note)
	}
	return r, nil
}

// unused returns notes for waivers that covered no finding, up to a limit: those by
// fingerprint, and those for paths that changed.
func (v *versions) unused(all []detect.Waiver) []string {
	const most = 20
	var notes []string
	for i := range all {
		w := &all[i]
		if w.Fingerprint == "" && !v.changed(w.Path) {
			continue
		}
		if notes = append(notes, fmt.Sprintf("waiver covers no finding: %s (%s)", w, oneLine(w.Reason))); len(notes) == most {
			return append(notes, "more waivers cover no finding")
		}
	}
	return notes
}

// worse returns the verdict after another finding.
func worse(v detect.Verdict, a detect.Action) detect.Verdict {
	switch {
	case a == detect.Act || v == detect.Block:
		return detect.Block
	case a == detect.Warn:
		return detect.Warns
	}
	return v
}

// changes returns the changed files and marks the protected ones. Before the first commit
// no file is protected. It stores the problem of the changed project's settings in wrong.
func (v *versions) changes(protected []string, wrong *string) func(yield func(detect.Change, error) bool) {
	return func(yield func(detect.Change, error) bool) {
		for d, err := range v.each {
			if err == nil && !v.first {
				evidence.Protect(&d, protected)
			}
			if problem := proposed(&d); problem != "" {
				*wrong = problem
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// only returns a filter of files for the arguments, which are files, folders or globs
// relative to the working directory. Without arguments it accepts all.
func (v *versions) only(cwd string, args []string) (func(name string) bool, error) {
	if len(args) == 0 {
		return func(string) bool { return true }, nil
	}
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(v.root)
	if err != nil {
		return nil, err
	}
	var globs []string
	for _, arg := range args {
		at := filepath.FromSlash(arg)
		if !filepath.IsAbs(at) {
			at = filepath.Join(real, at)
		}
		rel, err := filepath.Rel(root, at)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, env.UsageError("", "%q is not in %s", arg, v.root)
		}
		_, statErr := os.Lstat(at)
		glob := path.Clean(filepath.ToSlash(rel))
		if statErr == nil {
			glob = escaped(glob)
		}
		if !doublestar.ValidatePattern(glob) {
			return nil, env.UsageError("", "%q is not a file, a folder or a glob such as src/**/*.ts", arg)
		}
		if statErr != nil && !v.changed(glob) {
			return nil, env.NotFound("paths are relative to the current folder; write a revision as --base REV",
				"no file, folder or changed file %q", arg)
		}
		globs = append(globs, glob)
	}
	return func(name string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { return under(g, name) })
	}, nil
}

// escaped returns a path as a glob.
func escaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(name)
}

// under reports whether a glob matches a file or a folder above it.
func under(glob, name string) bool {
	return glob == "." || doublestar.MatchUnvalidated(glob, name) || doublestar.MatchUnvalidated(glob+"/**", name)
}

// changed reports whether a glob matches a changed file.
func (v *versions) changed(glob string) bool {
	any := false
	v.paths(func(old, now string) { any = any || under(glob, old) || under(glob, now) })
	return any
}
