package cleancheck

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
)

// An edited test is not a regression, and a baseline test that fails because of the
// requested change is none either. A test counts if it asserts less than before and its
// baseline version fails where the new one passes:
//
// - an assertion accepts more than before, or is skipped or swallowed;
// - an expected value, a fixture or a mock was changed, or the test asserts something
// else, and the test failed in the baseline: the expectation was changed instead of the
// code. If it passed in the baseline, the change counts as requested.
//
// The tests are those for which package detect has findings that do not block. The
// baseline's versions of their files replace the current ones; other tests in these files
// do not count, so that tests rewritten for another API cause no findings. Tests that do
// not build, or fail because names or signatures changed, are noted.

// suspect is a baseline file with weakened tests.
type suspect struct {
	file string
	// name is the name of the test; empty if it may be any test of the file.
	name string
	// mended is set if only tests count that failed in the baseline.
	mended bool
	why    string
}

// mendedOnly reports whether a finding shows a changed expectation, which may have been
// requested. A finding of a computed expectation counts if it contains a value, because
// package detect ignores 0 and nil.
func mendedOnly(f *detect.Finding) bool {
	_, now, _ := strings.Cut(f.Evidence, " became ")
	return f.Pattern == "expected-changed" || f.Pattern == "assertion-lost" || f.Pattern == "subject-mocked" ||
		f.Pattern == "expected-computed" && values().MatchString(now)
}

// values matches literals in common forms.
var values = lazyregexp.New("[\\d\"'`]|\\b(?:true|false|nil|null|undefined|None|True|False)\\b")

// overlay runs a candidate that passed with the baseline's tests, if some were weakened.
func (s *sealing) overlay(ctx context.Context, clean *outcome) error {
	all := s.suspects(clean.Report)
	if len(all) == 0 || clean.Report == nil {
		return nil
	}
	put, drop := s.laid(all)
	if len(put) == 0 {
		return nil
	}
	over, err := s.run(ctx, s.c.Of, clean.Report, func(at *Place) error { return s.lay(ctx, at, put, drop) },
		slices.Concat(s.drift.same, s.held()))
	if err != nil {
		return err
	}
	s.v.Overlay = put[:min(len(put), maxNamed)]
	s.judge(all, clean.Report, over)
	return nil
}

// held returns the additional files of the clean copy.
func (s *sealing) held() []workspace.Excluded {
	if s.v.State != Partly {
		return nil
	}
	return s.drift.heldFiles()
}

// suspects returns the baseline tests to check.
func (s *sealing) suspects(now *testreport.Report) []suspect {
	if s.c.Found == nil || now == nil {
		return nil
	}
	before, is := leaves(s.c.Baseline.Report), leaves(now)
	mended := s.mended(now)
	var all []suspect
	add := func(p suspect) {
		mends := slices.ContainsFunc(mended, func(id string) bool { return p.name == "" || leaf(id) == p.name })
		fresh := p.name != "" && is[p.name] && !before[p.name] && !mends // not a baseline test
		if !fresh && (mends || !p.mended) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for i := range s.c.Found.Findings {
		f := &s.c.Found.Findings[i]
		if f.Type != detect.AssertionWeakening && f.Type != detect.TestSkipping {
			continue
		}
		name := leaf(f.Subject)
		if !before[name] && !is[name] {
			name = "" // a function that tests call
		}
		add(suspect{file: f.File, name: name, mended: mendedOnly(f), why: f.Message})
	}
	for i := range s.c.Since.Changes {
		c := &s.c.Since.Changes[i]
		if file := cmp.Or(c.From, c.Path); c.Old != nil && c.Old.Kind == workspace.KindFile &&
			project.Classify(file).Class == project.Snapshot {
			add(suspect{file: file, mended: true, why: "fixture changed"})
		}
	}
	return all
}

// mended returns the tests that failed in the baseline, or whose suite could not run, and
// that pass now.
func (s *sealing) mended(now *testreport.Report) []string {
	if s.c.Baseline.Report == nil {
		return nil
	}
	before := outcomes(s.c.Baseline.Report)
	broken := func(suite string) bool {
		return slices.ContainsFunc(s.c.Baseline.Report.Broken,
			func(b testreport.Broken) bool { return b.Suite == "" || b.Suite == suite })
	}
	var ids []string
	for i := range now.Tests {
		t := &now.Tests[i]
		was, known := before[t.ID]
		if t.Outcome == testreport.Passed && (known && was.Fails() || !known && broken(t.Suite)) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// laid returns the baseline files to copy, and the candidate's files to remove for them:
// a renamed test file would contain the same tests twice.
func (s *sealing) laid(all []suspect) (put, drop []string) {
	byPath := make(map[string]*workspace.Change)
	for i := range s.c.Since.Changes {
		byPath[s.c.Since.Changes[i].Path] = &s.c.Since.Changes[i]
	}
	for _, p := range all {
		c := byPath[p.file]
		switch {
		case c == nil: // the old path of a renamed file
			put = append(put, p.file)
			for _, c := range byPath {
				if c.From == p.file {
					drop = append(drop, c.Path)
				}
			}
		case c.Kind != workspace.Added:
			put = append(put, cmp.Or(c.From, c.Path))
			if c.From != "" {
				drop = append(drop, c.Path)
			}
		default: // renamed and edited: it replaces a removed file
			for _, removed := range byPath {
				if removed.Kind == workspace.Deleted && path.Ext(removed.Path) == path.Ext(p.file) &&
					project.Classify(removed.Path).Class == project.TestFile {
					put, drop = append(put, removed.Path), append(drop, p.file)
				}
			}
		}
	}
	slices.Sort(put)
	return slices.Compact(put), drop
}

// lay copies files of the baseline into a copy.
func (s *sealing) lay(ctx context.Context, at *Place, put, drop []string) error {
	for _, name := range drop {
		full := filepath.Join(at.Root, filepath.FromSlash(name))
		if err := os.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := path.Dir(name); dir != "." && os.Remove(filepath.Join(at.Root, filepath.FromSlash(dir))) == nil; {
			dir = path.Dir(dir) // an empty folder can be a package, too
		}
	}
	if len(put) == 0 {
		return nil // none is all
	}
	for _, name := range put {
		if err := makeRoom(at.Root, name); err != nil {
			return err
		}
	}
	_, err := s.Files.CopyTo(ctx, s.c.Since.From, at.Root, put)
	return err
}

// makeRoom removes what is of another kind than a file in a folder needs: a file or a link in the
// place of one of its folders, and a folder in its own place.
func makeRoom(root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(name[:i]))
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return os.Remove(dir)
		}
	}
	full := filepath.Join(root, filepath.FromSlash(name))
	if info, err := os.Lstat(full); err == nil && info.IsDir() {
		return removeAll(full)
	}
	return nil
}

