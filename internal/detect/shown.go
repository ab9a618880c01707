package detect

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/workspace/diff"
)

// Limits of the diffs of findings: the bytes of the contents that are kept, the files that are
// compared, and the findings that get one.
const (
	maxKept   = 64 << 20
	maxDiffed = 300
	maxDiffs  = 1000
)

// contents are both versions of a file, kept for the diffs of its findings.
type contents struct {
	old, new []byte
	kept     bool
	compared *diff.Comparison
	// id identifies the change of a protected file or a fixture of which no lines are compared.
	id string
}

// compareFile returns the comparison of both versions of a file; nil if there is none.
func (r *run) compareFile(p *pair) *diff.Comparison {
	t := &p.contents
	if t.kept && r.diffs < maxDiffed && p.oldWhy == "" && p.newWhy == "" {
		r.diffs++
		t.compared = diff.Compare(t.old, t.new)
	}
	t.old, t.new, t.kept = nil, nil, false
	return t.compared
}

// keep decides whether the contents of a file are kept, while the limit lasts.
func (r *run) keep(p *pair) {
	c := &p.change
	if c.Protected != "" || c.Configures != "" || p.class == fixture {
		p.contents.id = short(fmt.Sprintf("%d %d\x00%s\x00%s", c.Old.Size, c.New.Size, c.Old.Content, c.New.Content))
	}
	size := int64(len(c.Old.Content) + len(c.New.Content))
	if r.kept+size > maxKept || c.Old.Kind != Regular || c.New.Kind != Regular {
		return
	}
	r.kept += size
	p.contents.old, p.contents.new, p.contents.kept = c.Old.Content, c.New.Content, true
}

// locate corrects the lines of findings, and identifies the changes that their evidence does
// not: of a whole file, and of code with a suppressed warning.
func (r *run) locate() {
	fileOf := r.fileOf()
	for i := range r.report.Findings {
		f := &r.report.Findings[i]
		correct := correction(f)
		if correct == nil {
			continue
		}
		if p := fileOf(f); p != nil {
			if c := r.compareFile(p); c != nil {
				correct(f, p, c)
			} else {
				f.Change = p.contents.id
			}
		}
	}
}

// correction returns the function that corrects a finding; nil if none is needed.
func correction(f *Finding) func(*Finding, *pair, *diff.Comparison) {
	if f.Pattern == fixtureChanged || f.Type == ProtectedChange && f.Subject == f.File {
		return identifyFile
	}
	switch f.Pattern {
	case syntax.ComplaintOff, syntax.CoverageExcluded, syntax.LooseType:
		return identifyLine
	}
	if !f.Gone && f.Type == TestSkipping {
		return toMark
	}
	if !f.Gone && slices.Contains([]Type{ValidationBypass, ErrorSuppression, FeatureRemoval}, f.Type) {
		return toChange
	}
	return nil
}

func identifyFile(f *Finding, _ *pair, c *diff.Comparison) {
	f.Change = short(c.Changed())
	if at := c.First(); f.Line == 0 {
		f.Line, f.Gone = at.Number, at.Old
	}
}

// identifyLine sets the change to the line, and to the next one if the evidence is all of it.
func identifyLine(f *Finding, _ *pair, c *diff.Comparison) {
	text := c.Text(diff.Line{Number: f.Line, Old: f.Gone})
	if clip.OneLine(text) == clip.OneLine(f.Evidence) {
		text = c.Text(diff.Line{Number: f.Line + 1, Old: f.Gone})
	}
	f.Change = short(text)
}

// toChange moves a finding from the unchanged line at which its function begins to the first
// change in the function, which identifies it.
func toChange(f *Finding, p *pair, c *diff.Comparison) {
	begins := func(g *syntax.Function) bool { return g.Line == f.Line }
	if !slices.ContainsFunc(p.after().Funcs, begins) || !c.Same(f.Line) {
		return
	}
	if at := c.FirstIn(f.Line, p.nextFunction(f.Line)); at.Number > 0 {
		f.Line, f.Gone, f.Change = at.Number, at.Old, short(c.ChangedAt(at))
		if at.Old {
			f.File = p.change.Old.Path
		}
	}
}

// toMark moves a finding from the unchanged line of a test to the change that skips it, which
// contains a word for it.
func toMark(f *Finding, _ *pair, c *diff.Comparison) {
	near := c.Near(diff.Line{Number: f.Line})
	if c.Same(f.Line) && near.Number > 0 && !near.Old && skipWords().MatchString(c.ChangedAt(near)) {
		f.Line = near.Number
	}
}

// skipWords matches an added line with a word for a skipped or focused test.
var skipWords = lazyregexp.New(
	`(?mi)^\+.*(?:skip|ignor|disabl|exclud|only|focus|\bf(?:it|describe|context)\b|\bx(?:it|test|describe|fail)\b|` +
		`pending|should_panic|expected_?failure|fails\b|todo)`)

// show adds the diffs of the findings.
func (r *run) show() {
	fileOf := r.fileOf()
	for i := range r.report.Findings[:min(len(r.report.Findings), maxDiffs)] {
		f := &r.report.Findings[i]
		if p := fileOf(f); p != nil {
			if c := r.compareFile(p); c != nil {
				f.Diff = c.Excerpt(diff.Line{Number: max(f.Line, 1), Old: f.Gone})
			}
		}
	}
}

// fileOf returns a function that finds the changed file of a finding.
func (r *run) fileOf() func(f *Finding) *pair {
	old, now := make(map[string]*pair, len(r.pairs)), make(map[string]*pair, len(r.pairs))
	for _, p := range r.pairs {
		old[p.change.Old.Path], now[p.change.New.Path] = p, p
	}
	delete(old, "")
	delete(now, "")
	return func(f *Finding) *pair {
		if f.Gone {
			return cmp.Or(old[f.File], now[f.File])
		}
		return cmp.Or(now[f.File], old[f.File])
	}
}

// nextFunction returns the line of the first function after a line of the new version.
func (p *pair) nextFunction(line int) int {
	next := math.MaxInt
	for _, f := range p.after().Funcs {
		if f.Line > line {
			next = min(next, f.Line)
		}
	}
	return next
}

// short returns a hash of a text as 16 hexadecimal digits.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	const digits = 16
	return hex.EncodeToString(sum[:])[:digits]
}
