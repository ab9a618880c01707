package detect

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Type says what got worse.
type Type string

// The types. TestFailure and RunIncomplete come from results of runs only.
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

// Tier says what kind of evidence a finding rests on.
type Tier int

// The tiers.
const (
	Fact Tier = 1 // cannot be explained away
	Sign Tier = 2 // strong, but a change may have a good reason
	Hint Tier = 3 // worth a look
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
)

// Mode decides which findings act.
type Mode string

// The modes. The zero value is Standard.
const (
	// Off looks at nothing.
	Off Mode = "off"
	// Minimal acts on facts; signs warn.
	Minimal Mode = "minimal"
	// Standard acts on facts, and on signs that are at least ActConfidence sure;
	// other signs warn.
	Standard Mode = "standard"
	// Aggressive acts on facts and all signs; hints warn.
	Aggressive Mode = "aggressive"
)

// ActConfidence is how sure a sign must be to act in Standard mode.
const ActConfidence = 0.8

// Action is what a finding does in the mode of the run.
type Action string

// The actions.
const (
	Act  Action = "act"  // a regression
	Warn Action = "warn" // told, and goes on
	Tell Action = "tell" // listed
)

// Verdict sums up a report.
type Verdict string

// The verdicts: Block when a finding acts, Warns when one warns.
const (
	Allow Verdict = "ALLOW"
	Warns Verdict = "WARN"
	Block Verdict = "BLOCK"
)

// Kind is what stands at a path.
type Kind string

// The kinds; the zero value is a regular file.
const (
	Regular Kind = ""
	Link    Kind = "link"
	Other   Kind = "other" // a nested repository, a device
)

// Version is a file as it was or is.
type Version struct {
	// Path is relative to the workspace, with slashes; empty for a version that
	// is not there (the file was added or deleted).
	Path string
	// Kind is what stands there; only regular files are read.
	Kind Kind
	// Content is the text. Nil with a Size above zero: too large to be given.
	Content []byte
	// Size in bytes, when Content is nil.
	Size int64
}

// Change is one changed file. Paths of both versions differ when the file was
// renamed; a caller that does not follow renames gives a deletion and an
// addition, which are matched by what is in them.
type Change struct {
	Old, New Version
	// Protected, when not empty, says why the file is one that checks hang on
	// (configuration of CI, runner, linter, coverage).
	Protected string
	// Fixture is set for what tests read or compare with. Paths with a folder
	// named testdata, fixtures, __snapshots__ or golden are taken for such ones
	// without it.
	Fixture bool
}

// path is the name under which a change is told.
func (c *Change) path() string {
	if c.New.Path != "" {
		return c.New.Path
	}
	return c.Old.Path
}

// Input is what Run compares.
type Input struct {
	// Mode decides what acts; empty is Standard.
	Mode Mode
	// Changes are the changed files, read once, in any order. An error ends the
	// run.
	Changes iter.Seq2[Change, error]
	// Results is what runs of the tests said; nil when none ran.
	Results *Results
	// Rules are switches and patterns of the user's; nil for none.
	Rules *Rules
	// Waivers take findings away; they must come from outside of the agent's reach.
	Waivers []Waiver
	// Now is compared with the expiry of waivers; the zero value expires none.
	Now time.Time
	// Limits bound what is read; zero values take the defaults.
	Limits Limits
}

// Finding is one sign of a regression.
type Finding struct {
	Type     Type     `json:"type"`
	Tier     Tier     `json:"tier"`
	Severity Severity `json:"severity"`
	// Pattern is an identifier of Catalog's or of a custom pattern.
	Pattern string `json:"pattern"`
	File    string `json:"file"`
	// Line begins with 1; it is one of the old version when Gone is set. 0 when
	// there is none.
	Line int  `json:"line"`
	Gone bool `json:"gone,omitempty"`
	// Subject is the test or the symbol it is about, if it is about one.
	Subject string `json:"subject,omitempty"`
	// Message says what happened, Evidence shows it: at most 200 bytes of the
	// file.
	Message  string `json:"message"`
	Evidence string `json:"evidence"`
	// Confidence is between 0 and 1.
	Confidence float64 `json:"confidence"`
	Action     Action  `json:"action"`
}

// Skipped is a version of a file, or a part of the work, that was not analysed.
type Skipped struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Expected tells of what is never analysed: binary files, links, and copies of other
// projects' code.
func (s *Skipped) Expected() bool {
	switch strings.TrimPrefix(s.Why, "baseline: ") {
	case whyBinary, whyVendored, whyLink, whyOther:
		return true
	}
	return false
}

// Moved is a baseline test that was found again under another name or in another
// place. What compares results of runs by name takes such tests for the same.
type Moved struct {
	From TestName `json:"from"`
	To   TestName `json:"to"`
	How  string   `json:"how"` // moved, renamed, merged or obsolete (then To is empty)
}

// TestName is the identity of a test.
type TestName struct {
	File string `json:"file"`
	// Name has its suites before it, separated by " > ".
	Name string `json:"name"`
}

// Report is what Run found.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
	// Waived are findings that a waiver took away.
	Waived  []Waived  `json:"waived,omitempty"`
	Skipped []Skipped `json:"skipped"`
	Moved   []Moved   `json:"moved,omitempty"`
	// Added are tests that no test of the baseline became.
	Added []TestName `json:"-"`
	// Files is how many changes were looked at.
	Files int `json:"files"`
}

// run is one Run.
type run struct {
	in     *Input
	limits Limits
	pairs  []*pair
	report *Report
	seen   map[string]bool      // findings, each told once
	change map[string]*material // by language; see match.go
	// lostMarks counts marks that files lost, by pattern and text; nil until needed.
	lostMarks map[string]int
	// said are the words that documents of the change say more than before; nil before that is known.
	said multiset.Hashes
	// words are those of names of tests that were compared; see names.go.
	words map[string][]string
	// compared counts removed functions held against added ones.
	compared int
	// tests has what became of each test of the baseline, in the order of the
	// files.
	tests []testPair
}

