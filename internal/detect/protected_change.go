package detect

import (
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

// prose tells of files that no program reads.
func prose(name string) bool {
	switch path.Ext(name) {
	case ".md", ".txt", ".rst", ".adoc":
		return true
	}
	return path.Ext(name) == "" || strings.HasPrefix(name, ".") // LICENSE, .github/
}

// fixtures tells of changed fixtures in a change that leaves the source alone.
// New ones are no sign.
func (r *run) fixtures(p *pair) {
	if p.class != fixture || p.change.Old.Path == "" || p.change.Old.Path != p.change.New.Path && p.change.New.Path != "" {
		return
	}
	source := slices.ContainsFunc(r.pairs, func(o *pair) bool { return o.class == production && !prose(o.path) })
	if source {
		return
	}
	r.add(Finding{File: p.path, Subject: p.path, Evidence: p.path, Confidence: 0.8}, fixtureChanged)
}
