package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// testSkipping tells of tests that do not run any more, or whose failure is
// expected now.
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
		r.shadowedTests(p)
		r.notLookedFor(p)
		r.startsGone(p)
		r.modulesGone(p)
		for _, now := range p.new.Tests {
			var was *syntax.Test
			if t := matched[now]; t != nil {
				was = t.old
			}
			r.skipped(p, was, now)
		}
	}
}

// skipped compares how a test ran with how it runs; was is nil for a new one.
func (r *run) skipped(p *pair, was, now *syntax.Test) {
	f := Finding{File: p.new.Path, Line: now.SkipLine, Subject: now.Name, Evidence: now.SkipText, Confidence: 0.95}
	if f.Line == 0 {
		f.Line = now.Line
	}
	switch {
	case was == nil && now.Skip == syntax.Always:
		r.add(f, skipNew)
	case was == nil:
	case now.Skip == syntax.Always && was.Skip != syntax.Always:
		r.add(f, skipAdded)
	case now.Skip == syntax.Sometimes && was.Skip != syntax.Always:
		r.conditional(p, f, was, now)
	}
	f.Line, f.Evidence = now.Line, now.Name
	if now.Abstract != "" && was != nil && was.Abstract == "" && !r.inherited(p, now.Abstract) {
		f.Message = "a test of the baseline stands in an abstract class that nothing of the change inherits from"
		r.add(f, skipAdded)
		f.Message = ""
	}
	if now.Fails && was != nil && !was.Fails {
		r.add(f, failureExpected)
	}
	if was != nil && now.Again > was.Again {
		f.Message, f.Confidence = fmt.Sprintf("a test that fails is run again, up to %d times", now.Again), 0.7
		if now.Again >= manyTimes {
			f.Confidence = 0.85
		}
		r.add(f, assertionCaught)
		f.Message, f.Confidence = "", 0.95
	}
	if now.Focus && (was == nil || !was.Focus) {
		r.add(f, focusAdded)
	}
}

// manyTimes is how often a test may be run again before it is no test any more.
const manyTimes = 5

// conditional tells of a test that is skipped under a condition: of the first that
// is new and no reason, or of the skip as such when the test had none.
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

// unexplained are the conditions of a test, each once, that are no reason and are not
// among those of another one.
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

// explains tells whether a condition is one of the machine. What production code
// uses since this change is used.
func (r *run) explains(p *pair, t *syntax.Test, w *syntax.When) bool {
	c := w.Condition
	c.Test = t.Name
	c.Used = c.Used || multiset.Overlap(w.Asks, r.of(p).code) > 0
	return c.Explains()
}

// inherited tells whether a class of the change has another one for a base.
func (r *run) inherited(p *pair, name string) bool {
	h := syntax.Hash(name)
	for _, o := range r.pairs {
		if o.new == nil || r.of(o) != r.of(p) {
			continue
		}
		for _, f := range o.new.Funcs {
			if f.Kind == syntax.DeclContainer && f.Leaf != name && f.All.Has(h) {
				return true
			}
		}
	}
	return false
}

// shadowedTests tells of tests that ran, and in whose place another one of their name runs
// now that comes after them, and is taken for them.
func (r *run) shadowedTests(p *pair) {
	// told of by that
	if p.old == nil || slices.ContainsFunc(r.tests, func(t testPair) bool { return t.from == p && t.how == "" }) {
		return
	}
	for _, h := range p.new.Hidden {
		taken := slices.ContainsFunc(r.tests, func(t testPair) bool {
			return t.to == p && t.new != nil && t.old.Name == h.Name && t.new.Name == h.Name
		})
		if taken && !slices.ContainsFunc(p.old.Hidden, func(o syntax.Hidden) bool { return o.Name == h.Name }) {
			r.add(Finding{File: p.new.Path, Line: h.Line, Subject: h.Name, Evidence: h.Name, Confidence: 0.9,
				Message: "a test never runs: what comes after it has its name"}, skipAdded)
		}
	}
}

