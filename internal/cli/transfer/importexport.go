package transfer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/export"
)

// isExport reports whether a path is that of an export of a tree. A path that cannot be read is
// none: the command reports why.
func (c *commands) isExport(path string) bool {
	file, err := c.openRegular(path)
	if err != nil {
		return false
	}
	defer file.Close()
	is, err := export.IsExport(file)
	return err == nil && is
}

// exportReport is the result of the import of an export.
type exportReport struct {
	Path   string `json:"path"`
	DryRun bool   `json:"dry_run"`
	export.Imported
}

// importExport imports an export of a tree as a record, also while a daemon runs.
func (c *commands) importExport(ctx context.Context, l *config.Loaded, path string, f *importFlags) error {
	file, err := c.openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	report := exportReport{Path: path, DryRun: f.dryRun}
	l, forget, err := c.temporary(l, f.dryRun)
	if err != nil {
		return err
	}
	defer forget()
	err = c.WithStore(ctx, l, true, func(store *perdure.Store) (err error) {
		cfg := export.ImportConfig{Store: store, File: file, DryRun: f.dryRun}
		report.Imported, err = export.Import(ctx, cfg)
		return err
	})
	if err != nil {
		return err
	}
	return c.Print(&report, func() { c.printExport(&report) })
}

func (c *commands) printExport(r *exportReport) {
	has := human.Count(r.Tasks, "task") + ", " + human.Count(r.Calls, "call") + ", " + human.Count(r.Files, "file") +
		" of context (" + human.Size(r.Bytes) + ")"
	switch {
	case r.DryRun:
		c.Printf("would import %s\n", has)
	case r.Present && r.Added == 0:
		c.Printf("already present: %s\n", r.Tree)
	case r.Present:
		c.Printf("completed %s by %s: %s\n", r.Tree, human.Count(r.Added, "task"), has)
	default:
		c.Printf("imported %s: %s\n", r.Tree, has)
	}
	var left []string
	for _, kind := range slices.Sorted(maps.Keys(r.Left)) {
		if kind == "event" { // they are of the other store
			continue
		}
		left = append(left, human.Count(r.Left[kind], strings.ReplaceAll(kind, "_", " ")))
	}
	if len(left) > 0 {
		c.Note("in the file only, a record has no place for them: %s", human.Visible(strings.Join(left, ", ")))
	}
}
