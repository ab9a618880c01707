package cleancheck

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
)

// A test that was edited is no regression, and one of the baseline that fails on
// what was asked for is none either. What counts is a test that asserts less than
// it did, and whose baseline version fails where the new one passes:
//
//   - an assertion accepts more than it did, or is skipped or swallowed, and the
//     baseline's version fails;
//   - an expected value, what a test compares with (a fixture) or what it calls (a
//     mock) was changed, or it asserts something else, the baseline's version fails,
//     and the test failed in the baseline: it was to be mended, and its expectation
//     was instead. Where it passed in the baseline, the change is taken for what was
//     asked: in ordinary work behaviour that changes takes its assertions along.
//
// Which tests these are is what package detect found and did not let act. The
// baseline's versions of their files are laid over; of these files no other test
// counts, so that tests that were rewritten for another API are no trouble. What does
// not build, or fails because names or signatures do not fit, is noted.

// suspect is a file of the baseline with tests that were weakened.
type suspect struct {
	file string
	// name is that of the test; empty when any test may be meant.
	name string
	// mended tells that only tests count that failed in the baseline.
	mended bool
	why    string
}

// mendedOnly tells of findings that show another expectation, which may be what was
// asked for. So does one that is said to be computed and has a value
// in it all the same: 0 or nil tell package detect nothing.
func mendedOnly(f *detect.Finding) bool {
	_, now, _ := strings.Cut(f.Evidence, " became ")
	return f.Pattern == "expected-changed" || f.Pattern == "assertion-lost" || f.Pattern == "subject-mocked" ||
		f.Pattern == "expected-computed" && values().MatchString(now)
}

// values are literals in the languages' common forms.
var values = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[\\d\"'`]|\\b(?:true|false|nil|null|undefined|None|True|False)\\b")
})

// overlay lays the baseline's tests over a candidate that passed, if some were
// weakened.
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

// held are the files that the clean copy had besides.
func (s *sealing) held() []workspace.Beside {
	if s.v.State != Partly {
		return nil
	}
	return s.drift.heldFiles()
}

// suspects lists the tests of the baseline to look at.
func (s *sealing) suspects(now *testreport.Report) []suspect {
	if s.c.Found == nil || now == nil {
		return nil
	}
	before, is := leaves(s.c.Baseline.Report), leaves(now)
	mended := s.mended(now)
	var all []suspect
	add := func(p suspect) {
		mends := slices.ContainsFunc(mended, func(id string) bool { return p.name == "" || leaf(id) == p.name })
		fresh := p.name != "" && is[p.name] && !before[p.name] && !mends // none of the baseline's
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
		if file := firstOf(c.From, c.Path); c.Old != nil && c.Old.Kind == workspace.KindFile &&
			project.Classify(file).Class == project.Snapshot {
			add(suspect{file: file, mended: true, why: "what tests compare with was changed"})
		}
	}
	return all
}

// mended are the tests that failed in the baseline, or whose suite could not run,
// and pass now.
func (s *sealing) mended(now *testreport.Report) []string {
	if s.c.Baseline.Report == nil {
		return nil
	}
	before := make(map[string]testreport.Outcome)
	for i := range s.c.Baseline.Report.Tests {
		before[s.c.Baseline.Report.Tests[i].ID] = s.c.Baseline.Report.Tests[i].Outcome
	}
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

// laid says which files of the baseline are laid over, and which of the candidate's
// go for them: a test file under another name would have the same tests twice.
func (s *sealing) laid(all []suspect) (put, drop []string) {
	byPath := make(map[string]*workspace.Change)
	for i := range s.c.Since.Changes {
		byPath[s.c.Since.Changes[i].Path] = &s.c.Since.Changes[i]
	}
	for _, p := range all {
		c := byPath[p.file]
		switch {
		case c == nil: // where it was, of a renamed one
			put = append(put, p.file)
			for _, c := range byPath {
				if c.From == p.file {
					drop = append(drop, c.Path)
				}
			}
		case c.Kind != workspace.Added:
			put = append(put, firstOf(c.From, c.Path))
			if c.From != "" {
				drop = append(drop, c.Path)
			}
		default: // renamed and edited: it takes the place of one that went
			for _, gone := range byPath {
				if gone.Kind == workspace.Deleted && path.Ext(gone.Path) == path.Ext(p.file) &&
					project.Classify(gone.Path).Class == project.TestFile {
					put, drop = append(put, gone.Path), append(drop, p.file)
				}
			}
		}
	}
	slices.Sort(put)
	return slices.Compact(put), drop
}

// lay puts files of the baseline into a copy.
func (s *sealing) lay(ctx context.Context, at *Place, put, drop []string) error {
	for _, name := range drop {
		if err := os.Remove(filepath.Join(at.Root, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := s.Files.CopyTo(ctx, s.c.Since.From, at.Root, put)
	return err
}

// judge compares a run with the baseline's tests with one without.
func (s *sealing) judge(all []suspect, clean *testreport.Report, over *outcome) {
	if over.problem != "" || over.Report == nil {
		s.note("the baseline's tests cannot be laid over the work: " + firstOf(over.problem, human.LastLine(over.Output)))
		return
	}
	passed := make(map[string]bool)
	for i := range clean.Tests {
		passed[clean.Tests[i].ID] = clean.Tests[i].Outcome == testreport.Passed
	}
	mended := s.mended(clean)
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
		case reason == "" || !t.Outcome.Fails() || t.Flaky || !passed[t.ID]:
		case misfits().MatchString(t.Message):
			misfit = append(misfit, t.ID)
		default:
			failing, why = append(failing, t.ID), firstOf(why, reason)
		}
	}
	for i := range over.Report.Broken {
		misfit = append(misfit, over.Report.Broken[i].Suite)
	}
	if len(misfit) > 0 {
		s.note("tests of the baseline that were weakened do not build or do not fit any more: " + some(misfit))
	}
	if len(failing) > 0 {
		s.failed(detect.AssertionWeakening, "the baseline's tests, laid over the work, fail where the edited ones pass ("+
			why+"): "+some(failing), failing, s.v.Overlay)
	}
}

func (s *sealing) note(text string) { s.v.Notes = append(s.v.Notes, text) }

// misfits are messages of tests that call what has another name or signature now.
var misfits = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?m)^\s*(?:E\s+|message:\s*[|'"]?\s*)?(?:TypeError|AttributeError|NameError|ImportError|ModuleNotFoundError|ReferenceError|SyntaxError|NoMethodError|ArgumentError|` +
			`[\w.]*NoSuchMethodError|Error: Cannot find module|Error: Call to undefined)\b`)
})

// leaf is a test's own name: without its suites, its parameters and its subtests.
func leaf(id string) string {
	if i := strings.LastIndex(id, "::"); i >= 0 {
		id = id[i+2:]
	}
	if i := strings.LastIndex(id, " > "); i >= 0 {
		id = id[i+3:]
	}
	if i := strings.IndexAny(id, "[/"); i > 0 {
		id = id[:i]
	}
	return id
}

// leaves are the tests' own names.
func leaves(r *testreport.Report) map[string]bool {
	all := make(map[string]bool)
	if r != nil {
		for i := range r.Tests {
			all[leaf(r.Tests[i].ID)] = true
		}
	}
	return all
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
