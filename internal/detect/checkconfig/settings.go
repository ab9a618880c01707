package checkconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// change is what two versions of a setting differ in.
type change struct {
	class        project.Class
	path         []string
	group        string
	gone, added  []setting
	before, kept []setting // all old values, and those that are new as well
}

// difference returns the changed settings by their groups, in the order of the old version.
func difference(class project.Class, old, now []setting) []change {
	count := make(map[string]int)
	var order []string
	groups := make(map[string]*change)
	at := func(s *setting) *change {
		g := s.group()
		if groups[g] == nil {
			groups[g] = &change{class: class, path: s.path, group: g}
			order = append(order, g)
		}
		return groups[g]
	}
	id := func(s *setting) string { return s.group() + "\x00" + s.value }
	for i := range now {
		count[id(&now[i])]++
	}
	for i := range old {
		c := at(&old[i])
		c.before = append(c.before, old[i])
		if count[id(&old[i])]--; count[id(&old[i])] < 0 {
			c.gone = append(c.gone, old[i])
		} else {
			c.kept = append(c.kept, old[i])
		}
	}
	clear(count)
	for i := range old {
		count[id(&old[i])]++
	}
	for i := range now {
		c := at(&now[i])
		if count[id(&now[i])]--; count[id(&now[i])] < 0 {
			c.added = append(c.added, now[i])
		}
	}
	var all []change
	for _, g := range order {
		if c := groups[g]; len(c.gone)+len(c.added) > 0 {
			all = append(all, *c)
		}
	}
	return all
}

// judgement is what a change of a setting means.
type judgement struct {
	level Level
	at    setting
	old   bool // at is in the old version
	text  string
}

// lints reports whether a setting is one of a linter or a type checker. A rule, a file or a
// plugin less is unclear there: ordinary work does that as often as cheats.
func (c *change) lints() bool {
	kind := checkOf(c.group)
	return c.class == project.LintConfig || kind == "lint" || kind == "types"
}

// judge returns what a changed setting means; nil if it is harmless.
func (c *change) judge() *judgement {
	j := c.judgeValue()
	if j != nil && c.lints() && (len(c.gone) == 0 || len(c.added) == 0) {
		j.level = min(j.level, Unclear)
	}
	return j
}

func (c *change) judgeValue() *judgement {
	k := kindOf(c.path)
	if k == neutral {
		return nil
	}
	if k != excludes {
		if j, ok := c.severities(); ok {
			return j
		}
	}
	if j, ok := c.numbers(k); ok {
		return j
	}
	if j, ok := c.switches(k); ok {
		return j
	}
	j := c.lists(k)
	if j != nil && c.lints() {
		j.level = Unclear
	}
	return j
}

func (c *change) weaker(level Level, s setting, old bool, format string, args ...any) *judgement {
	return &judgement{level: level, at: s, old: old, text: c.group + ": " + fmt.Sprintf(format, args...)}
}

// replaced describes the first values that differ.
func (c *change) replaced(level Level) *judgement {
	switch {
	case len(c.gone) == 0:
		return c.weaker(level, c.added[0], false, "%s added", shown(c.added[0].value))
	case len(c.added) == 0:
		return c.weaker(level, c.gone[0], true, "%s removed", shown(c.gone[0].value))
	}
	return c.weaker(level, c.added[0], false, "%s → %s", shown(c.gone[0].value), shown(c.added[0].value))
}

func shown(v string) string {
	const most = 60
	if v = strings.Join(strings.Fields(v), " "); len(v) > most {
		v = strings.ToValidUTF8(v[:most], "") + "…"
	}
	return v
}

// severities compares rules with a weight.
func (c *change) severities() (*judgement, bool) {
	heaviest := func(list []setting) (int, bool) {
		most := -1
		for i := range list {
			n, ok := severity(list[i].value)
			if _, numeric := number(list[i].value); !ok && !numeric {
				if _, boolean := truth(list[i].value); !boolean {
					continue
				}
			}
			most = max(most, n)
		}
		return most, most >= 0
	}
	isRule := slices.ContainsFunc(names(c.path), func(w string) bool {
		return w == "rules" || w == "lints" || w == "severity" || strings.HasPrefix(w, "dotnet-diagnostic") ||
			strings.HasPrefix(w, "ktlint")
	})
	old, hadOne := heaviest(c.gone)
	now, hasOne := heaviest(c.added)
	onlyWords := func(list []setting) bool {
		return len(list) > 0 && !slices.ContainsFunc(list, func(s setting) bool { _, ok := severity(s.value); return !ok })
	}
	switch {
	case !onlyWords(c.gone) && !onlyWords(c.added) || !isRule && !(onlyWords(c.gone) && onlyWords(c.added)) &&
		!(onlyWords(c.added) && now == 0 && len(c.gone) > 0):
		return nil, false
	case hadOne && hasOne && now < old, !hadOne && hasOne && now == 0, hadOne && !hasOne && old >= 2:
		return c.replaced(Weaker), true
	}
	return nil, true
}

