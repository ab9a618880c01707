// Package evidence connects snapshots, package detect and test results: it runs detection
// over the files that changed between two snapshots, and decides which findings count
// together with the test results.
package evidence

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/workspace"
)

// maxBytes is the size of the largest file that is read; of larger ones only the size is
// compared.
const maxBytes = 4 << 20

// Between is a pair of snapshots and the changes from one to the other.
type Between struct {
	From, To workspace.ID
	Changes  []workspace.Change
}

// Run runs detection over the changed files. Files that configure checks are marked, others
// that are protected are not. Errors are those of the workspace, of the context, and
// *detect.LimitError.
func Run(ctx context.Context, files *workspace.Workspace, b *Between, in detect.Input) (*detect.Report, error) {
	in.Changes = func(yield func(detect.Change, error) bool) {
		for c, err := range Versions(ctx, files, b) {
			c.Configures, _ = project.Configures(c.New.Path, c.Old.Path)
			if !yield(c, err) {
				return
			}
		}
	}
	return detect.Run(ctx, &in)
}

// Versions yields the changed files with their content. They are read in groups, because
// each read checks for files that other processes wrote meanwhile.
func Versions(ctx context.Context, files *workspace.Workspace, b *Between) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) {
		for rest := b.Changes; len(rest) > 0; {
			n := some(rest)
			list, err := readChanges(ctx, files, b, rest[:n])
			if err != nil {
				yield(detect.Change{}, err)
				return
			}
			for _, c := range list {
				if !yield(c, nil) {
					return
				}
			}
			rest = rest[n:]
		}
	}
}

// some returns how many changes to read at once: a limited number of files and, except
// for the first, of bytes.
func some(changes []workspace.Change) int {
	const most, mostBytes = 64, 4 << 20
	bytes := int64(0)
	for i := range changes[:min(len(changes), most)] {
		for _, f := range []*workspace.File{changes[i].Old, changes[i].New} {
			if read(f) {
				bytes += f.Size
			}
		}
		if bytes > mostBytes {
			return max(i, 1)
		}
	}
	return min(len(changes), most)
}

func readChanges(ctx context.Context, files *workspace.Workspace, b *Between, changes []workspace.Change) (
	[]detect.Change, error) {
	list := make([]detect.Change, 0, len(changes)) // not reallocated, because the readings point into it
	var old, now reading
	for i := range changes {
		c := &changes[i]
		if folder(c.Old) && folder(c.New) {
			continue
		}
		list = append(list, detect.Change{Old: version(c.Old), New: version(c.New)})
		d := &list[len(list)-1]
		old.add(&d.Old, c.Old)
		now.add(&d.New, c.New)
	}
	if err := old.read(ctx, files, b.From); err != nil {
		return nil, err
	}
	return list, now.read(ctx, files, b.To)
}

// reading is a set of files to read from a snapshot, and where to store them.
type reading struct {
	paths []string
	to    []*detect.Version
}

func (r *reading) add(to *detect.Version, f *workspace.File) {
	if read(f) {
		r.paths, r.to = append(r.paths, f.Path), append(r.to, to)
	}
}

func (r *reading) read(ctx context.Context, files *workspace.Workspace, id workspace.ID) error {
	if len(r.paths) == 0 {
		return nil
	}
	next := 0
	return files.ReadFiles(ctx, id, r.paths, func(_ workspace.File, text []byte) error {
		r.to[next].Content = text
		next++
		return nil
	})
}

// ReadTrusted reads a file of a snapshot; nil if it does not exist or is not a regular file.
func ReadTrusted(ctx context.Context, files *workspace.Workspace, id workspace.ID, name string) ([]byte, error) {
	text, err := files.ReadFile(ctx, id, name)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	return text, err
}

func folder(f *workspace.File) bool { return f == nil || f.Kind == workspace.KindFolder }

// read reports whether the content of a file is read.
func read(f *workspace.File) bool {
	return f != nil && f.Kind == workspace.KindFile && f.Size <= maxBytes
}

// version returns a file without its content.
func version(f *workspace.File) detect.Version {
	switch {
	case folder(f):
		return detect.Version{}
	case f.Kind == workspace.KindLink:
		return detect.Version{Path: f.Path, Kind: detect.Link}
	case f.Kind != workspace.KindFile:
		return detect.Version{Path: f.Path, Kind: detect.Other}
	}
	return detect.Version{Path: f.Path, Size: f.Size}
}

