package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/text/nearest"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// FileName is the project's file. It counts as it is in the version that is compared
// with, never as the change has it.
const FileName = ".perdure-check.yaml"

// maxFile is far more than such a file needs.
const maxFile = 256 << 10

// Project is what the project's file says.
type Project struct {
	Detection detect.Mode `yaml:"detection"`
	Settings  `yaml:",inline"`
	Waivers   []detect.Waiver `yaml:"-"`
	Given     []waiver        `yaml:"waivers"`
}

// waiver is one as a file has it.
type waiver struct {
	Pattern string `yaml:"pattern"`
	Path    string `yaml:"path"`
	Reason  string `yaml:"reason"`
	Expires string `yaml:"expires"`
	By      string `yaml:"by"`
}

// Parse reads the project's file; name is for messages. The error names all that is
// wrong.
func Parse(name string, text []byte) (*Project, error) {
	p := &Project{}
	if err := decode(name, text, p); err != nil {
		return nil, err
	}
	var errs []error
	if !slices.Contains([]detect.Mode{"", detect.Off, detect.Minimal, detect.Standard, detect.Aggressive}, p.Detection) {
		errs = append(errs, fmt.Errorf("detection: %q is none of off, minimal, standard, aggressive", p.Detection))
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

// names are those by which patterns are called.
func (s *Settings) names() []string {
	names := []string{"*"}
	for _, p := range s.Catalog() {
		names = append(append(names, p.ID), p.Aliases...)
	}
	return names
}

// decode reads YAML strictly. An empty file says nothing.
func decode(name string, text []byte, to any) error {
	if problem := yamltext.Unreadable(text, maxFile); problem != "" {
		return fmt.Errorf("%s: %s", name, problem)
	}
	if err := yaml.UnmarshalWithOptions(text, to, yaml.Strict()); err != nil {
		return yamltext.Problem(name, err)
	}
	return nil
}

// waivers reads them. Nil names let any pattern be named.
func waivers(given []waiver, names []string) ([]detect.Waiver, error) {
	if len(given) > maxWaivers {
		return nil, fmt.Errorf("there are %d waivers, at most %d are taken", len(given), maxWaivers)
	}
	var all []detect.Waiver
	var errs []error
	for i, g := range given {
		w := detect.Waiver{Pattern: g.Pattern, Path: g.Path, Reason: g.Reason, By: g.By}
		err := w.Check()
		if err == nil && names != nil && !slices.Contains(names, w.Pattern) {
			hint := "`perdure check patterns` lists them"
			if near, ok := nearest.Word(w.Pattern, names); ok {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			err = fmt.Errorf("pattern: there is no pattern %q; %s", w.Pattern, hint)
		}
		if max(len(g.Path), len(g.Reason), len(g.By)) > maxText {
			err = errors.Join(err, fmt.Errorf("path, reason and by have at most %d bytes", maxText))
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

// expiry reads a day, which counts to its end in UTC, or an instant.
func expiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-time.Second), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("expires: %q is no day like 2027-01-31, nor an instant like 2027-01-31T12:00:00Z",
			text)
	}
	return at.UTC(), nil
}

// WaiversVariable names the user's own file of waivers in the environment.
const WaiversVariable = "PERDURE_WAIVERS"

// OwnFile is where the user's own waivers are; named tells that the environment says so.
func OwnFile(getenv func(string) string) (name string, named bool) {
	if name = getenv(WaiversVariable); name != "" {
		return name, true
	}
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return "", false
	}
	return filepath.Join(dir, "perdure", "waivers.yaml"), false
}

// Own reads the user's own waivers: those of the file that the environment names, or
// of perdure/waivers.yaml in the user's configuration folder, if there is one. A
// file in the workspace is refused: an agent can write it.
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
			return nil, fmt.Errorf("read waivers: %s is in the workspace, where an agent can write it; keep waivers in %s, "+
				"committed, or elsewhere", name, FileName)
		}
	}
	info, err := os.Stat(actual)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("read waivers: %s is no ordinary file of at most %d bytes", name, maxFile)
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

// Ended tells of waivers that have ended, in words; of many the first.
func Ended(all []detect.Waiver, now time.Time) []string {
	const most = 20
	var texts []string
	for i := range all {
		if w := &all[i]; w.Expired(now) && len(texts) < most {
			texts = append(texts, fmt.Sprintf("a waiver has ended on %s and counts no more: %s for %s (%s)",
				w.Expires.Format(time.DateOnly), w.Pattern, w.Path, strings.TrimSpace(w.Reason)))
		}
	}
	return texts
}
