package detect

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect/checkconfig"
	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Type is the kind of regression.
type Type string

// Types of findings. Package detect reports no TestFailure and RunIncomplete: callers that
// compare test results do.
const (
	TestDeletion       Type = "test_deletion"
	TestSkipping       Type = "test_skipping"
	AssertionWeakening Type = "assertion_weakening"
	CoverageRegression Type = "coverage_regression"
	ValidationBypass   Type = "validation_bypass"
	ErrorSuppression   Type = "error_suppression"
	FeatureRemoval     Type = "feature_removal"
	TestFailure        Type = "test_failure"
	RunIncomplete      Type = "run_incomplete"
	ProtectedChange    Type = "protected_change"
)

// Tier is the strength of the evidence for a finding.
type Tier int

// Tiers of evidence.
const (
	Fact Tier = 1 // has no innocent explanation
	Sign Tier = 2 // strong, but the change may have a good reason
	Hint Tier = 3 // worth a review
)

// Severity is how bad a finding is.
type Severity string

// Severities of findings.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
)

// Mode decides which findings block.
type Mode string

// Modes of detection. The zero value is Standard.
const (
	// Off detects nothing.
	Off Mode = "off"
	// Minimal blocks on facts; signs warn.
	Minimal Mode = "minimal"
	// Standard blocks on facts, and on signs with a confidence of at least ActConfidence;
	// other signs warn.
	Standard Mode = "standard"
	// Aggressive blocks on facts and all signs; hints warn.
	Aggressive Mode = "aggressive"
)

// ActConfidence is the confidence from which a sign blocks in Standard mode.
const ActConfidence = 0.8

// Action is the effect of a finding in the mode of the run.
type Action string

// Actions of findings.
const (
	Act  Action = "act"  // blocks: a regression
	Warn Action = "warn" // warns, and does not block
	Tell Action = "tell" // is listed
)

// Verdict sums up a report.
type Verdict string

// Verdicts of a report: Block if a finding blocks, else Warns if one warns.
const (
	Allow Verdict = "ALLOW"
	Warns Verdict = "WARN"
	Block Verdict = "BLOCK"
)

// Kind is the kind of file at a path.
type Kind string

// Kinds of files; the zero value is a regular file.
const (
	Regular Kind = ""
	Link    Kind = "link"
	Other   Kind = "other" // a nested repository or a device
)

// Version is a file before or after the change.
type Version struct {
	// Path is relative to the workspace, with slashes; empty if the file does not exist in
	// this version (it was added or deleted).
	Path string
	// Kind is the kind of the file; only regular files are read.
	Kind Kind
	// Content is the text of the file. If it is nil and Size is above zero, the file was
	// too large to read.
	Content []byte
	// Size is the size in bytes, used when Content is nil.
	Size int64
}

// Change is one changed file. The paths of the versions differ if the file was renamed. A
// caller that does not follow renames passes a deletion and an addition, which are
// matched by their content.
type Change struct {
	Old, New Version
	// Protected is the reason why any change of the file blocks; empty if it does not.
	Protected string
	// Configures is the class of a file that configures checks, of which changes that make
	// them weaker block; empty for others.
	Configures project.Class
	// Fixture is set for files that tests read or compare with. Paths with a folder named
	// testdata, fixtures, __snapshots__ or golden count as fixtures without it.
	Fixture bool
}

// path returns the path under which a change is reported.
func (c *Change) path() string { return cmp.Or(c.New.Path, c.Old.Path) }

// Input is the input of Run.
type Input struct {
	// Mode decides which findings block; empty is Standard.
	Mode Mode
	// Changes are the changed files in any order, read once. An error ends the run.
	Changes iter.Seq2[Change, error]
	// Rules are the user's settings and custom patterns; may be nil.
	Rules *Rules
	// Waivers remove findings. They must come from a source that the agent cannot write.
	Waivers []Waiver
	// Now is compared with the expiry of waivers; with the zero value none expires.
	Now time.Time
	// Limits bound what is read; zero values take the defaults.
	Limits Limits
}

// Finding is one sign of a regression.
type Finding struct {
	Type     Type     `json:"type"`
	Tier     Tier     `json:"tier"`
	Severity Severity `json:"severity"`
	// Pattern is the ID of a pattern of Catalog or of a custom pattern.
	Pattern string `json:"pattern"`
	File    string `json:"file"`
	// Line begins with 1 and is 0 if there is none. It is a line of the old version if Gone
	// is set.
	Line int  `json:"line"`
	Gone bool `json:"gone,omitempty"`
	// Subject is the test or symbol that the finding is about; may be empty.
	Subject string `json:"subject,omitempty"`
	// Message is what happened, Evidence the code that shows it, at most 200 bytes.
	Message  string `json:"message"`
	Evidence string `json:"evidence"`
	// Diff is the change that shows it, as a hunk of a unified diff; empty if there is none.
	Diff string `json:"diff,omitempty"`
	// Change identifies the change where the evidence does not. Repeat counts the findings
	// before it in the file that are otherwise the same.
	Change string `json:"change,omitempty"`
	Repeat int    `json:"repeat,omitempty"`
	// Confidence is between 0 and 1.
	Confidence float64 `json:"confidence"`
	Action     Action  `json:"action"`
}

