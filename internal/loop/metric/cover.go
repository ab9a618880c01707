package metric

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/coverage"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// coverageVariable is the environment variable with the path where a coverage command
// writes.
const coverageVariable = "PERDURE_COVERAGE"

// Profile reads the coverage that a command left; if there is none, lacks is the reason.
func (t *Meter) Profile(command *project.Command, found []project.Found) (p *coverage.Profile, lacks string) {
	var all []*coverage.Profile
	for i, f := range found {
		if !project.IsCoverage(f.Format) {
			continue
		}
		switch {
		case len(f.Files) == 0 && len(f.Stale) > 0:
			return nil, fmt.Sprintf("%s is older than the run", f.Stale[0])
		case len(f.Files) == 0:
			return nil, noCoverage
		}
		one, err := coverage.ParseFiles(coverage.Format(f.Format), f.Files, t.coverageConfig(command.Results[i].Dir))
		if err != nil {
			return nil, err.Error()
		}
		all = append(all, one)
	}
	return usable(coverage.Merge(all...))
}

func (t *Meter) coverageConfig(dir string) coverage.Config {
	root := t.Files.Root()
	return coverage.Config{Root: root, Dir: dir, Modules: t.Plan.Modules, Exists: func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}}
}

// usable returns a profile that covers files of the workspace, or the reason why it does
// not.
func usable(p *coverage.Profile) (*coverage.Profile, string) {
	switch {
	case !p.Complete:
		return nil, p.Reason
	case len(p.Files) == 0 && p.Foreign > 0:
		return nil, fmt.Sprintf("the coverage is of %s outside of the workspace", human.Count(p.Foreign, "file"))
	}
	return p, ""
}

// takeCoverage records the coverage of the check's run, or runs the command for it.
func (t *Meter) takeCoverage(ctx context.Context, m *Metrics, c *Checked) (err error) {
	p, lacks := c.Profile, c.Lacks
	switch t.Measures.Coverage {
	case config.Off:
		return nil
	case config.Auto:
	default:
		if p, lacks, err = t.ownCoverage(ctx); err != nil {
			return err
		}
	}
	if p == nil {
		lacks = cmp.Or(lacks, noCoverage)
		const way = "--coverage COMMAND"
		if t.Measures.Coverage == config.Auto && !strings.Contains(lacks, way) {
			lacks += "; " + way + " measures it"
		}
		m.miss(NameCoverage, lacks)
		return nil
	}
	m.CoveredLines, m.CodeLines = p.Count()
	if percent, ok := p.Percent(); ok {
		m.Coverage = &percent
	}
	m.Profile, err = t.saveProfile(ctx, p)
	return err
}

// noCoverage is the reason used when no other is known.
const noCoverage = "the run left no coverage"

// ownCoverage runs the user's coverage command. Its test results do not count.
func (t *Meter) ownCoverage(ctx context.Context) (p *coverage.Profile, lacks string, err error) {
	place := filepath.Join(t.Scratch, "coverage")
	if err := os.RemoveAll(place); err != nil {
		return nil, "", err
	}
	cfg := t.config()
	cfg.WithCoverage = true
	command := project.Measure(t.Measures.Coverage, cfg)
	if err := command.Clear(t.Files.Root()); err != nil {
		return nil, "remove old results: " + err.Error(), nil //nolint:nilerr // the reason why coverage is missing
	}
	command.Env = append(slices.Clone(command.Env), coverageVariable+"="+place)
	ran, err := t.Run(ctx, &command, t.Limit)
	if err != nil {
		return nil, "", err
	}
	ran.Close()
	switch {
	case ran.TimedOut:
		return nil, fmt.Sprintf("the command was stopped after %s", t.Limit), nil
	case ran.Exit != 0:
		return nil, fmt.Sprintf("the command failed with exit status %d: %s", ran.Exit, ran.lastLine()), nil
	case command.Covers():
		found, err := command.Collect(t.Files.Root(), ran.Began)
		if err != nil {
			return nil, err.Error(), nil //nolint:nilerr // told as the reason
		}
		p, lacks = t.Profile(&command, found)
		return p, lacks, nil
	}
	names, err := profilesIn(place)
	if err != nil || len(names) == 0 {
		return nil, "the command wrote no coverage to $" + coverageVariable, err
	}
	p, err = coverage.ParseFiles("", names, t.coverageConfig(""))
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // told as the reason
	}
	p, lacks = usable(p)
	return p, lacks, nil
}

// profilesIn lists the coverage files that a command wrote: the file at place, or the
// files in that folder with the usual names. The place was empty before.
func profilesIn(place string) ([]string, error) {
	const most = 1000
	var names []string
	err := filepath.WalkDir(place, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == place:
			return fs.SkipAll
		case err != nil:
			return err
		case entry.Type().IsRegular() && len(names) < most &&
			(name == place || slices.Contains([]string{".info", ".lcov", ".xml", ".out", ".cov"}, filepath.Ext(name))):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// saveProfile stores a profile.
func (t *Meter) saveProfile(ctx context.Context, p *coverage.Profile) (string, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	return t.Save(ctx, raw)
}

// savedProfile reads a stored profile.
func (t *Meter) savedProfile(ctx context.Context, name string) (*coverage.Profile, error) {
	raw, err := t.Load(ctx, name)
	if err != nil {
		return nil, err
	}
	var p coverage.Profile
	return &p, json.Unmarshal(raw, &p)
}

// Trust makes metrics the reference that later ones are compared with, as of a snapshot.
// Coverage of blank lines is dropped, so that unchanged files need not be read again.
func (t *Meter) Trust(ctx context.Context, m *Metrics, at workspace.ID) error {
	plan := t.Plan
	plan.Profile, plan.At, plan.Base = "", "", m
	if m == nil || m.Profile == "" {
		return nil
	}
	p, err := t.savedProfile(ctx, m.Profile)
	if err != nil {
		return err
	}
	files, _, err := t.Files.Files(ctx, at)
	if err != nil {
		return err
	}
	var paths []string
	for i := range files {
		if f := p.Files[files[i].Path]; f != nil && f.Covered.Len() > 0 && files[i].Kind == workspace.KindFile {
			paths = append(paths, files[i].Path)
		}
	}
	kept := coverage.Profile{Complete: true, Files: make(map[string]*coverage.File, len(paths))}
	err = t.Files.ReadFiles(ctx, at, paths, func(f workspace.File, content []byte) error {
		kept.Files[f.Path] = p.Files[f.Path]
		kept.Files[f.Path].KeepSolid(content)
		return nil
	})
	if err != nil {
		return err
	}
	plan.At = at
	plan.Profile, err = t.saveProfile(ctx, &kept)
	return err
}
