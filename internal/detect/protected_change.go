package detect

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// protected tells of a change to what checks hang on.
func (r *run) protected(p *pair) {
	if p.change.Protected == "" {
		return
	}
	if p.change.Old.Path == p.change.New.Path && string(p.change.Old.Content) == string(p.change.New.Content) && p.change.Old.Kind == p.change.New.Kind {
		return
	}
	r.add(Finding{File: p.path, Subject: p.path, Message: p.change.Protected, Evidence: p.change.Protected}, protectedFile)
}

// linesChanged counts the lines that a text lost and gained.
func linesChanged(old, now []byte) (lost, gained int) {
	left := make(map[string]int)
	for line := range bytes.Lines(now) {
		left[strings.TrimRight(string(line), "\r\n")]++
		gained++
	}
	for line := range bytes.Lines(old) {
		s := strings.TrimRight(string(line), "\r\n")
		if left[s]--; left[s] < 0 {
			lost++
		} else {
			gained--
		}
	}
	return lost, gained
}

// prose tells of files that no program reads.
func prose(name string) bool {
	switch path.Ext(name) {
	case ".md", ".txt", ".rst", ".adoc":
		return true
	}
	return path.Ext(name) == "" || strings.HasPrefix(name, ".") // LICENSE, .github/
}

// fixtures tells of changed fixtures in a change that leaves the source alone.
// New ones are no sign, and those that lost no line are none. It is less sure when
// the tests gained assertions, or the fixtures many more lines than they lost.
func (r *run) fixtures() {
	lost, gained := 0, 0
	for _, p := range r.pairs {
		if p.class == production && !prose(p.path) {
			return
		}
		lost, gained = lost+p.lost, gained+p.gained
	}
	confidence := 0.8
	if gained >= manyMore*lost || slices.ContainsFunc(r.pairs, func(p *pair) bool { return r.of(p).asserts > 0 }) {
		confidence = 0.7
	}
	for _, p := range r.pairs {
		if p.class != fixture || p.lost == 0 && p.gained > 0 || p.change.Old.Path == "" || p.change.Old.Path != p.change.New.Path && p.change.New.Path != "" {
			continue
		}
		r.add(Finding{File: p.path, Subject: p.path, Evidence: p.path, Confidence: confidence}, fixtureChanged)
	}
}

// manyMore is how many lines fixtures gain for each one that they lose when they
// grow.
const manyMore = 4