// Run compares two versions of the changed files. It does the same for the same
// input; findings are ordered by file and line. Errors are those of Changes and of
// the context, an unknown mode, and *LimitError; whatever a file holds is none. Time and memory are
// proportional to the changed files.
func Run(ctx context.Context, in *Input) (*Report, error) {
	r := &run{in: in, limits: in.Limits.withDefaults(),
		report: &Report{Verdict: Allow, Findings: []Finding{}, Skipped: []Skipped{}}, seen: make(map[string]bool)}
	switch in.Mode {
	case Off:
		return r.report, nil
	case "", Minimal, Standard, Aggressive:
	default:
		return nil, fmt.Errorf("detection mode %q is none; modes are off, minimal, standard, aggressive", in.Mode)
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

// readAll makes the models of all files, as many at a time as there are processors.
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

// maxWaiting is how many changes wait for a reader: enough for the time in which
// more of them are fetched.
const maxWaiting = 64

// take hands the changes to the readers.
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
		r.protected(p)
		r.pairs = append(r.pairs, p)
		readers <- p
	}
	return nil
}

// same tells of a change in which nothing changed. Of what was too large to be given
// nobody knows.
func same(c *Change) bool {
	given := (c.Old.Content != nil || c.Old.Size == 0) && (c.New.Content != nil || c.New.Size == 0)
	return given && string(c.Old.Content) == string(c.New.Content) && c.Old.Path == c.New.Path &&
		c.Old.Kind == c.New.Kind && c.Protected == ""
}

// read makes the models of both versions of a file. It changes nothing but p.
func (r *run) read(reader *syntax.Reader, p *pair) {
	c := &p.change
	p.old, p.oldWhy = r.version(reader, &c.Old, nil)
	p.new, p.newWhy = r.version(reader, &c.New, p.old)
	p.custom = r.custom(p)
	p.edit = editOf(&c.Old, &c.New, p.lang != nil)
	p.edit.tidied = p.class == fixture && tidied(&c.Old, &c.New)
	c.Old.Content, c.New.Content = nil, nil
}

// skip tells which versions were not analysed.
func (r *run) skip(p *pair) {
	switch {
	case p.oldWhy != "" && p.oldWhy == p.newWhy:
		r.report.Skipped = append(r.report.Skipped, Skipped{p.path, p.newWhy})
	default:
		if p.newWhy != "" {
			r.report.Skipped = append(r.report.Skipped, Skipped{p.change.New.Path, p.newWhy})
		}
		if p.oldWhy != "" {
			r.report.Skipped = append(r.report.Skipped, Skipped{p.change.Old.Path, "baseline: " + p.oldWhy})
		}
	}
}

// compare lets the detectors look at the models.
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
	r.results()
	r.tellUnread()
}

// add notes a finding once.
func (r *run) add(f Finding, id string) {
	info, ok := patternOf(id)
	if !ok {
		panic("detect: pattern " + id + " is not in the catalogue")
	}
	if !r.in.Rules.enabled(&info) {
		return
	}
	f.Pattern, f.Type, f.Tier, f.Severity = info.ID, info.Type, info.Tier, info.Severity
	if f.Message == "" {
		f.Message = info.Title
	}
	r.put(f)
}

func (r *run) put(f Finding) {
	f.Evidence = syntax.Clip(f.Evidence)
	if f.Confidence == 0 {
		f.Confidence = 1
	}
	subject := f.Subject
	if f.Type == ErrorSuppression || f.Type == ValidationBypass {
		subject = "" // what stands in a function stands in those around it, too
	}
	key := fmt.Sprintf("%s\x00%s\x00%d\x00%t\x00%s", f.Pattern, f.File, f.Line, f.Gone, subject)
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	f.Action = r.action(&f)
	if w := r.waiver(&f); w != nil {
		r.report.Waived = append(r.report.Waived, Waived{Finding: f, Waiver: *w})
		return
	}
	r.report.Findings = append(r.report.Findings, f)
}

// action is what a finding does in the mode.
func (r *run) action(f *Finding) Action {
	mode := r.in.Mode
	if set := r.in.Rules.Action(f.Pattern); set != "" {
		return set
	}
	switch {
	case f.Tier == Fact:
		return Act
	case f.Tier == Sign && (mode == Aggressive || mode != Minimal && f.Confidence >= r.in.Rules.actsFrom()):
		return Act
	case f.Tier == Sign || mode == Aggressive:
		return Warn
	}
	return Tell
}

// finish sorts the findings, cuts what is too much, and sums up.
func (r *run) finish() {
	slices.SortStableFunc(r.report.Findings, func(a, b Finding) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Pattern+a.Subject, b.Pattern+b.Subject)
	})
	for i := range r.report.Findings {
		switch r.report.Findings[i].Action {
		case Act:
			r.report.Verdict = Block
		case Warn:
			if r.report.Verdict == Allow {
				r.report.Verdict = Warns
			}
		case Tell:
		}
	}
	if n := len(r.report.Findings); n > r.limits.Findings {
		// Facts first, so that the cut takes hints.
		slices.SortStableFunc(r.report.Findings, func(a, b Finding) int { return int(a.Tier) - int(b.Tier) })
		r.report.Findings = r.report.Findings[:r.limits.Findings]
		r.report.Skipped = append(r.report.Skipped,
			Skipped{"", fmt.Sprintf("%d more findings are not listed (at most %d)", n-r.limits.Findings, r.limits.Findings)})
	}
}
