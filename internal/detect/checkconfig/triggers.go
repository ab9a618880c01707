package checkconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// triggers says which events start a workflow of GitHub, and with which filters.
type triggers map[string][]setting

func triggersOf(f *version) triggers {
	t := make(triggers)
	for i := range f.settings {
		s := &f.settings[i]
		if len(s.path) == 0 || s.path[0] != "on" && s.path[0] != "true" {
			continue
		}
		at := s.path[1:]
		if len(at) == 0 || strings.HasPrefix(at[0], "#") { // on: push, or a list
			t[s.value] = append(t[s.value], setting{line: s.line})
			continue
		}
		t[at[0]] = append(t[at[0]], setting{path: at[1:], value: s.value, line: s.line})
	}
	return t
}

// checksChanges reports whether the workflow runs for pull requests or pushes. Files without
// such events (other systems) always do.
func (t triggers) checksChanges() bool {
	if len(t) == 0 {
		return true
	}
	if t["push"] != nil && (len(t.filter("push", "tags")) == 0 || len(t.filter("push", "branches")) > 0) {
		return true
	}
	for _, event := range []string{"pull_request", "pull_request_target", "merge_group", "workflow_call"} {
		if t[event] != nil {
			return true
		}
	}
	return false
}

// filter returns the values of a filter of an event.
func (t triggers) filter(event, name string) []setting {
	var all []setting
	for _, s := range t[event] {
		if len(s.path) > 0 && s.path[0] == name && s.value != "" {
			all = append(all, s)
		}
	}
	return all
}

var (
	mainBranch = lazyregexp.New(`^(main|master|trunk|develop|dev|\*\*?|\$default-branch)$`)
	noCode     = lazyregexp.New(`(?i)\.(md|rst|txt|adoc|png|svg|html)$|^\**/?(docs?|\.github|website|examples?)/|LICENSE|README|CHANGE|` +
		`\.gitignore|CODEOWNERS|AUTHORS|\.all-contributorsrc`)
)

// compareTriggers returns what no longer starts the checks of a workflow.
func compareTriggers(old, now triggers) []judgement {
	var all []judgement
	lost := func(level Level, s setting, gone bool, format string, args ...any) {
		all = append(all, judgement{level, s, gone, "on: " + fmt.Sprintf(format, args...)})
	}
	for _, event := range []string{"pull_request", "push"} {
		was, is := old[event], now[event]
		switch {
		case was == nil:
			continue
		case is == nil && (event != "pull_request" || now["pull_request_target"] == nil):
			lost(Weaker, was[0], true, "%s removed", event)
			continue
		}
		had, has := old.filter(event, "branches"), now.filter(event, "branches")
		isMain := func(s setting) bool { return mainBranch().MatchString(s.value) }
		if len(has) > 0 && !slices.ContainsFunc(has, isMain) && (len(had) == 0 || slices.ContainsFunc(had, isMain)) {
			lost(Weaker, has[0], false, "%s only for branches %s", event, shown(has[0].value))
		}
		for _, name := range []string{"paths-ignore", "branches-ignore"} {
			for _, s := range now.filter(event, name) {
				known := slices.ContainsFunc(old.filter(event, name), func(o setting) bool { return o.value == s.value })
				if !known && !noCode().MatchString(s.value) {
					lost(Weaker, s, false, "%s: %s: %s added", event, name, shown(s.value))
				}
			}
		}
		hadPaths, paths := old.filter(event, "paths"), now.filter(event, "paths")
		if len(hadPaths) == 0 && len(paths) > 0 && !slices.ContainsFunc(paths, func(s setting) bool {
			return strings.Contains(s.value, "*")
		}) {
			lost(Weaker, paths[0], false, "%s only for paths %s", event, shown(paths[0].value))
		} else if len(hadPaths) == 0 && len(paths) > 0 {
			lost(Unclear, paths[0], false, "%s only for paths %s", event, shown(paths[0].value))
		}
	}
	return all
}
