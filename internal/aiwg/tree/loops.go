package tree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
)

// settingsFiles returns the names of a project's settings file.
func settingsFiles() []string { return []string{loops.SettingsFile, "aiwg.yaml"} }

// parentPrefix is the prefix of files in the parent of the folder.
const parentPrefix = "../"

// importLoops imports the loops of the folder, and the settings of loops in the folder
// and, if its name is .aiwg, in its parent.
func (r *reader) importLoops(ctx context.Context) error {
	src := loops.Source{DryRun: r.cfg.DryRun, Read: r.src.read,
		Note: func(n Note) { r.report.Notes = append(r.report.Notes, n) }}
	if r.settings != "" {
		src.Settings = []string{r.settings}
	} else if r.loop != "" {
		src.Files, src.States = []string{r.loop}, []string{r.loop}
	} else if r.whole {
		src.Files = r.files
		for _, name := range settingsFiles() {
			if slices.Contains(r.files, name) {
				src.Settings = append(src.Settings, name)
			}
		}
		if parent, names := r.parentSettings(); parent != nil {
			defer parent.root.Close()
			src.Settings = append(src.Settings, names...)
			src.Read = func(name string) ([]byte, error) {
				if base, ok := strings.CutPrefix(name, parentPrefix); ok {
					return parent.read(base)
				}
				return r.src.read(name)
			}
		}
	}
	var err error
	r.report.Counts, err = loops.Import(ctx, r.store, src)
	return err
}

// parentSettings returns the settings files in the parent of .aiwg. No other file is
// read there, and no file outside of it, also not through links.
func (r *reader) parentSettings() (*source, []string) {
	whole, err := filepath.Abs(r.src.abs)
	if err != nil || filepath.Base(whole) != layoutName {
		return nil, nil
	}
	root, err := os.OpenRoot(filepath.Dir(whole))
	if err != nil {
		return nil, nil
	}
	s := &source{root: root, used: make(map[string]bool)}
	var names []string
	for _, name := range settingsFiles() {
		if _, err := root.Lstat(name); err == nil {
			names = append(names, parentPrefix+name)
		}
	}
	return s, names
}

// loops exports the loops of a list of trees and returns the other trees.
func (x *exporter) loops(ctx context.Context, list []*exportTree) ([]*exportTree, error) {
	var own []loops.Own
	var records []perdure.Tree
	rest := slices.DeleteFunc(list, func(t *exportTree) bool {
		if loops.Belongs(&t.Tree) {
			records = append(records, t.Tree)
			return true
		}
		if x.cfg.Loop == nil {
			return false
		}
		l, is := x.cfg.Loop(&t.Tree)
		if is {
			own = append(own, l)
		}
		return is
	})
	if len(own)+len(records) == 0 {
		return rest, nil
	}
	var err error
	x.report.Exported, err = loops.Export(ctx, x.store, own, records, x.write)
	return rest, err
}