// judge compares a run with the baseline's tests with one without.
func (s *sealing) judge(all []suspect, clean *testreport.Report, over *outcome) {
	if over.problem != "" || over.Report == nil {
		s.note("run with the baseline's tests impossible: " + cmp.Or(over.problem, clip.LastLine(over.Output)))
		return
	}
	before, mended := outcomes(clean), s.mended(clean)
	suspected := func(id string) string {
		i := slices.IndexFunc(all, func(p suspect) bool {
			return (p.name == "" || p.name == leaf(id)) && (!p.mended || slices.Contains(mended, id))
		})
		if i < 0 {
			return ""
		}
		return all[i].why
	}
	var failing, misfit []string
	var why string
	for i := range over.Report.Tests {
		t := &over.Report.Tests[i]
		reason := suspected(t.ID)
		switch {
		case reason == "" || !t.Outcome.Fails() || t.Flaky || before[t.ID] != testreport.Passed:
		case misfits().MatchString(t.Message):
			misfit = append(misfit, t.ID)
		default:
			failing, why = append(failing, t.ID), cmp.Or(why, reason)
		}
	}
	for i := range over.Report.Broken {
		misfit = append(misfit, over.Report.Broken[i].Suite)
	}
	if len(misfit) > 0 {
		s.note("weakened tests whose baseline version no longer builds or fits: " + some(misfit))
	}
	if len(failing) > 0 {
		s.failed(detect.AssertionWeakening, "the baseline's tests fail where the edited ones pass ("+
			why+"): "+some(failing), failing, s.v.Overlay)
	}
}

func (s *sealing) note(text string) { s.v.Notes = append(s.v.Notes, text) }

// misfits matches messages of tests that call something whose name or signature changed.
var misfits = lazyregexp.New(`(?m)^\s*(?:E\s+|message:\s*[|'"]?\s*)?` +
	`(?:TypeError|AttributeError|NameError|ImportError|ModuleNotFoundError|ReferenceError|SyntaxError|` +
	`NoMethodError|ArgumentError|[\w.]*NoSuchMethodError|Error: Cannot find module|Error: Call to undefined)\b`)

// leaf returns a test's own name, without suites, parameters and subtests.
func leaf(id string) string {
	id = evidence.LastName(id)
	if i := strings.IndexAny(id, "[/"); i > 0 {
		return id[:i]
	}
	return id
}

// outcomes returns the outcomes of tests by ID.
func outcomes(r *testreport.Report) map[string]testreport.Outcome {
	all := make(map[string]testreport.Outcome, len(r.Tests))
	for i := range r.Tests {
		all[r.Tests[i].ID] = r.Tests[i].Outcome
	}
	return all
}

// leaves returns the tests' own names.
func leaves(r *testreport.Report) map[string]bool {
	all := make(map[string]bool)
	if r != nil {
		for i := range r.Tests {
			all[leaf(r.Tests[i].ID)] = true
		}
	}
	return all
}