// numbers compares limits.
func (c *change) numbers(k kind) (*judgement, bool) {
	of := func(list []setting) []float64 {
		var all []float64
		for i := range list {
			if n, ok := number(list[i].value); ok {
				all = append(all, n)
			}
		}
		slices.Sort(all)
		return all
	}
	old, now := of(c.gone), of(c.added)
	if len(old)+len(now) == 0 || len(old) < len(c.gone) || len(now) < len(c.added) {
		return c.masked()
	}
	if k == exits {
		if len(now) > 0 && now[0] == 0 {
			return c.replaced(Weaker), true
		}
		return nil, true
	}
	limit := limitOf(c.path, c.class)
	if k == selects && limit == unknown { // an argument
		limit = atLeast
	}
	if limit == neutral {
		return nil, true
	}
	for i := range min(len(old), len(now)) {
		if limit == atLeast && now[i] < old[i] || limit == atMost && now[i] > old[i] {
			return c.replaced(Weaker), true
		}
	}
	switch {
	case limit == unknown:
		return c.unclear(), true
	case len(old) > len(now) && limit == atLeast, len(now) > len(old) && limit == atLeast && now[0] == 0:
		return c.replaced(Weaker), true
	case len(old) > len(now):
		return c.unclear(), true
	}
	return nil, true
}

var digits = lazyregexp.New(`\d+(?:\.\d+)?`)

// masked compares values about coverage that differ only in their numbers.
func (c *change) masked() (*judgement, bool) {
	if len(c.gone) != 1 || len(c.added) != 1 {
		return nil, false
	}
	old, now := c.gone[0].value, c.added[0].value
	if digits().ReplaceAllString(old, "0") != digits().ReplaceAllString(now, "0") ||
		!strings.Contains(old, "total") && !strings.Contains(strings.ToLower(c.group+old), "cover") {
		return nil, false
	}
	a, b := digits().FindAllString(old, -1), digits().FindAllString(now, -1)
	for i := range a {
		before, _ := number(a[i])
		if after, _ := number(b[i]); after < before {
			return c.replaced(Weaker), true
		}
	}
	return nil, true
}

// switches compares true and false.
func (c *change) switches(k kind) (*judgement, bool) {
	was, wasOne, ok := only(c.gone)
	is, isOne, ok2 := only(c.added)
	if !ok || !ok2 || !wasOne && !isOne {
		return nil, false
	}
	worse := Weaker
	if c.soft() {
		worse = Unclear
	}
	switch {
	case k == narrows && isOne && !is && strings.HasPrefix(innermost(c.path), "test"):
		return c.replaced(Weaker), true // of Cargo.toml
	case k == excludes || k == narrows:
		if isOne && is {
			return c.replaced(worse), true
		}
		return nil, true
	case k == strict || k == checks || k == selects:
		if isOne && !is || wasOne && was && !isOne {
			return c.replaced(worse), true
		}
		return nil, true
	}
	return c.unclear(), true
}

// only returns the truth value of a list of at most one; ok is false for other values.
func only(list []setting) (is, one, ok bool) {
	for i := range list {
		v, boolean := truth(list[i].value)
		if !boolean {
			return false, false, false
		}
		is, one = is || v, true
	}
	return is, one, true
}

// lists compares values of which there may be several.
func (c *change) lists(k kind) *judgement {
	gone, added := difference2(c.gone, c.added)
	switch {
	case len(gone)+len(added) == 0:
		return nil
	case k == excludes:
		return c.excluded(gone, added)
	case k == narrows:
		for _, s := range added {
			if !slices.ContainsFunc(gone, func(o setting) bool { return covers(s.value, o.value) }) {
				return c.weaker(Weaker, s, false, "%s added", shown(s.value))
			}
		}
		return nil
	case k == selects:
		return c.selected(gone, added)
	case k == checks || k == strict:
		if len(gone) == 0 {
			return nil
		}
		if len(added) > 0 { // others instead
			return c.unclear()
		}
		return c.weaker(Weaker, gone[0], true, "%s removed", shown(gone[0].value))
	case k == platform && len(gone) == 0:
		return nil
	}
	return c.unclear()
}

