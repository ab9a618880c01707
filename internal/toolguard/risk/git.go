package risk

import (
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
)

// gitCall is a command of git without the options of git itself.
type gitCall struct {
	verb string
	// options are the arguments with a dash, without the values of those of one letter; others
	// are the remaining arguments.
	options, others []string
	// paths is set if arguments follow "--".
	paths bool
}

// gitValues returns the letters of the options that take a value: the next argument if none is
// attached, and those that take an attached value only.
func gitValues(verb string) (next, attached string) {
	switch verb {
	case "commit":
		return "mFCct", "uS"
	case "merge":
		return "msXF", "S"
	case "rebase", "pull":
		return "sXxC", "S"
	case "checkout":
		return "bB", ""
	case "switch":
		return "cC", ""
	case "worktree":
		return "bB", ""
	case "clean":
		return "e", ""
	case "push", "fetch":
		return "oj", ""
	case "branch":
		return "u", ""
	case "stash":
		return "m", ""
	case "tag":
		return "mFu", "n"
	case "restore":
		return "s", ""
	}
	return "", ""
}

// parseGit returns the call of a verb with its arguments.
func parseGit(verb string, args []string) gitCall {
	g := gitCall{verb: verb}
	next, attached := gitValues(verb)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			g.paths = i+1 < len(args)
			g.others = append(g.others, args[i+1:]...)
			return g
		case strings.HasPrefix(arg, "--"):
			g.options = append(g.options, arg)
		case strings.HasPrefix(arg, "-") && arg != "-":
			at := strings.IndexAny(arg[1:], next+attached)
			if at < 0 {
				g.options = append(g.options, arg)
				continue
			}
			g.options = append(g.options, arg[:at+2])
			if at+2 == len(arg) && strings.IndexByte(next, arg[at+1]) >= 0 {
				i++
			}
		default:
			g.others = append(g.others, arg)
		}
	}
	return g
}

// has reports whether an option is set. Git accepts the beginning of a long option.
func (g *gitCall) has(short byte, long string) bool {
	return slices.ContainsFunc(g.options, func(o string) bool {
		if name, ok := strings.CutPrefix(o, "--"); ok {
			name, _, _ = strings.Cut(name, "=")
			return len(name) > 2 && strings.HasPrefix(long, name)
		}
		return short != 0 && strings.IndexByte(o, short) > 0
	})
}

// sub returns the first argument that is no option.
func (g *gitCall) sub() string { return strings.Join(g.others[:min(1, len(g.others))], "") }

// git assesses a git command.
func (a *assessment) git(args []string, depth int) {
	dir := a.at.Dir
	defer func() { a.at.Dir = dir }()
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // options of git itself
		takes := slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--config-env"}, args[0])
		if len(args) > 1 && args[0] == "-C" {
			a.changeDir(args[1])
		}
		if len(args) > 1 && (args[0] == "-c" || args[0] == "--config-env") {
			a.gitSetting(args[1], depth)
		}
		if setting, ok := strings.CutPrefix(args[0], "--config-env="); ok {
			a.gitSetting(setting, depth)
		}
		args = args[1:]
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return
	}
	g := parseGit(args[0], args[1:])
	command := "git " + shown(strings.Join(args, " "))
	for _, found := range []struct {
		pattern Pattern
		matches bool
	}{{DiscardWork, g.discards()}, {RewriteHistory, g.rewrites()}, {StashWork, g.stashes()},
		{SkipChecks, g.skips() || g.runsHooks() && a.hooksOff()}} {
		if found.matches {
			a.add(found.pattern, command)
		}
	}
	a.gitFiles(&g, command)
	a.gitRuns(&g, args[1:], depth)
}

// gitFiles assesses the files that a git command removes or moves.
func (a *assessment) gitFiles(g *gitCall, command string) {
	switch g.verb {
	case "rm":
		if g.has(0, "cached") || g.has('n', "dry-run") {
			return
		}
		a.add(GitRemove, command)
		for _, f := range g.others {
			a.removes(f, g.has('r', ""))
		}
	case "mv":
		for _, f := range g.others[:max(0, len(g.others)-1)] {
			a.moves(f)
		}
	}
}

// gitRuns assesses the command lines and settings that a git command is given.
func (a *assessment) gitRuns(g *gitCall, args []string, depth int) {
	switch {
	case g.verb == "config":
		for i, name := range g.others[:max(0, len(g.others)-1)] {
			a.gitSetting(name+"="+g.others[i+1], depth)
		}
	case g.verb == "submodule" && g.sub() == "foreach":
		at := slices.Index(args, "foreach") + 1
		for at < len(args) && strings.HasPrefix(args[at], "-") {
			at++
		}
		if line := args[at:]; len(line) == 1 {
			a.nested(line[0], depth)
		} else if depth < maxNested {
			a.words(slices.Clone(line), depth+1)
		}
	case g.verb == "bisect" && g.sub() == "run" && depth < maxNested:
		a.words(slices.Clone(args[1:]), depth+1)
	case g.verb == "rebase":
		for i, arg := range args {
			if line, ok := strings.CutPrefix(arg, "--exec="); ok {
				a.nested(line, depth)
			} else if (arg == "-x" || arg == "--exec") && i+1 < len(args) {
				a.nested(args[i+1], depth)
			}
		}
	}
}

