package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
	"github.com/perdure/perdure/internal/text/human"
)

// testSkipping reports tests that no longer run or that are newly expected to fail.
func (r *run) testSkipping() {
	matched := make(map[*syntax.Test]*testPair)
	for i := range r.tests {
		if t := &r.tests[i]; t.new != nil && (t.how != howMerged || matched[t.new] == nil) {
			matched[t.new] = t
		}
	}
	for _, p := range r.pairs {
		if p.new == nil {
			continue
		}
		r.exitsWell(p)
		r.buildTags(p)
		r.notLookedFor(p)
		for _, now := range p.new.Tests {
			var was *syntax.Test
			if t := matched[now]; t != nil {
				was = t.old
			}
			r.skipped(p, was, now)
		}
	}
}

// skipped compares how a test runs in both versions; was is nil for a new test.
func (r *run) skipped(p *pair, was, now *syntax.Test) {
	f := p.inNew(cmp.Or(now.SkipLine, now.Line), now.Name, now.SkipText, 0.95, "")
	switch {
	case was == nil && now.Skip == syntax.Always:
		r.add(f, skipNew)
	case was == nil:
	case now.Skip == syntax.Always && was.Skip != syntax.Always:
		r.add(f, skipAdded)
	case now.Skip == syntax.Sometimes && was.Skip != syntax.Always:
		r.conditional(p, f, was, now)
	}
	report := func(id string, confidence float64, message string) {
		r.add(p.inNew(now.Line, now.Name, now.Name, confidence, message), id)
	}
	if now.Focus && (was == nil || !was.Focus) {
		report(focusAdded, 0.95, "")
	}
	if was == nil {
		return
	}
	if now.Abstract != "" && was.Abstract == "" && !r.inherited(p, now.Abstract) {
		report(skipAdded, 0.95, "test moved to an abstract class that no changed class extends")
	}
	if now.Fails && !was.Fails {
		report(failureExpected, 0.95, "")
	}
}

// conditional reports a test that is skipped under a condition: the first new condition
// without a valid reason, or the skip itself if the test had none.
func (r *run) conditional(p *pair, f Finding, was, now *syntax.Test) {
	fresh := r.unexplained(p, now, was)
	switch {
	case len(fresh) > len(r.unexplained(p, was, now)):
		f.Line, f.Evidence, f.Confidence = fresh[0].Line, fresh[0].S, 0.9
	case was.Skip != syntax.Runs:
		return
	case len(now.Whens) > 0:
		f.Confidence = 0.7
	default:
		f.Confidence = 0.9
	}
	r.add(f, skipConditional)
}

// unexplained returns the distinct conditions of a test that have no valid reason and
// that another test does not have.
func (r *run) unexplained(p *pair, t, other *syntax.Test) []*syntax.When {
	var left []*syntax.When
	for i := range t.Whens {
		w := &t.Whens[i]
		same := func(o *syntax.When) bool { return o.Text == w.Text && o.RunsWhen == w.RunsWhen }
		if !slices.ContainsFunc(other.Whens, func(o syntax.When) bool { return same(&o) }) &&
			!slices.ContainsFunc(left, same) && !r.explains(p, t, w) {
			left = append(left, w)
		}
	}
	return left
}

// explains reports whether a condition depends on the platform. Names that production
// code newly uses count as used.
func (r *run) explains(p *pair, t *syntax.Test, w *syntax.When) bool {
	c := w.Condition
	c.Test = t.Name
	c.Used = c.Used || multiset.Overlap(w.Asks, r.of(p).code) > 0
	return c.Explains()
}

// inherited reports whether a changed class extends another class.
func (r *run) inherited(p *pair, name string) bool {
	h := syntax.Hash(name)
	extends := func(f *syntax.Function) bool {
		return f.Kind == syntax.DeclContainer && f.Leaf != name && f.All.Has(h)
	}
	return slices.ContainsFunc(r.pairs, func(o *pair) bool {
		return r.of(o) == r.of(p) && slices.ContainsFunc(o.after().Funcs, extends)
	})
}

// notLookedFor reports a file that the test runner no longer finds under its new name.
func (r *run) notLookedFor(p *pair) {
	if p.old == nil || p.lang == nil || len(p.old.Tests) == 0 || len(p.new.Tests) == 0 || p.old.Path == p.new.Path {
		return
	}
	runs := func(t *syntax.Test) bool { return t.Abstract == "" }
	if p.lang.Collected(p.old.Path) && !p.lang.Collected(p.new.Path) && slices.ContainsFunc(p.old.Tests, runs) {
		r.add(p.inOld(1, p.old.Path, p.old.Path+" became "+p.new.Path, 0.9,
			"file renamed, so that the test runner does not find its tests"), skipAdded)
	}
}

// buildTags reports a new build constraint on a file with tests.
func (r *run) buildTags(p *pair) {
	if p.old == nil || len(p.old.Tests) == 0 || p.new.Build == p.old.Build || p.new.Build == "" ||
		p.new.Build == platform.GoSystem(p.old.Path) {
		return
	}
	if strings.Contains(p.old.Path, "_test.go") && p.old.Build != "" && !strings.Contains(p.new.Build, "ignore") {
		return // one constraint replaced by another
	}
	f := p.inNew(1, p.new.Path, "//go:build "+p.new.Build, 0.75,
		fmt.Sprintf("build constraint added to a file with %s", human.Count(len(p.old.Tests), "test")))
	if p.new.Build == "ignore" || p.new.Build == "never" || strings.Contains(p.new.Build, "ignore") {
		r.add(f, skipAdded)
		return
	}
	build := platform.Condition{Language: "go", Text: p.new.Build, RunsWhen: true}
	// Such a tag excludes the tests only when it is set.
	if !build.Explains() && !strings.HasPrefix(p.new.Build, "!") || build.Always() || build.Off() {
		f.Confidence = 0.9
	}
	r.add(f, skipConditional)
}
