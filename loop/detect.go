package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/testreport"
	"github.com/perdure/perdure/internal/workspace"
)

// maxFindings is how many findings a record keeps.
const maxFindings = 50

// detected looks for signs of regressions in the files that changed since the
// trusted snapshot: nil where nobody looks, or where there is too much to look at,
// which is told as a warning.
func (r *run) detected(ctx context.Context, out *Outcome, now workspace.ID) (*detect.Report, error) {
	if r.cfg.Plain || r.cfg.Detection == detect.Off {
		return nil, nil
	}
	changes, err := r.files.Diff(ctx, r.trusted(), now)
	if err != nil {
		return nil, refusal(err)
	}
	report, err := detect.Run(ctx, &detect.Input{Mode: r.cfg.Detection, Changes: r.versions(ctx, changes, now), Now: time.Now()})
	var limit *detect.LimitError
	if errors.As(err, &limit) {
		out.Warnings = append(out.Warnings, "the changed files were not looked at for signs of regressions: "+limit.Error())
		return nil, nil
	}
	return report, err
}

// versions are the changed files with what they hold.
func (r *run) versions(ctx context.Context, changes []workspace.Change, now workspace.ID) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) {
		for i := range changes {
			c := &changes[i]
			if folder(c.Old) && folder(c.New) {
				continue
			}
			var d detect.Change
			var err error
			if d.Old, err = r.version(ctx, r.trusted(), c.Old); err == nil {
				d.New, err = r.version(ctx, now, c.New)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

func folder(f *workspace.File) bool { return f == nil || f.Kind == workspace.KindFolder }

// version is a file with what it holds, unless it is too large to be looked at.
func (r *run) version(ctx context.Context, id workspace.ID, f *workspace.File) (detect.Version, error) {
	switch {
	case folder(f):
		return detect.Version{}, nil
	case f.Kind == workspace.KindLink:
		return detect.Version{Path: f.Path, Kind: detect.Link}, nil
	case f.Kind != workspace.KindFile:
		return detect.Version{Path: f.Path, Kind: detect.Other}, nil
	}
	text, err := r.content(ctx, id, f)
	return detect.Version{Path: f.Path, Content: text, Size: f.Size}, err
}

// signs are the regressions that the files show and the results of the tests do
// not: what became of a test that ran before is known from these.
func signs(report *detect.Report, baseline *testreport.Report) []Regression {
	if report == nil {
		return nil
	}
	ran := make(map[string]bool)
	if baseline != nil {
		for i := range baseline.Tests {
			ran[lastName(baseline.Tests[i].ID)] = true
		}
	}
	var all []Regression
	for i := range report.Findings {
		f := &report.Findings[i]
		aboutTest := f.Type == detect.TestDeletion || f.Type == detect.TestSkipping
		if f.Action != detect.Act || aboutTest && ran[lastName(f.Subject)] {
			continue
		}
		at := slices.IndexFunc(all, func(g Regression) bool { return g.Type == string(f.Type) })
		if at < 0 {
			all = append(all, Regression{Type: string(f.Type), Severity: string(f.Severity), Text: told(f)})
			at = len(all) - 1
		} else if g := &all[at]; len(g.Text) < 1000 {
			g.Text += "; " + told(f)
		}
		g := &all[at]
		g.Severity = worst([]Regression{*g, {Severity: string(f.Severity)}}).Severity
		if f.File != "" && !slices.Contains(g.Files, f.File) && len(g.Files) < maxFailing {
			g.Files = append(g.Files, f.File)
		}
	}
	return all
}

// told is a finding in words.
func told(f *detect.Finding) string {
	text := f.Message
	if f.Subject != "" && !strings.Contains(text, f.Subject) {
		text += ": " + f.Subject
	}
	if f.File != "" {
		text += fmt.Sprintf(" (%s:%d)", f.File, f.Line)
	}
	return text
}

// lastName is a test's own name, without its suites.
func lastName(id string) string {
	if i := strings.LastIndex(id, "::"); i >= 0 {
		id = id[i+2:]
	}
	if i := strings.LastIndex(id, " > "); i >= 0 {
		id = id[i+3:]
	}
	return id
}

// findAgain takes tests out of those that are lost which the files show under
// another name, or which went with what they tested: a test that was renamed is
// none that was deleted.
func findAgain(d *testreport.Diff, report *detect.Report, now *testreport.Report) {
	if report == nil || len(report.Moved) == 0 || len(d.Lost) == 0 {
		return
	}
	runs := make(map[string]bool)
	for i := range now.Tests {
		runs[lastName(now.Tests[i].ID)] = true
	}
	d.Lost = slices.DeleteFunc(slices.Clone(d.Lost), func(lost testreport.Change) bool {
		return slices.ContainsFunc(report.Moved, func(m detect.Moved) bool {
			same := lastName(lost.ID) == lastName(m.From.Name) && (lost.File == "" || m.From.File == "" || lost.File == m.From.File)
			return same && (m.To.Name == "" || runs[lastName(m.To.Name)])
		})
	})
}

// noted are the findings that a record keeps: those that act first.
func noted(report *detect.Report) []detect.Finding {
	if report == nil {
		return nil
	}
	list := slices.Clone(report.Findings)
	order := []detect.Action{detect.Act, detect.Warn, detect.Tell}
	slices.SortStableFunc(list, func(a, b detect.Finding) int { return slices.Index(order, a.Action) - slices.Index(order, b.Action) })
	return list[:min(len(list), maxFindings)]
}
