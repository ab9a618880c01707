// Package evidence brings together what snapshots hold, what package detect sees in
// it, and what results of tests say.
package evidence

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/workspace"
)

// maxBytes is the largest file that is read; larger ones are told by their size.
const maxBytes = 4 << 20

// Between are two snapshots, and what changed from one to the other.
type Between struct {
	From, To workspace.ID
	Changes  []workspace.Change
}

// Run looks for signs of regressions in the files that changed. Errors are those of
// the workspace, of the context, and *detect.LimitError.
func Run(ctx context.Context, files *workspace.Workspace, b *Between, in detect.Input) (*detect.Report, error) {
	in.Changes = Versions(ctx, files, b)
	return detect.Run(ctx, &in)
}

// Versions are the changed files with what they hold. They are read some at a time:
// each reading looks for what others have written meanwhile.
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

// some is how many changes are read at a time: a bounded number of files and, but
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
	list := make([]detect.Change, 0, len(changes)) // never moved: the readings point into it
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

// reading is what is read of a snapshot, and where to.
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

// ReadTrusted reads a file of a snapshot; nil when it is not there, or no regular
// file.
func ReadTrusted(ctx context.Context, files *workspace.Workspace, id workspace.ID, name string) ([]byte, error) {
	text, err := files.ReadFile(ctx, id, name)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	return text, err
}

func folder(f *workspace.File) bool { return f == nil || f.Kind == workspace.KindFolder }

// read tells whether the content of a file is looked at.
func read(f *workspace.File) bool {
	return f != nil && f.Kind == workspace.KindFile && f.Size <= maxBytes
}

// version is a file without what it holds.
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

// Acting are the findings that are regressions, but for those about tests that ran
// in the baseline: what became of them is known from results. Results are not taken
// at their word when they list a test that the files show to be gone: they are
// forged, or left from another time. baseline and now may be nil.
func Acting(report *detect.Report, baseline, now *testreport.Report) []detect.Finding {
	if report == nil {
		return nil
	}
	ran, runs := names(baseline), names(now)
	for _, t := range report.Added {
		delete(runs, lastName(t.Name)) // it may be that one
	}
	var acting []detect.Finding
	for _, f := range report.Findings {
		if f.Action != detect.Act {
			continue
		}
		name := lastName(f.Subject)
		switch {
		case ran[name] == 0 || f.Type != detect.TestDeletion && f.Type != detect.TestSkipping:
		case f.Type == detect.TestDeletion && runs[name] >= ran[name]:
			f.Message += ", and the results list it as if it had run"
		default:
			continue
		}
		acting = append(acting, f)
	}
	return acting
}

// names are the tests' own names, and how often each is there.
func names(report *testreport.Report) map[string]int {
	all := make(map[string]int)
	if report != nil {
		for i := range report.Tests {
			all[lastName(report.Tests[i].ID)]++
		}
	}
	return all
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

// FindAgain takes tests out of those that are lost which the files show under
// another name, and which ran under it, or which went with what they tested: a
// test that was renamed is none that was deleted. report may be nil.
func FindAgain(d *testreport.Diff, report *detect.Report, now *testreport.Report) {
	if report == nil || len(report.Moved) == 0 || len(d.Lost) == 0 {
		return
	}
	runs := names(now)
	d.Lost = slices.DeleteFunc(slices.Clone(d.Lost), func(lost testreport.Change) bool {
		return slices.ContainsFunc(report.Moved, func(m detect.Moved) bool {
			same := lastName(lost.ID) == lastName(m.From.Name) &&
				(lost.File == "" || m.From.File == "" || lost.File == m.From.File)
			return same && (m.To.Name == "" || runs[lastName(m.To.Name)] > 0)
		})
	})
}

// Noted are at most so many findings, those that act first. report may be nil.
func Noted(report *detect.Report, most int) []detect.Finding {
	if report == nil {
		return nil
	}
	list := slices.Clone(report.Findings)
	order := []detect.Action{detect.Act, detect.Warn, detect.Tell}
	slices.SortStableFunc(list, func(a, b detect.Finding) int {
		return slices.Index(order, a.Action) - slices.Index(order, b.Action)
	})
	return list[:min(len(list), most)]
}

// Patterns of what results of tests prove, by which waivers name them.
const (
	patternMissing = "test-missing"
	patternSkipped = "test-newly-skipped"
	patternFailing = "test-newly-failing"
)

// Waive takes tests out of those that are worse which a waiver is about: by their
// file, or because what the files show of them is waived. report may be nil.
func Waive(d *testreport.Diff, report *detect.Report, waivers []detect.Waiver, now time.Time) {
	for list, what := range map[*[]testreport.Change]struct {
		pattern string
		shown   detect.Type
	}{&d.Lost: {patternMissing, detect.TestDeletion}, &d.NewlySkipped: {patternSkipped, detect.TestSkipping},
		&d.NewlyFailing: {patternFailing, detect.TestFailure}} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(c testreport.Change) bool {
			f := detect.Finding{Pattern: what.pattern, File: c.File, Subject: c.ID}
			return Waived(&f, waivers, now) || report != nil && slices.ContainsFunc(report.Waived, func(w detect.Waived) bool {
				return w.Type == what.shown && lastName(w.Subject) == lastName(c.ID) && (c.File == "" || c.File == w.File)
			})
		})
	}
}

// Waived tells whether a waiver takes a finding away.
func Waived(f *detect.Finding, waivers []detect.Waiver, now time.Time) bool {
	return slices.ContainsFunc(waivers, func(w detect.Waiver) bool { return !w.Expired(now) && w.Covers(f) })
}

// Unseen says which files were not analysed and why, at most so many by name; empty
// when all were. Binary files that never held tests are of no interest, nor is other
// projects' code.
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
	return "not looked at for signs of regressions: " + strings.Join(all, ", ") + more
}
