package detect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Custom is a user's pattern: a regular expression that is matched against lines of code.
type Custom struct {
	// ID consists of lower-case letters, digits and hyphens and is not one of Catalog's.
	ID       string   `json:"id" yaml:"id"`
	Type     Type     `json:"type" yaml:"type"`
	Tier     Tier     `json:"tier,omitempty" yaml:"tier"`
	Severity Severity `json:"severity,omitempty" yaml:"severity"`
	Message  string   `json:"message" yaml:"message"`
	// Languages (names as Languages returns them) and Paths (globs with ** for folders)
	// limit where the pattern applies. Empty: everywhere.
	Languages []string `json:"languages,omitempty" yaml:"languages"`
	Paths     []string `json:"paths,omitempty" yaml:"paths"`
	// Match is a regular expression in Go's syntax for a single line.
	Match string `json:"match,omitempty" yaml:"match"`
	// In is the part of a line that is matched: code (the default: comments and the
	// contents of strings are blanked), comments, or text (the whole line).
	In string `json:"in,omitempty" yaml:"in"`
	// When is added (the default) or removed.
	When string `json:"when,omitempty" yaml:"when"`
	// Confidence is between 0 and 1; 0 means 1.
	Confidence float64 `json:"confidence,omitempty" yaml:"confidence"`
}

// Rules are compiled settings and custom patterns. A nil *Rules enables all patterns and
// has no custom ones.
type Rules struct {
	off     map[string]bool
	actions map[string]Action
	sure    float64
	custom  []compiled
}

type compiled struct {
	Custom
	re *regexp.Regexp
}

// Config selects the patterns to search for.
type Config struct {
	// Types, if not empty, limit the search to these types.
	Types []Type `json:"types,omitempty" yaml:"types"`
	// Off are IDs or aliases of disabled patterns.
	Off []string `json:"off,omitempty" yaml:"off"`
	// Patterns are the user's own patterns.
	Patterns []Custom `json:"patterns,omitempty" yaml:"patterns"`
	// Actions override the effect of findings, by the ID or alias of the pattern.
	Actions map[string]Action `json:"actions,omitempty" yaml:"actions"`
	// ActConfidence is the confidence from which a sign blocks in Standard mode; 0 is
	// [ActConfidence].
	ActConfidence float64 `json:"act_confidence,omitempty" yaml:"act_confidence"`
}

// Limits of custom patterns.
const (
	maxPatterns = 200
	maxMatch    = 1000
)

