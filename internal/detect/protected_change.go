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

// grown tells whether a text has all lines of another one.
func grown(old, now []byte) bool {
	if len(now) <= len(old) {
		return false
	}
	left := make(map[string]int)
	for line := range bytes.Lines(now) {
		left[strings.TrimRight(string(line), "\r\n")]++
	}
	for line := range bytes.Lines(old) {
		s := strings.TrimRight(string(line), "\r\n")
		if left[s]--; left[s] < 0 {
			return false
		}
	}
	return true
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
// New ones are no sign, and those that lost no line are none.
func (r *run) fixtures(p *pair) {
	if p.class != fixture || p.grown || p.change.Old.Path == "" || p.change.Old.Path != p.change.New.Path && p.change.New.Path != "" {
		return
	}
	source := slices.ContainsFunc(r.pairs, func(o *pair) bool { return o.class == production && !prose(o.path) })
	if source {
		return
	}
	r.add(Finding{File: p.path, Subject: p.path, Evidence: p.path, Confidence: 0.8}, fixtureChanged)
}
