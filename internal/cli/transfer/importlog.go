package transfer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

// isLog reports whether a file is a log of a recursive language model, by its name or its beginning.
func (c *commands) isLog(path string) bool {
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	if filepath.Ext(name) == ".jsonl" {
		return true
	}
	info, err := os.Stat(c.Path(path)) // before opening it, which waits for a writer on a pipe
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(c.Path(path))
	if err != nil {
		return false
	}
	defer file.Close()
	return rlm.IsLog(file)
}

// logReport is the result of the import of a log.
type logReport struct {
	Path   string `json:"path"`
	DryRun bool   `json:"dry_run"`
	rlm.LogRecord
	// Others are the records of the other runs of the log.
	Others []rlm.LogRecord `json:"others,omitempty"`
}

// openRegular opens a file to import.
func (c *commands) openRegular(path string) (*os.File, error) {
	info, err := os.Stat(c.Path(path)) // before opening it, which waits for a writer on a pipe
	if err != nil {
		return nil, env.NotFound("", "import: no file %q", path)
	}
	if !info.Mode().IsRegular() {
		return nil, env.UsageError("", "import: %q is not a regular file", path)
	}
	file, err := os.Open(c.Path(path))
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return file, nil
}

// importLog imports a log as a record, also while a daemon runs.
func (c *commands) importLog(ctx context.Context, l *config.Loaded, path string, f *importFlags) error {
	file, err := c.openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	report := logReport{Path: path, DryRun: f.dryRun}
	l, forget, err := c.temporary(l, f.dryRun)
	if err != nil {
		return err
	}
	defer forget()
	err = c.WithStore(ctx, l, true, func(store *perdure.Store) error {
		p := &rlm.LogImport{Store: store, Log: file, DryRun: f.dryRun, Strict: f.strict}
		all, err := p.Import(ctx)
		if len(all) > 0 {
			report.LogRecord, report.Others = all[0], all[1:]
		}
		return err
	})
	if err != nil {
		return err
	}
	all := append([]rlm.LogRecord{report.LogRecord}, report.Others...)
	err = c.Print(&report, func() {
		for i := range all {
			if len(all) > 1 {
				c.Printf("run %d (from line %d): ", i+1, all[i].Line)
			}
			c.printLog(&report, &all[i])
		}
	})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(r rlm.LogRecord) bool { return r.Refused }) {
		return &env.Exit{Status: env.StatusConflict}
	}
	return nil
}

// printLog prints what was imported of a run, and what has no place in it.
func (c *commands) printLog(report *logReport, r *rlm.LogRecord) {
	has := fmt.Sprintf("%s, %s", human.Count(r.Turns, "turn"), human.Count(r.SubCalls, "sub-call"))
	switch {
	case r.Refused:
		c.Printf("nothing was imported: --strict refuses what was corrected\n")
	case report.DryRun:
		c.Printf("would import %s\n", has)
	case r.Present && r.Tasks == 0:
		c.Printf("already present: %s, %s\n", r.Tree, has)
	case r.Present:
		c.Printf("completed %s by %s: %s\n", r.Tree, human.Count(r.Tasks, "task"), has)
	default:
		c.Printf("imported %s: %s\n", r.Tree, has)
	}
	for _, corrected := range []bool{true, false} {
		title := "corrected"
		if !corrected {
			title = "kept without a place of their own"
		}
		shown := 0
		for _, n := range r.Notes {
			if n.Corrected != corrected {
				continue
			}
			if shown++; shown == 1 {
				c.Printf("\n%s:\n", c.Out.Bold(title))
			}
			if shown <= shownNotes {
				c.Printf("  %s:%d: %s\n", report.Path, n.Line, human.Visible(n.Message))
			}
		}
		if shown > shownNotes {
			c.Printf("  … and %d more; --json lists all\n", shown-shownNotes)
		}
	}
}
