package detect

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/perdure/perdure/internal/detect/source"
)

// testSkipping tells of tests that do not run any more, or whose failure is
// expected now.
func (r *run) testSkipping() {
	matched := make(map[*source.Test]*testPair)
	for i := range r.tests {
		if t := &r.tests[i]; t.new != nil && (t.how != howMerged || matched[t.new] == nil) {
			matched[t.new] = t
		}
	}
	for _, p := range r.pairs {
		if p.new == nil {
			continue
		}
		r.buildTags(p)
		for _, now := range p.new.Tests {
			var was *source.Test
			if t := matched[now]; t != nil {
				was = t.old
			}
			r.skipped(p, was, now)
		}
	}
}

// skipped compares how a test ran with how it runs; was is nil for a new one.
func (r *run) skipped(p *pair, was, now *source.Test) {
	f := Finding{File: p.new.Path, Line: now.SkipLine, Subject: now.Name, Evidence: now.SkipText, Confidence: 0.95}
	if f.Line == 0 {
		f.Line = now.Line
	}
	switch {
	case was == nil && now.Skip == source.Always:
		r.add(f, skipNew)
	case was == nil:
	case now.Skip == source.Always && was.Skip != source.Always:
		r.add(f, skipAdded)
	case now.Skip == source.Sometimes && was.Skip == source.Runs:
		f.Confidence = 0.9
		if ofPlatform.MatchString(now.SkipText) && !inCI.MatchString(now.SkipText) {
			f.Confidence = 0.7
		}
		r.add(f, skipConditional)
	}
	f.Line, f.Evidence = now.Line, now.Name
	if now.Fails && was != nil && !was.Fails {
		r.add(f, failureExpected)
	}
	if now.Focus && (was == nil || !was.Focus) {
		r.add(f, focusAdded)
	}
}

// ofPlatform are conditions that a test may need: systems, versions, tools and
// modules that are missing. Under any other one, a test that ran is switched off.
var ofPlatform = regexp.MustCompile(`(?i)windows|win32|darwin|mac_?os|linux|unix|bsd\b|goos|goarch|platform|\bos\b|\bos\.name|operating|\barch|arm64|amd64|x86|version|jre|jdk|\bphp|python|ruby_|node\b|go1\.|short\(\)|short \( \)|root|\b[ge]*uid\b|which|lookpath|exist|not found|install|availab|support|capab|import|module|hasattr|has_|extension|requires|locale|cgo|\brace\b|wasm|endian|msys|docker|fork|symlink|ipv6|fips`)

// inCI are conditions that hold where work is checked.
var inCI = regexp.MustCompile(`\bCI\b|GITHUB_ACTIONS|(?i)in_?ci\b|\bis_?ci\b|travis|jenkins`)

// buildTags tells of a build constraint that a file with tests did not have.
func (r *run) buildTags(p *pair) {
	if p.old == nil || len(p.old.Tests) == 0 || p.new.Build == p.old.Build || p.new.Build == "" {
		return
	}
	if strings.Contains(p.old.Path, "_test.go") && p.old.Build != "" && !strings.Contains(p.new.Build, "ignore") {
		return // one constraint for another
	}
	f := Finding{File: p.new.Path, Line: 1, Subject: p.new.Path, Evidence: "//go:build " + p.new.Build, Confidence: 0.75, Message: fmt.Sprintf("%d tests of the file run under a condition only", len(p.old.Tests))}
	if p.new.Build == "ignore" || p.new.Build == "never" || strings.Contains(p.new.Build, "ignore") {
		r.add(f, skipAdded)
		return
	}
	if !ofPlatform.MatchString(p.new.Build) && !strings.HasPrefix(p.new.Build, "!") { // such a tag leaves them out when it is given
		f.Confidence = 0.9
	}
	r.add(f, skipConditional)
}