// Skipped is a version of a file, or a part of the work, that was not analysed.
type Skipped struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Expected reports whether the file is of a kind that is never analysed: binary files,
// links, and copies of other projects' code.
func (s *Skipped) Expected() bool {
	return slices.Contains([]string{whyBinary, whyVendored, whyLink, whyOther}, strings.TrimPrefix(s.Why, "baseline: "))
}

// Moved is a baseline test that was found again under another name or in another place.
// Comparing test results by name, treat both as the same test.
type Moved struct {
	From TestName `json:"from"`
	To   TestName `json:"to"`
	How  string   `json:"how"` // moved, renamed, merged or obsolete (then To is empty)
}

// TestName identifies a test.
type TestName struct {
	File string `json:"file"`
	// Name includes the suites, separated by " > ".
	Name string `json:"name"`
}

// Report is the result of Run.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
	// Waived are the findings that a waiver removed.
	Waived []Waived `json:"waived,omitempty"`
	// Unused are the waivers that have not expired and removed nothing.
	Unused  []Waiver  `json:"-"`
	Skipped []Skipped `json:"skipped"`
	Moved   []Moved   `json:"moved,omitempty"`
	// Added are new tests that match no baseline test.
	Added []TestName `json:"-"`
	// Files is the number of changes read.
	Files int `json:"files"`
}

// run is the state of one Run.
type run struct {
	in     *Input
	limits Limits
	pairs  []*pair
	report *Report
	// configs are the changed files that configure checks.
	configs []checkconfig.File
	seen    map[string]bool      // keys of findings, to report each once
	change  map[string]*material // by language; see match.go
	// lostMarks counts the marks that files lost, by pattern and text; nil until needed.
	lostMarks map[string]int
	// said are the word stems that documents of the change added; nil until needed.
	said multiset.Hashes
	// words are the words of compared test names; see names.go.
	words map[string][]string
	// compared counts comparisons of removed with added functions.
	compared int
	// kept are the bytes of the contents that are kept, diffs counts the compared files.
	kept  int64
	diffs int
	// tests pairs each baseline test with its new version, in the order of the files.
	tests []testPair
}

// Run compares two versions of the changed files. The result depends only on the input;
// findings are ordered by file and line. Errors are those of Changes and of the context,
// an unknown mode, and *LimitError; the content of files causes none. Time and memory are
// proportional to the changed files.
func Run(ctx context.Context, in *Input) (*Report, error) {
	r := &run{in: in, limits: in.Limits.withDefaults(),
		report: &Report{Verdict: Allow, Findings: []Finding{}, Skipped: []Skipped{}}, seen: make(map[string]bool),
		words: make(map[string][]string)}
	if in.Mode == Off {
		return r.report, nil
	}
	if !slices.Contains([]Mode{"", Minimal, Standard, Aggressive}, in.Mode) {
		return nil, fmt.Errorf("unknown detection mode %q: use off, minimal, standard or aggressive", in.Mode)
	}
	if err := r.readAll(ctx); err != nil {
		return nil, err
	}
	r.compare()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("compare changed files: %w", err)
	}
	r.finish()
	return r.report, nil
}

// readAll builds the models of all files, one goroutine per processor.
func (r *run) readAll(ctx context.Context) error {
	if r.in.Changes == nil {
		return nil
	}
	var readers sync.WaitGroup
	waiting := make(chan *pair, maxWaiting)
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			var reader syntax.Reader
			for p := range waiting {
				r.read(&reader, p)
			}
		})
	}
	err := r.take(ctx, waiting)
	close(waiting)
	readers.Wait()
	for _, p := range r.pairs {
		r.skip(p)
		for _, f := range p.custom {
			r.put(f)
		}
	}
	return err
}

// maxWaiting is the number of changes queued for the readers.
const maxWaiting = 64

// take sends the changes to the readers.
func (r *run) take(ctx context.Context, readers chan<- *pair) error {
	for c, err := range r.in.Changes {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read changed files: %w", err)
		}
		if r.report.Files++; r.report.Files > r.limits.Files {
			return &LimitError{Limit: "files", Max: r.limits.Files}
		}
		if same(&c) {
			continue
		}
		p := &pair{path: c.path(), change: c, class: classOf(&c)}
		p.lang = c.language()
		r.keep(p)
		r.protected(p)
		r.pairs = append(r.pairs, p)
		readers <- p
	}
	return nil
}