// gitSetting assesses a setting of git that runs a command or disables hooks.
func (a *assessment) gitSetting(setting string, depth int) {
	name, value, _ := strings.Cut(setting, "=")
	switch name = strings.ToLower(name); {
	case name == "core.hookspath":
		a.add(SkipChecks, "git config "+shown(setting))
	case strings.HasPrefix(name, "alias.") && strings.HasPrefix(value, "!"):
		a.nested(value[1:], depth)
	case strings.HasPrefix(name, "alias."):
		a.nested("git "+value, depth)
	case slices.Contains([]string{"core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "sequence.editor",
		"diff.external", "credential.helper"}, name):
		a.nested(value, depth)
	}
}

// skips reports whether a git command skips hooks, or makes git ignore changes of a file.
func (g *gitCall) skips() bool {
	switch g.verb {
	case "commit":
		return g.has('n', "no-verify")
	case "push", "merge", "pull", "rebase", "am":
		return g.has(0, "no-verify")
	case "update-index":
		return g.has(0, "assume-unchanged") || g.has(0, "skip-worktree")
	}
	return false
}

// runsHooks reports whether a git command runs hooks that check the work.
func (g *gitCall) runsHooks() bool {
	return slices.Contains([]string{"commit", "push", "merge", "rebase", "am"}, g.verb)
}

// hooksOff reports whether the command line has set a variable that makes hooks be skipped.
func (a *assessment) hooksOff() bool {
	for name := range a.vars {
		if skipsHooks(name) {
			return true
		}
	}
	return false
}

// rewrites reports whether a git command rewrites or removes history, or moves a branch away
// from its commits.
func (g *gitCall) rewrites() bool {
	switch g.verb {
	case "push":
		return g.has('f', "force") || g.has(0, "force-with-lease") || g.has(0, "mirror") ||
			g.has('d', "delete") || g.has(0, "prune") || slices.ContainsFunc(g.others, func(o string) bool {
			return strings.HasPrefix(o, "+") || strings.HasPrefix(o, ":")
		})
	case "fetch", "pull":
		return g.overwritesBranch()
	case "branch":
		return g.has('D', "") || g.has('M', "") || g.has('C', "") || g.has('f', "force")
	case "checkout", "worktree":
		return g.has('B', "")
	case "switch":
		return g.has('C', "force-create")
	case "tag":
		return g.has('D', "") || g.has('d', "delete") || g.has('f', "force")
	case "filter-branch", "filter-repo":
		return true
	case "replace":
		return !g.has('l', "list") && len(g.others) > 0
	case "update-ref":
		return g.has('d', "delete") || g.has(0, "stdin") || strings.HasPrefix(g.sub(), "refs/heads/")
	case "reflog":
		return (g.sub() == "expire" || g.sub() == "delete") && !g.has('n', "dry-run")
	case "gc":
		return g.has(0, "prune")
	case "prune":
		return !g.has('n', "dry-run")
	}
	return false
}

// overwritesBranch reports whether a fetch moves a branch of the user to other commits.
func (g *gitCall) overwritesBranch() bool {
	if len(g.others) < 2 {
		return false
	}
	return slices.ContainsFunc(g.others[1:], func(spec string) bool {
		from, to, ok := strings.Cut(spec, ":")
		return ok && to != "" && !strings.HasPrefix(to, "refs/remotes/") &&
			(strings.HasPrefix(from, "+") || g.has('f', "force"))
	})
}

// stashes reports whether a git command takes files out of the workspace that git does not
// track: a check then sees less than the user has.
func (g *gitCall) stashes() bool {
	return g.verb == "stash" && slices.Contains([]string{"", "push", "save"}, g.sub()) &&
		(g.has('u', "include-untracked") || g.has('a', "all"))
}

// discards reports whether a git command discards uncommitted work.
func (g *gitCall) discards() bool {
	switch g.verb {
	case "checkout":
		makes := g.has('b', "") || g.has('B', "") || g.has('t', "track") || g.has(0, "orphan")
		paths := g.paths || len(g.others) > 1 || slices.ContainsFunc(g.others, isPath)
		return g.has('f', "force") || g.has(0, "pathspec-from-file") || paths && !makes
	case "switch":
		return g.has('f', "force") || g.has(0, "discard-changes")
	case "restore":
		return !g.has('S', "staged") || g.has('W', "worktree")
	case "reset":
		return g.has(0, "hard") || g.has(0, "merge") || g.has(0, "keep")
	case "clean":
		return !g.has('n', "dry-run")
	case "stash":
		return g.sub() == "drop" || g.sub() == "clear"
	case "read-tree":
		return g.has('u', "") && g.has(0, "reset")
	case "checkout-index":
		return g.has('f', "force")
	case "worktree":
		return g.sub() == "remove" && g.has('f', "force")
	case "submodule":
		return (g.sub() == "deinit" || g.sub() == "update") && g.has('f', "force")
	}
	return false
}

// undoesDiff reports whether a pipeline reverts uncommitted changes: git diff | git apply -R.
func undoesDiff(from, to []string) bool {
	if len(from) < 2 || len(to) == 0 || path.Base(from[0]) != "git" || from[1] != "diff" && from[1] != "stash" {
		return false
	}
	options, _ := split(to[1:])
	switch path.Base(to[0]) {
	case "git":
		return len(to) > 1 && to[1] == "apply" && has(options, 'R', "reverse") && !has(options, 0, "check") &&
			!has(options, 0, "stat")
	case "patch":
		return has(options, 'R', "reverse") && !has(options, 0, "dry-run")
	}
	return false
}

// isPath reports whether a word that may be a branch looks like a file.
func isPath(word string) bool {
	return word == "." || strings.HasSuffix(word, "/") || strings.HasPrefix(word, "./") || strings.HasPrefix(word, ":") ||
		path.Ext(word) != "" && project.Classify(word).Class != project.Other
}
