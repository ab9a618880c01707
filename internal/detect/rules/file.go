package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/storage/userdir"
	"github.com/perdure/perdure/internal/text/nearest"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// FileName is the project's settings file. It is read from the version that the change is
// compared with, never from the changed one.
const FileName = ".perdure-check.yaml"

// maxFile bounds the size of the file.
const maxFile = 256 << 10

// Project is the content of the project's settings file.
type Project struct {
	Detection detect.Mode `yaml:"detection"`
	Settings  `yaml:",inline"`
	Waivers   []detect.Waiver `yaml:"-"`
	Given     []waiver        `yaml:"waivers"`
}

// waiver is a waiver as written in a file.
type waiver struct {
	Fingerprint string `yaml:"fingerprint"`
	Pattern     string `yaml:"pattern"`
	Path        string `yaml:"path"`
	Reason      string `yaml:"reason"`
	Expires     string `yaml:"expires"`
	By          string `yaml:"by"`
}

// Parse reads the project's settings file; name is used in messages. The error lists all
// problems.
func Parse(name string, text []byte) (*Project, error) {
	p := &Project{}
	if err := decode(name, text, p); err != nil {
		return nil, err
	}
	var errs []error
	if !slices.Contains([]detect.Mode{"", detect.Off, detect.Minimal, detect.Standard, detect.Aggressive}, p.Detection) {
		errs = append(errs, fmt.Errorf("detection: unknown mode %q: use off, minimal, standard or aggressive", p.Detection))
	}
	if _, err := p.Rules(); err != nil {
		errs = append(errs, err)
	}
	known := p.names()
	var err error
	if p.Waivers, err = waivers(p.Given, known); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(errs...))
	}
	return p, nil
}

// names returns the names of all patterns.
func (s *Settings) names() []string {
	names := []string{"*"}
	for _, p := range s.Catalog() {
		names = append(append(names, p.ID), p.Aliases...)
	}
	return names
}

// decode reads YAML strictly. An empty file is valid.
func decode(name string, text []byte, to any) error {
	if problem := yamltext.Decode(text, maxFile, to); problem != nil {
		return problem.In(name)
	}
	return nil
}

// waivers converts and checks waivers. With nil names any pattern name is accepted.
func waivers(given []waiver, names []string) ([]detect.Waiver, error) {
	if len(given) > maxWaivers {
		return nil, fmt.Errorf("%d waivers, limit %d", len(given), maxWaivers)
	}
	var all []detect.Waiver
	var errs []error
	for i, g := range given {
		w := detect.Waiver{Fingerprint: g.Fingerprint, Pattern: g.Pattern, Path: g.Path, Reason: g.Reason, By: g.By}
		err := w.Check()
		if err == nil && names != nil && w.Pattern != "" && !slices.Contains(names, w.Pattern) {
			hint := "`perdure check patterns` lists them"
			if near, ok := nearest.Word(w.Pattern, names); ok {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			err = fmt.Errorf("pattern: unknown pattern %q: %s", w.Pattern, hint)
		}
		if max(len(g.Path), len(g.Reason), len(g.By)) > maxText {
			err = errors.Join(err, fmt.Errorf("path, reason or by has more than %d bytes", maxText))
		}
		var expiryErr error
		if w.Expires, expiryErr = expiry(g.Expires); expiryErr != nil {
			err = errors.Join(err, expiryErr)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("waivers[%d]: %w", i, err))
		}
		all = append(all, w)
	}
	return all, errors.Join(errs...)
}

// expiry reads a date, which expires at the end of the day in UTC, or a time.
func expiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-time.Second), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("expires: invalid time %q: use 2027-01-31 or 2027-01-31T12:00:00Z",
			text)
	}
	return at.UTC(), nil
}

// WaiversVariable is the environment variable with the path of the user's own waivers.
const WaiversVariable = "PERDURE_WAIVERS"

// OwnFile returns the path of the user's own waivers; named is set if the environment
// names it.
func OwnFile(getenv func(string) string) (name string, named bool) {
	if name = getenv(WaiversVariable); name != "" {
		return name, true
	}
	dir := userdir.Config(getenv)
	if dir == "" {
		return "", false
	}
	return filepath.Join(dir, "waivers.yaml"), false
}

// Own reads the user's own waivers from the file that the environment names, or from
// perdure/waivers.yaml in the user's configuration folder if it exists. A file in the
// workspace is refused, because an agent can write it.
func Own(getenv func(string) string, workspace string) ([]detect.Waiver, error) {
	name, named := OwnFile(getenv)
	if name == "" {
		return nil, nil
	}
	if !filepath.IsAbs(name) {
		return nil, fmt.Errorf("%s: %q is not an absolute path", WaiversVariable, name)
	}
	actual, err := filepath.EvalSymlinks(name)
	if errors.Is(err, os.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read waivers: %w", err)
	}
	if root, err := filepath.EvalSymlinks(workspace); err == nil {
		if rel, err := filepath.Rel(root, actual); err == nil && filepath.IsLocal(rel) {
			return nil, fmt.Errorf("read waivers: %s is in the workspace, where an agent can write it: commit waivers in %s, "+
				"or move the file out of the workspace", name, FileName)
		}
	}
	info, err := os.Stat(actual)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("read waivers: %s is not a regular file of at most %d bytes", name, maxFile)
	}
	text, err := os.ReadFile(actual)
	if err != nil {
		return nil, fmt.Errorf("read waivers: %w", err)
	}
	var doc struct {
		Waivers []waiver `yaml:"waivers"`
	}
	if err := decode(name, text, &doc); err != nil {
		return nil, err
	}
	all, err := waivers(doc.Waivers, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// Ended returns a message for each expired waiver, up to a limit.
func Ended(all []detect.Waiver, now time.Time) []string {
	const most = 20
	var texts []string
	for i := range all {
		if w := &all[i]; w.Expired(now) && len(texts) < most {
			texts = append(texts, fmt.Sprintf("waiver expired on %s: %s (%s)",
				w.Expires.Format(time.DateOnly), w, strings.TrimSpace(w.Reason)))
		}
	}
	return texts
}
