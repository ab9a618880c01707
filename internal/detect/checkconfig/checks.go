package checkconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// check is a command or an action that checks something, where it is run.
type check struct {
	command
	kind   string
	file   int
	class  project.Class
	path   []string
	guards []setting
	needed bool // a prerequisite in a Makefile
	action bool // an action or a workflow of others, whose checks are not in the file
}

// job returns the name of the job, the target or the script that runs a check.
func (c *check) job() string {
	for i, p := range c.path {
		if (p == "jobs" || p == "scripts" || p == "tasks") && i+1 < len(c.path) {
			return c.path[i+1]
		}
	}
	for _, p := range c.path {
		if !strings.HasPrefix(p, "#") {
			return p
		}
	}
	return ""
}

func (c *check) String() string {
	name := fmt.Sprintf("%q", shown(c.text))
	if job := c.job(); job != "" && job != "run" {
		name += fmt.Sprintf(" of %q", job)
	}
	return name
}

var (
	// severalChecks matches commands that run checks of several kinds.
	severalChecks = lazyregexp.New(`(^|[^a-z])(check|ci|verify|all|qa|validate|tox|nox|pre-commit|prek)$`)
	// documents matches commands that build what is not checked.
	documents = lazyregexp.New(`(?i)doc|site|storybook|demo|example|publish|release|docker|image|deploy`)
	runKey    = lazyregexp.New(`(?i)(^|[./:])(run|scripts?|before[_-]script|after[_-]script|commands?|commands_\w+|cmds?|sh|bash|bat|` +
		`powershell|pwsh|exec|test_script|build_script|before_test|entry|steps)$`)
	guardKey = lazyregexp.New(`^(if|when|condition|only|except|rules|unless|enabled|continue-on-error|continueOnError|` +
		`allow_failure|soft_fail|failure|failFast|ignore_failure|ignoreFailures|branches|filters|returnStatus|skip|allow_fail)$`)
	forgiving = lazyregexp.New(`(?i)^(continue-?on-?error|allow_fail(ure)?|soft_fail|failure|ignore_?failures?|returnStatus)$`)
	// checkName matches scripts and targets that check, whatever they run.
	checkName = lazyregexp.New(`(?i)(^|[^a-z])(pre|post)?(tests?|testing|cov|cover|coverage|lint[a-z]*|check[a-z]*|types?check|ci|verify|` +
		`validate|specs?|units?|e2e|qa|stan|mutate|types?|style|format|fmt|audit|prepublish[a-z]*)([^a-z]|$)`)
	noCheck = lazyregexp.New(`(^|/)(checkout|cache|setup-|upload-|download-|install|publish|deploy|create-|release|login|labeler|` +
		`stale|lock-threads|github-script|test-reporter|configure-|init$|harden-runner|junit-report|action-gh-release)`)
)

// checksOf returns the checks among the settings of a file.
func checksOf(f *version) []check {
	var all []check
	for i := range f.settings {
		s := &f.settings[i]
		if s.key() == "uses" {
			if n := len(s.path); n == 3 && s.path[0] == "jobs" {
				reused := command{id: "workflow " + s.value, text: s.value, line: s.line}
				all = append(all, f.placed(check{command: reused, kind: "all", path: s.path, action: true}))
				continue
			}
			name, _, _ := strings.Cut(s.value, "@")
			if kind := checkOf(strings.ReplaceAll(name, "_", "-")); kind != "" && !noCheck().MatchString(name) {
				c := check{command: command{id: "action " + name, text: name, line: s.line}, kind: kind, path: s.path,
					action: true}
				all = append(all, f.placed(c))
			}
			continue
		}
		if !runs(f, s) {
			continue
		}
		for _, cmd := range commandsOf(s.value, s.line) {
			c := check{command: cmd, kind: checkOf(cmd.id), path: s.path, needed: s.path[max(len(s.path)-2, 0)] == "needs"}
			if kind, has := f.recipeKind(cmd.id); c.needed && has {
				c.kind = kind
			} else if c.kind == "" && !c.needed && f.namedCheck(s, cmd.id) {
				c.kind = cmp.Or(checkOf(strings.Join(s.path, " ")), "test")
			}
			if c.kind != "" && (c.kind != "build" || !documents().MatchString(cmd.id)) {
				all = append(all, f.placed(c))
			}
		}
	}
	return all
}

// namedCheck reports whether a command checks by the names around it.
func (f *version) namedCheck(s *setting, id string) bool {
	return strings.Contains(id, "cover") ||
		f.class != project.CIConfig && checkName().MatchString(strings.Join(s.path, " "))
}

// recipeKind returns the kind of the first check in the recipe of a target, if it has a recipe.
func (f *version) recipeKind(id string) (kind string, has bool) {
	for i := range f.settings {
		s := &f.settings[i]
		if len(s.path) != 2 || s.key() != "run" || "make "+s.path[0] != id {
			continue
		}
		has = true
		for _, cmd := range commandsOf(s.value, s.line) {
			kind = cmp.Or(kind, checkOf(cmd.id))
		}
	}
	return kind, has
}

// runs reports whether a setting is a command.
func runs(f *version, s *setting) bool {
	if len(s.path) > 0 && (s.path[0] == "scripts" || s.path[0] == "tasks") {
		return true
	}
	joined := strings.Join(s.path, " ")
	return runKey().MatchString(s.key()) && !strings.Contains(joined, " with ") && s.key() != "branches" &&
		(f.class != project.LintConfig) || strings.Contains(joined, ".scripts") ||
		strings.HasPrefix(joined, "tool poe tasks") || strings.Contains(joined, " scripts ")
}