// notLookedFor tells of a file whose tests runners find by its name, and which has
// another name now.
func (r *run) notLookedFor(p *pair) {
	if p.old == nil || p.lang == nil || len(p.old.Tests) == 0 || len(p.new.Tests) == 0 || p.old.Path == p.new.Path {
		return
	}
	if build := platform.GoSystem(p.new.Path); build != "" && platform.GoSystem(p.old.Path) == "" && build != "linux" &&
		build != "amd64" {
		r.add(Finding{File: p.old.Path, Line: 1, Gone: true, Subject: p.old.Path,
			Evidence: p.old.Path + " is " + p.new.Path, Confidence: 0.9, Message: "the tests of a file run on " + build +
				" only, by its new name"}, skipConditional)
	}
	if p.lang.Collected(p.old.Path) && !p.lang.Collected(p.new.Path) {
		r.add(Finding{File: p.old.Path, Line: 1, Gone: true, Subject: p.old.Path,
			Evidence: p.old.Path + " is " + p.new.Path, Confidence: 0.9,
			Message: "runners do not find the tests of a file under its new name"}, skipAdded)
	}
}

// startsGone tells of what made a runner run tests, and stands nowhere any more while the
// tests, or the file that had it, are there.
func (r *run) startsGone(p *pair) {
	if p.old == nil || p.newWhy != "" {
		return
	}
	for i := range p.old.Starts {
		s := &p.old.Starts[i]
		left := slices.ContainsFunc(r.pairs, func(o *pair) bool {
			return o.new != nil && slices.ContainsFunc(o.new.Starts, func(n syntax.Start) bool { return n.Key == s.Key })
		})
		gone := slices.ContainsFunc(r.pairs, func(o *pair) bool {
			return o.old != nil && o.new == nil && strings.Contains(o.path, s.Of) && s.Of != ""
		})
		if left || gone || s.Of != "" && !p.new.HasType(s.Of) && p.lang != nil && p.lang.Name == "go" {
			continue
		}
		r.add(Finding{File: p.new.Path, Line: s.Line, Gone: true, Subject: s.Of, Evidence: s.S, Confidence: 0.9,
			Message: "what made the runner run these tests is gone"}, skipAdded)
	}
}

// modulesGone tells of modules of tests that a file of Rust declares no more: nobody
// builds what is in them. One whose file went, or that has a body now, is told of by
// its tests.
func (r *run) modulesGone(p *pair) {
	if p.old == nil || len(p.new.Mods) >= len(p.old.Mods) {
		return
	}
	for _, name := range p.old.Mods {
		touched := slices.ContainsFunc(r.pairs, func(o *pair) bool {
			return o.old != nil && (strings.HasSuffix(o.change.Old.Path, "/"+name+".rs") ||
				strings.HasSuffix(o.change.Old.Path, "/"+name+"/mod.rs")) &&
				(o.new == nil || o.change.New.Path != o.change.Old.Path)
		})
		inside := slices.ContainsFunc(p.new.Funcs, func(f *syntax.Function) bool { return f.Leaf == name })
		if !slices.Contains(p.new.Mods, name) && !touched && !inside {
			r.add(Finding{File: p.new.Path, Line: 1, Subject: name, Evidence: "mod " + name + ";", Confidence: 0.9,
				Message: "a module of tests is not declared any more"}, skipAdded)
		}
	}
}

// buildTags tells of a build constraint that a file with tests did not have.
func (r *run) buildTags(p *pair) {
	if p.old == nil || len(p.old.Tests) == 0 || p.new.Build == p.old.Build || p.new.Build == "" ||
		p.new.Build == platform.GoSystem(p.old.Path) {
		return
	}
	if strings.Contains(p.old.Path, "_test.go") && p.old.Build != "" && !strings.Contains(p.new.Build, "ignore") {
		return // one constraint for another
	}
	f := Finding{File: p.new.Path, Line: 1, Subject: p.new.Path, Evidence: "//go:build " + p.new.Build, Confidence: 0.75,
		Message: fmt.Sprintf("%d tests of the file run under a condition only", len(p.old.Tests))}
	if p.new.Build == "ignore" || p.new.Build == "never" || strings.Contains(p.new.Build, "ignore") {
		r.add(f, skipAdded)
		return
	}
	build := platform.Condition{Language: "go", Text: p.new.Build, RunsWhen: true}
	// such a tag leaves them out when it is given
	if !build.Explains() && !strings.HasPrefix(p.new.Build, "!") || build.Always() || build.Off() {
		f.Confidence = 0.9
	}
	r.add(f, skipConditional)
}