// same reports whether nothing changed. Files too large to read count as changed.
func same(c *Change) bool {
	given := (c.Old.Content != nil || c.Old.Size == 0) && (c.New.Content != nil || c.New.Size == 0)
	return given && string(c.Old.Content) == string(c.New.Content) && c.Old.Path == c.New.Path &&
		c.Old.Kind == c.New.Kind && c.Protected == ""
}

// read builds the models of both versions of a file. It writes only to p.
func (r *run) read(reader *syntax.Reader, p *pair) {
	c := &p.change
	p.old, p.oldWhy = r.version(reader, &c.Old, nil)
	p.new, p.newWhy = r.version(reader, &c.New, p.old)
	p.custom = r.custom(p)
	p.edit = editOf(&c.Old, &c.New, p.lang != nil)
	p.edit.relaid = p.class == fixture && relaid(&c.Old, &c.New, p.lang != nil)
	c.Old.Content, c.New.Content = nil, nil
}

// skip records the versions that were not analysed.
func (r *run) skip(p *pair) {
	if p.newWhy != "" {
		r.notAnalysed(cmp.Or(p.change.New.Path, p.path), p.newWhy)
	}
	if p.oldWhy != "" && p.oldWhy != p.newWhy {
		r.notAnalysed(p.change.Old.Path, "baseline: "+p.oldWhy)
	}
}

// notAnalysed records a file, or a part of the work, that was not analysed.
func (r *run) notAnalysed(file, why string) {
	r.report.Skipped = append(r.report.Skipped, Skipped{file, why})
}

// compare runs the detectors over the models.
func (r *run) compare() {
	r.pairRenames()
	r.matchTests()
	for _, p := range r.pairs {
		r.unreadable(p)
		r.marks(p)
	}
	r.fixtures()
	r.testDeletion()
	r.testSkipping()
	r.assertionWeakening()
	r.functions()
	r.skipUnread()
	r.configurations()
}

// add records a finding once.
func (r *run) add(f Finding, id string) {
	info, ok := patternOf(id)
	if !ok {
		panic("detect: pattern " + id + " is not in the catalogue")
	}
	if !r.in.Rules.On(id) {
		return
	}
	f.Pattern, f.Type, f.Tier, f.Severity = info.ID, info.Type, info.Tier, info.Severity
	f.Message = cmp.Or(f.Message, info.Title)
	r.put(f)
}

func (r *run) put(f Finding) {
	f.Evidence, f.Confidence = syntax.Clip(f.Evidence), cmp.Or(f.Confidence, 1)
	subject := f.Subject
	if f.Type == ErrorSuppression || f.Type == ValidationBypass {
		subject = "" // nested functions contain the same code
	}
	key := fmt.Sprintf("%s\x00%s\x00%d\x00%t\x00%s", f.Pattern, f.File, f.Line, f.Gone, subject)
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	f.Action = r.action(&f)
	r.report.Findings = append(r.report.Findings, f)
}

// action returns the effect of a finding in the mode of the run.
func (r *run) action(f *Finding) Action {
	mode := r.in.Mode
	if set := r.in.Rules.Action(f.Pattern); set != "" {
		return set
	}
	switch {
	case f.Tier == Fact, f.Tier == Sign && mode == Aggressive,
		f.Tier == Sign && mode != Minimal && f.Confidence >= r.in.Rules.actsFrom() && !OnlyWarns(f.Pattern):
		return Act
	case f.Tier == Sign || mode == Aggressive:
		return Warn
	}
	return Tell
}

// finish sorts the findings, removes those that a waiver covers, cuts the list at its
// limit, and sets the verdict.
func (r *run) finish() {
	r.locate()
	slices.SortStableFunc(r.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Pattern+a.Subject, b.Pattern+b.Subject))
	})
	number(r.report.Findings)
	r.waive()
	has := func(action Action) bool {
		return slices.ContainsFunc(r.report.Findings, func(f Finding) bool { return f.Action == action })
	}
	switch {
	case has(Act):
		r.report.Verdict = Block
	case has(Warn):
		r.report.Verdict = Warns
	}
	if n := len(r.report.Findings); n > r.limits.Findings {
		// By tier, so that hints are cut first.
		slices.SortStableFunc(r.report.Findings, func(a, b Finding) int { return int(a.Tier) - int(b.Tier) })
		r.report.Findings = r.report.Findings[:r.limits.Findings]
		r.notAnalysed("", fmt.Sprintf("%d more findings are not listed (limit %d)", n-r.limits.Findings, r.limits.Findings))
	}
	r.show()
}