// placed adds to a check where it is and under which conditions it runs.
func (f *version) placed(c check) check {
	c.file, c.class = f.index, f.class
	for i := range f.settings {
		s := &f.settings[i]
		for j, key := range s.path {
			if guardKey().MatchString(key) && (j == 0 || j < len(c.path) && slices.Equal(s.path[:j], c.path[:j])) &&
				!(key == "branches" && j == 0 && c.class != project.CIConfig) {
				c.guards = append(c.guards, setting{path: s.path[j:], value: s.value, line: s.line})
				break
			}
		}
	}
	return c
}

// compareChecks returns what the new checks do less than the old ones.
func (c *comparison) compareChecks() {
	for i := range c.old {
		old := &c.old[i]
		best, found := c.match(old)
		switch {
		case found && len(best) == 0:
		case found:
			for _, j := range best {
				j.text = old.String() + ": " + j.text
				c.found(old.file, &j)
			}
		case c.replacedBy(old):
			c.found(old.file, &judgement{Unclear, setting{line: old.line}, true, old.String() + " replaced"})
		default:
			level := Weaker
			if old.kind == "build" && old.class != project.CIConfig || old.action ||
				!old.needed && (old.kind == "lint" || old.kind == "types") {
				level = Unclear
			}
			c.found(old.file, &judgement{level, setting{line: old.line}, true, old.String() + " removed"})
		}
	}
}

// match returns what is weaker in the new version of a check: the one in the same job, or
// else the best one. A prerequisite of a target is matched with that of another target only if
// it moved.
func (c *comparison) match(old *check) (best []judgement, found bool) {
	inJob := false
	moved := !old.needed || len(sameID(c.now, old)) >= len(sameID(c.old, old))
	for _, now := range sameID(c.now, old) {
		same := now.file == old.file && now.job() == old.job()
		if !same && !moved {
			continue
		}
		worse := weakened(old, &now)
		switch {
		case !found, same && !inJob, same == inJob && cost(worse) < cost(best):
			best, found = worse, true
			inJob = inJob || same
		}
	}
	return best, found
}

// sameID returns the checks that run the same as another one.
func sameID(all []check, as *check) []check {
	return slices.DeleteFunc(slices.Clone(all), func(c check) bool { return c.id != as.id })
}

func cost(all []judgement) int {
	n := 0
	for _, j := range all {
		n += int(j.level)*100 + 1
	}
	return n
}

// replacedBy reports whether the file still has, or gained, a check of the same kind. For a
// prerequisite its target has to have gained one.
func (c *comparison) replacedBy(old *check) bool {
	return slices.ContainsFunc(c.now, func(now check) bool {
		had := func(o check) bool { return o.id == now.id && o.job() == now.job() }
		if old.needed && (now.job() != old.job() || slices.ContainsFunc(c.old, had)) {
			return false
		}
		same := now.kind == old.kind || now.kind == "all" || severalChecks().MatchString(now.id) ||
			old.kind == "test" && now.kind == "coverage" || old.kind == "build" && now.kind == "test"
		return same && now.file == old.file && now.forgiven == ""
	})
}

// weakened returns what a check does less than its old version.
func weakened(old, now *check) []judgement {
	var all []judgement
	if now.forgiven != "" && old.forgiven == "" {
		all = append(all, judgement{Weaker, setting{line: now.line}, false, "its failure is ignored (" + now.forgiven + ")"})
	}
	class := project.RunnerConfig
	if old.kind == "lint" || old.kind == "types" {
		class = project.LintConfig
	}
	for _, d := range difference(class, old.options, now.options) {
		if j := d.judge(); j != nil {
			all = append(all, *j)
		}
	}
	return append(all, guarded(old.guards, now.guards)...)
}

var (
	// always matches conditions under which a check still runs, inPart those that leave out
	// systems, versions, copies of the repository or drafts.
	always = lazyregexp.New(`^[\s(!${}]*(always|success|failure|cancelled|succeeded|failed|succeededOrFailed)\(\)` +
		`([\s|&!()]*(always|success|failure|cancelled)\(\))*[\s)}]*$|^(on_success|always)$`)
	inPart = lazyregexp.New(`matrix\.|runner\.os|\.repository|repository_owner|\.fork|draft|dependabot|\.actor|experimental|` +
		`hashFiles|needs\.|steps\.|cache-hit`)
)

// guarded compares the conditions under which a check runs, and whether its failure counts.
func guarded(old, now []setting) []judgement {
	var all []judgement
	for _, g := range now {
		same := func(o setting) bool { return o.group() == g.group() && o.value == g.value }
		if slices.ContainsFunc(old, same) || always().MatchString(strings.TrimSpace(g.value)) {
			continue
		}
		is, boolean := truth(g.value)
		text := fmt.Sprintf("%s: %s added", g.group(), shown(g.value))
		switch forgives := forgiving().MatchString(g.path[0]); {
		case forgives && boolean && !is, g.path[0] == "enabled" && is:
		case inPart().MatchString(g.value):
			all = append(all, judgement{Unclear, g, false, text})
		case forgives, boolean && !is, g.value == "never", g.value == "manual", g.value == "on_fail":
			all = append(all, judgement{Weaker, g, false, text})
		case slices.ContainsFunc(old, func(o setting) bool { return o.path[0] == g.path[0] }):
			all = append(all, judgement{Unclear, g, false, text})
		default:
			all = append(all, judgement{Weaker, g, false, text})
		}
	}
	return all
}