// Acting returns the findings that are regressions, except for those about tests that ran
// in the baseline, whose fate the test results show. Results that list a test which the
// files no longer have are not trusted: they are forged or outdated. baseline and now may
// be nil.
func Acting(report *detect.Report, baseline, now *testreport.Report) []detect.Finding {
	if report == nil {
		return nil
	}
	ran, runs := names(baseline), names(now)
	for _, t := range report.Added {
		delete(runs, LastName(t.Name)) // it may be the added test
	}
	var acting []detect.Finding
	for _, f := range report.Findings {
		if f.Action != detect.Act {
			continue
		}
		name := LastName(f.Subject)
		switch {
		case ran[name] == 0 || f.Type != detect.TestDeletion && f.Type != detect.TestSkipping:
		case f.Type == detect.TestDeletion && runs[name] >= ran[name]:
			f.Message += ", but the test results list it as run"
		default:
			continue
		}
		acting = append(acting, f)
	}
	return acting
}

// names counts the tests' own names.
func names(report *testreport.Report) map[string]int {
	all := make(map[string]int)
	if report != nil {
		for i := range report.Tests {
			all[LastName(report.Tests[i].ID)]++
		}
	}
	return all
}

// LastName returns a test's own name, without its suites.
func LastName(id string) string {
	if i := strings.LastIndex(id, "::"); i >= 0 {
		id = id[i+2:]
	}
	if i := strings.LastIndex(id, " > "); i >= 0 {
		id = id[i+3:]
	}
	return id
}

// FindAgain removes lost tests that the files show under another name, and that ran under
// it or were removed with their subject: a renamed test is not deleted. report may be
// nil.
func FindAgain(d *testreport.Diff, report *detect.Report, now *testreport.Report) {
	if report == nil || len(report.Moved) == 0 || len(d.Lost) == 0 {
		return
	}
	runs := names(now)
	d.Lost = slices.DeleteFunc(slices.Clone(d.Lost), func(lost testreport.Change) bool {
		return slices.ContainsFunc(report.Moved, func(m detect.Moved) bool {
			same := LastName(lost.ID) == LastName(m.From.Name) &&
				(lost.File == "" || m.From.File == "" || lost.File == m.From.File)
			return same && (m.To.Name == "" || runs[LastName(m.To.Name)] > 0)
		})
	})
}

// Noted returns at most most findings without their diffs, those that block first. report
// may be nil.
func Noted(report *detect.Report, most int) []detect.Finding {
	if report == nil {
		return nil
	}
	list := slices.Clone(report.Findings)
	order := []detect.Action{detect.Act, detect.Warn, detect.Tell}
	slices.SortStableFunc(list, func(a, b detect.Finding) int {
		return slices.Index(order, a.Action) - slices.Index(order, b.Action)
	})
	list = list[:min(len(list), most)]
	for i := range list {
		list[i].Diff = "" // the record keeps the snapshots
	}
	return list
}

// Waive removes tests that a waiver covers: by their file, or because the finding about
// them in the files is waived. report may be nil.
func Waive(d *testreport.Diff, report *detect.Report, waivers []detect.Waiver, now time.Time) {
	for list, what := range map[*[]testreport.Change]struct {
		pattern string
		shown   detect.Type
	}{&d.Lost: {detect.ResultMissing, detect.TestDeletion}, &d.NewlySkipped: {detect.ResultSkipped, detect.TestSkipping},
		&d.NewlyFailing: {detect.ResultFailing, detect.TestFailure}} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(c testreport.Change) bool {
			f := detect.Finding{Pattern: what.pattern, File: c.File, Subject: c.ID}
			return Waived(&f, waivers, now) || report != nil && slices.ContainsFunc(report.Waived, func(w detect.Waived) bool {
				return w.Type == what.shown && LastName(w.Subject) == LastName(c.ID) && (c.File == "" || c.File == w.File)
			})
		})
	}
}

// Waived reports whether a waiver covers a finding.
func Waived(f *detect.Finding, waivers []detect.Waiver, now time.Time) bool {
	return slices.ContainsFunc(waivers, func(w detect.Waiver) bool { return !w.Expired(now) && w.Covers(f) })
}

// Unseen returns a message with the files that were not analysed and why, at most most by
// name; empty if there are none. Files that are never analysed are not listed.
func Unseen(report *detect.Report, most int) string {
	if report == nil {
		return ""
	}
	var all []string
	for _, s := range report.Skipped {
		if !s.Expected() {
			all = append(all, strings.TrimSpace(s.File+" ("+s.Why+")"))
		}
	}
	if len(all) == 0 {
		return ""
	}
	more := ""
	if n := len(all) - most; n > 0 {
		all, more = all[:most], fmt.Sprintf(" and %d more", n)
	}
	return "not analysed: " + strings.Join(all, ", ") + more
}