// difference2 splits values at commas and leaves out those on both sides.
func difference2(gone, added []setting) (lost, gained []setting) {
	split := func(list []setting) []setting {
		var all []setting
		for _, s := range list {
			for part := range strings.FieldsFuncSeq(s.value, func(c rune) bool { return c == ',' || c == ';' || c == '\n' }) {
				if part = strings.TrimSpace(part); part != "" {
					all = append(all, setting{path: s.path, value: part, line: s.line})
				}
			}
		}
		return all
	}
	lost, gained = split(gone), split(added)
	without := func(list, other []setting) []setting {
		return slices.DeleteFunc(slices.Clone(list), func(s setting) bool {
			return slices.ContainsFunc(other, func(o setting) bool { return o.value == s.value })
		})
	}
	return without(lost, gained), without(gained, lost)
}

// generated matches paths whose files are not checked.
var generated = lazyregexp.New(`(^|[/*"])\.?(node_modules|vendor|third_party|dist|build|target|coverage|generated|gen|venv|` +
	`__pycache__|\.git|\.tox|\.nox|obj|__generated__)([/*"]|$)|\.min\.|\.d\.ts$|[._]pb2?[._]|\.gen\.|\.md$|\.svg$`)

// ofTests matches paths of tests, whose own coverage says nothing.
var ofTests = lazyregexp.New(`(^|[/*"._])(tests?|specs?)([/*"._]|$)`)

// excluded compares lists of what is not checked.
func (c *change) excluded(gone, added []setting) *judgement {
	coverage := c.class == project.CoverageConfig || strings.Contains(c.group, "cov")
	added = slices.DeleteFunc(added, func(s setting) bool {
		return s.value == "" || generated().MatchString(s.value) || coverage && ofTests().MatchString(s.value)
	})
	switch {
	case len(added) == 0:
		return nil
	case c.soft(), len(added) <= len(gone):
		return c.unclear()
	}
	return c.weaker(Weaker, added[0], false, "%s added", shown(added[0].value))
}

// soft reports whether honest work often adds such an exclusion: an option of a rule, or one
// of softer.
func (c *change) soft() bool {
	all := names(c.path)
	rules := slices.IndexFunc(all, func(w string) bool { return strings.HasSuffix(w, "rules") })
	outer := rules >= 0 && !slices.ContainsFunc(all[rules:], func(w string) bool { return excluding().MatchString(w) })
	return outer || softer().MatchString(innermost(c.path))
}

// selected compares lists of what is checked.
func (c *change) selected(gone, added []setting) *judgement {
	present := slices.Concat(added, c.kept)
	for _, s := range gone {
		if slices.ContainsFunc(present, func(n setting) bool { return covers(n.value, s.value) }) {
			continue
		}
		narrower := func(n setting) bool { return covers(s.value, n.value) }
		if len(added) > 0 && !slices.ContainsFunc(added, narrower) || len(present) == 0 {
			return c.unclear() // another path, or the default, which selects all
		}
		return c.weaker(Weaker, s, true, "%s removed", shown(s.value))
	}
	isPath := func(s setting) bool { return strings.ContainsAny(s.value, "./*") }
	if len(added) == 0 || slices.ContainsFunc(c.before, isPath) {
		return nil
	}
	if slices.ContainsFunc(added, func(s setting) bool { return broad(s.value) }) {
		return nil
	}
	isFile := func(s setting) bool { return oneFile().MatchString(s.value) }
	if innermost(c.path) == "args" && slices.ContainsFunc(added, isFile) {
		return c.replaced(Weaker)
	}
	return c.unclear()
}

// oneFile matches the name of a file of code, or of a test in it.
var oneFile = lazyregexp.New(`\.(py|rb|[cm]?[jt]sx?|php|java|kt|cs|rs|go|feature|ml|exs?)\b|::|_test\b`)

// broad reports whether a pattern selects all files, or all of a kind.
func broad(v string) bool {
	v = strings.Trim(v, `"'`)
	return v == "." || v == "./..." || v == "*" || strings.Contains(v, "**") || strings.HasPrefix(v, "*.") || v == "./"
}

// covers reports whether a pattern, a path or a word selects all that another one does.
func covers(by, what string) bool {
	by, what = strings.Trim(by, `"'`), strings.Trim(what, `"'`)
	if by == what || by == "." || by == "./..." || by == "" {
		return true
	}
	trim := func(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, "./"), "/") }
	by, what = trim(by), trim(what)
	concrete := strings.NewReplacer("**", "x/y", "*", "x", "{", "", "}", "").Replace(what)
	ok, err := doublestar.Match(by, concrete)
	return by == what || err == nil && ok || strings.HasPrefix(what, strings.TrimSuffix(by, "...")+"/")
}

// unclear is a change that a person should see.
func (c *change) unclear() *judgement {
	return c.replaced(Unclear)
}