// NewRules compiles a configuration. The error lists all problems, each with its field.
func NewRules(c Config) (*Rules, error) {
	rules := &Rules{off: make(map[string]bool), actions: make(map[string]Action), sure: c.ActConfidence}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for i, t := range c.Types {
		if !slices.Contains(allTypes(), t) {
			wrong("types[%d]: unknown type %q: use one of %s", i, t, joined(allTypes()))
		}
	}
	known := make(map[string]bool)
	for _, p := range patterns() {
		known[p.ID] = true
		if len(c.Types) > 0 && !slices.Contains(c.Types, p.Type) {
			rules.off[p.ID] = true
		}
	}
	if len(c.Patterns) > maxPatterns {
		return nil, &LimitError{Limit: "custom patterns", Max: maxPatterns}
	}
	for i := range c.Patterns {
		p := c.Patterns[i]
		for _, err := range p.problems(known) {
			wrong("patterns[%d] %q: %w", i, p.ID, err)
		}
		known[p.ID] = true
		if re, err := regexp.Compile(p.Match); err == nil {
			rules.custom = append(rules.custom, compiled{p, re})
		}
		if len(c.Types) > 0 && !slices.Contains(c.Types, p.Type) {
			rules.off[p.ID] = true
		}
	}
	named := func(where, id string) []string {
		ids := byAlias(id)
		if known[id] {
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			wrong("%s: unknown pattern %q: perdure check patterns lists them", where, id)
		}
		return ids
	}
	for i, id := range c.Off {
		for _, id := range named(fmt.Sprintf("off[%d]", i), id) {
			rules.off[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Actions)) {
		action := c.Actions[id]
		if !slices.Contains([]Action{Act, Warn, Tell}, action) {
			wrong("actions.%s: unknown action %q: use act, warn or tell", id, action)
		}
		for _, id := range named("actions", id) {
			rules.actions[id] = action
		}
	}
	if c.ActConfidence < 0 || c.ActConfidence > 1 || c.ActConfidence != c.ActConfidence {
		wrong("act_confidence: %g is not between 0 and 1", c.ActConfidence)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("read detection patterns: %w", errors.Join(errs...))
	}
	return rules, nil
}

// byAlias returns the IDs of the patterns with an alias.
func byAlias(alias string) []string {
	var ids []string
	for _, p := range patterns() {
		if slices.Contains(p.Aliases, alias) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

var customID = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (c *Custom) problems(known map[string]bool) []error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !customID().MatchString(c.ID) || len(c.ID) > 60 {
		wrong("id: use at most 60 lower-case letters, digits and hyphens")
	}
	if known[c.ID] {
		wrong("id: a pattern with this ID exists already")
	}
	if !slices.Contains(allTypes(), c.Type) {
		wrong("type: unknown type %q: use one of %s", c.Type, joined(allTypes()))
	}
	if c.Tier < Fact || c.Tier > Hint {
		wrong("tier: %d is not 1, 2 or 3", c.Tier)
	}
	if !slices.Contains([]Severity{Critical, High, Medium, Low}, c.Severity) {
		wrong("severity: unknown severity %q: use critical, high, medium or low", c.Severity)
	}
	if strings.TrimSpace(c.Message) == "" {
		wrong("message: empty; describe the finding")
	}
	for _, l := range c.Languages {
		if !slices.Contains(syntax.Languages(), l) {
			wrong("languages: unknown language %q: use one of %s", l, joined(syntax.Languages()))
		}
	}
	for _, p := range c.Paths {
		if !doublestar.ValidatePattern(p) {
			wrong("paths: invalid glob %q: use a pattern like src/**/*.ts", p)
		}
	}
	if c.Match == "" || len(c.Match) > maxMatch {
		wrong("match: use a regular expression of 1 to %d bytes", maxMatch)
	} else if _, err := regexp.Compile(c.Match); err != nil {
		wrong("match: %w", err)
	}
	if !slices.Contains([]string{"", "code", "comments", "text"}, c.In) {
		wrong("in: unknown value %q: use code, comments or text", c.In)
	}
	if !slices.Contains([]string{"", "added", "removed"}, c.When) {
		wrong("when: unknown value %q: use added or removed", c.When)
	}
	if c.Confidence < 0 || c.Confidence > 1 {
		wrong("confidence: %g is not between 0 and 1", c.Confidence)
	}
	return errs
}

func allTypes() []Type {
	return []Type{TestDeletion, TestSkipping, AssertionWeakening, CoverageRegression, ValidationBypass, ErrorSuppression,
		FeatureRemoval, TestFailure, RunIncomplete, ProtectedChange}
}

func joined[T ~string](all []T) string {
	var names []string
	for _, t := range all {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// On reports whether a pattern is enabled.
func (r *Rules) On(id string) bool { return r == nil || !r.off[id] }

// Action returns the user's setting for a pattern; empty if there is none.
func (r *Rules) Action(id string) Action {
	if r == nil {
		return ""
	}
	return r.actions[id]
}

// actsFrom returns the confidence from which a sign blocks in Standard mode.
func (r *Rules) actsFrom() float64 {
	if r == nil {
		return ActConfidence
	}
	return cmp.Or(r.sure, ActConfidence)
}

// fits reports whether a custom pattern applies to a file.
func (c *compiled) fits(path string, lang *syntax.Language) bool {
	if len(c.Languages) > 0 && (lang == nil || !slices.Contains(c.Languages, lang.Name)) {
		return false
	}
	return len(c.Paths) == 0 || slices.ContainsFunc(c.Paths,
		func(g string) bool { return doublestar.MatchUnvalidated(g, path) })
}

// custom matches the user's patterns against lines that one version has more often than
// the other.
func (r *run) custom(p *pair) []Finding {
	if r.in.Rules == nil {
		return nil
	}
	var all []Finding
	for i := range r.in.Rules.custom {
		c := &r.in.Rules.custom[i]
		if r.in.Rules.off[c.ID] || !c.fits(p.path, p.lang) {
			continue
		}
		from, to := p.old, p.new
		oldText, newText := string(p.change.Old.Content), string(p.change.New.Content)
		if c.When == "removed" {
			from, to, oldText, newText = to, from, newText, oldText
		}
		if to == nil {
			continue
		}
		had := make(map[string]int)
		for _, h := range c.hits(from, p.lang, oldText) {
			had[h.s]++
		}
		for _, h := range c.hits(to, p.lang, newText) {
			if had[h.s]--; had[h.s] >= 0 {
				continue
			}
			all = append(all, Finding{
				Type: c.Type, Tier: c.Tier, Severity: c.Severity, Pattern: c.ID, File: p.path, Line: h.line,
				Gone: c.When == "removed", Message: c.Message, Evidence: h.s, Confidence: c.Confidence,
			})
		}
	}
	return all
}

// hit is a line that a pattern matched.
type hit struct {
	line int
	s    string
}

// hits returns the lines that a custom pattern matches.
func (c *compiled) hits(m *syntax.Model, lang *syntax.Language, src string) []hit {
	if m == nil {
		return nil
	}
	read := src
	if lang != nil && c.In != "text" {
		read = syntax.Blank(lang, src, c.In == "comments")
	}
	lines := strings.Split(src, "\n")
	var all []hit
	n := 0
	for line := range strings.Lines(read) {
		if c.re.MatchString(strings.TrimRight(line, "\r\n")) {
			all = append(all, hit{n + 1, strings.TrimSpace(lines[n])})
		}
		n++
	}
	return all
}

// Waiver removes findings. The caller ensures that no agent can write one.
type Waiver struct {
	// Fingerprint is the one finding that it removes. If it is empty, Pattern and Path are
	// set.
	Fingerprint string `json:"fingerprint,omitempty" yaml:"fingerprint"`
	// Pattern is an ID, an alias, or * for all.
	Pattern string `json:"pattern" yaml:"pattern"`
	// Path is a glob with ** for folders.
	Path   string `json:"path" yaml:"path"`
	Reason string `json:"reason" yaml:"reason"`
	// Expires is when it ends; the zero value is never.
	Expires time.Time `json:"expires,omitzero" yaml:"expires"`
	// By is the person who granted it; may be empty.
	By string `json:"by,omitempty" yaml:"by"`
}

// Waived is a finding with the waiver that removed it.
type Waived struct {
	Finding
	Waiver Waiver `json:"waiver"`
}

// Check returns the problems of a waiver.
func (w *Waiver) Check() error {
	var errs []error
	if w.Fingerprint != "" && !fingerprint().MatchString(w.Fingerprint) {
		errs = append(errs, fmt.Errorf("fingerprint: %q is not one: use the 16 hexadecimal digits in the report",
			w.Fingerprint))
	}
	single := w.Fingerprint != ""
	if _, ok := patternOf(w.Pattern); !ok && w.Pattern != "*" && len(byAlias(w.Pattern)) == 0 &&
		!customID().MatchString(w.Pattern) && !(single && w.Pattern == "") {
		errs = append(errs, fmt.Errorf("pattern: unknown pattern %q: use an ID, an alias, or * for all", w.Pattern))
	}
	if w.Path == "" && !single || !doublestar.ValidatePattern(w.Path) {
		errs = append(errs, fmt.Errorf("path: invalid glob %q: use a pattern like tests/**", w.Path))
	}
	if !w.reasoned() {
		errs = append(errs, errors.New("reason: empty; say why the finding does not count"))
	}
	return errors.Join(errs...)
}

// reasoned reports whether the waiver has a reason other than the dots of the report.
func (w *Waiver) reasoned() bool { return strings.Trim(w.Reason, " \t\r\n.…") != "" }

// Expired reports whether the waiver has expired.
func (w *Waiver) Expired(now time.Time) bool { return !w.Expires.IsZero() && now.After(w.Expires) }

// Covers reports whether the waiver applies to a finding, ignoring its expiry.
func (w *Waiver) Covers(f *Finding) bool { return w.covers(f, f.Fingerprint()) }

// covers does what Covers does for a finding with a fingerprint.
func (w *Waiver) covers(f *Finding, id string) bool {
	if !w.reasoned() || w.Fingerprint != "" && w.Fingerprint != id {
		return false
	}
	named := w.Pattern == "*" || w.Pattern == f.Pattern || slices.Contains(byAlias(w.Pattern), f.Pattern)
	inPath := doublestar.MatchUnvalidated(w.Path, f.File)
	if w.Fingerprint != "" {
		return (named || w.Pattern == "") && (inPath || w.Path == "")
	}
	return named && inPath
}

// String returns what the waiver covers.
func (w *Waiver) String() string {
	var words []string
	for _, word := range []string{w.Fingerprint, w.Pattern} {
		if word != "" {
			words = append(words, word)
		}
	}
	if w.Path != "" {
		words = append(words, "for", w.Path)
	}
	return strings.Join(words, " ")
}

// fingerprint matches the fingerprint of a finding.
var fingerprint = lazyregexp.New(`^[0-9a-f]{16}$`)

// waive moves the findings that waivers cover, and lists the waivers that cover none.
func (r *run) waive() {
	used := make([]bool, len(r.in.Waivers))
	r.report.Findings = slices.DeleteFunc(r.report.Findings, func(f Finding) bool {
		waived, id := false, f.Fingerprint()
		for i := range r.in.Waivers {
			if w := &r.in.Waivers[i]; !w.Expired(r.in.Now) && w.covers(&f, id) {
				if !waived {
					r.report.Waived = append(r.report.Waived, Waived{Finding: f, Waiver: *w})
				}
				waived, used[i] = true, true
			}
		}
		return waived
	})
	for i := range r.in.Waivers {
		if w := &r.in.Waivers[i]; !used[i] && !w.Expired(r.in.Now) {
			r.report.Unused = append(r.report.Unused, *w)
		}
	}
}
