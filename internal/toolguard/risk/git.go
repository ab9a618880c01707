package risk

import (
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
)

// git assesses a git command.
func (a *assessment) git(args []string, depth int) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // options of git itself
		if args[0] == "-c" && len(args) > 1 {
			a.gitSetting(args[1], depth)
		}
		takes := args[0] == "-C" || args[0] == "-c" || args[0] == "--git-dir" || args[0] == "--work-tree"
		args = args[1:]
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return
	}
	options, others := split(args[1:])
	command := "git " + shown(strings.Join(args, " "))
	if discards(args[0], options, others, args[1:]) {
		a.add(DiscardWork, command)
	}
	if rewrites(args[0], options, others) {
		a.add(RewriteHistory, command)
	}
	if skips(args[0], options) {
		a.add(SkipChecks, command)
	}
	switch args[0] {
	case "rm":
		if has(options, 0, "cached") {
			return
		}
		a.add(GitRemove, command)
		for _, f := range others {
			a.removes(f, has(options, 'r', ""))
		}
	case "mv":
		for _, f := range others[:max(0, len(others)-1)] {
			a.moves(f)
		}
	case "config":
		for i, name := range others[:max(0, len(others)-1)] {
			a.gitSetting(name+"="+others[i+1], depth)
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
func skips(verb string, options []string) bool {
	switch verb {
	case "commit":
		return has(options, 'n', "no-verify")
	case "merge", "rebase":
		return has(options, 0, "no-verify")
	case "update-index":
		return has(options, 0, "assume-unchanged") || has(options, 0, "skip-worktree")
	}
	return false
}

// rewrites reports whether a git command rewrites or removes history.
func rewrites(verb string, options, others []string) bool {
	switch verb {
	case "push":
		return has(options, 'f', "force") || has(options, 0, "force-with-lease") || has(options, 0, "mirror") ||
			has(options, 'd', "delete") ||
			slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(o, "+") || strings.HasPrefix(o, ":") })
	case "branch":
		return has(options, 'D', "") || has(options, 'f', "force")
	case "tag":
		return has(options, 'D', "")
	case "filter-branch", "filter-repo", "replace":
		return true
	case "update-ref":
		return has(options, 'd', "")
	case "reflog":
		return len(others) > 0 && (others[0] == "expire" || others[0] == "delete")
	case "gc", "prune":
		return has(options, 0, "prune")
	}
	return false
}

// discards reports whether a git command discards uncommitted work.
func discards(verb string, options, others, all []string) bool {
	switch verb {
	case "checkout":
		makes := has(options, 'b', "") || has(options, 'B', "") || has(options, 't', "track") || has(options, 0, "orphan")
		paths := slices.Contains(all, "--") || len(others) > 1 || slices.ContainsFunc(others, isPath)
		return has(options, 'f', "force") || paths && len(others) > 0 && !makes
	case "switch":
		return has(options, 'f', "force") || has(options, 0, "discard-changes")
	case "restore":
		return !has(options, 'S', "staged") || has(options, 'W', "worktree")
	case "reset":
		return has(options, 0, "hard") || has(options, 0, "merge") || has(options, 0, "keep")
	case "clean":
		return !has(options, 'n', "dry-run")
	case "stash":
		return len(others) > 0 && (others[0] == "drop" || others[0] == "clear")
	case "read-tree":
		return has(options, 'u', "") && has(options, 0, "reset")
	case "checkout-index":
		return has(options, 'f', "force")
	case "worktree":
		return len(others) > 0 && others[0] == "remove" && has(options, 'f', "force")
	}
	return false
}

// isPath reports whether a word that may be a branch looks like a file.
func isPath(word string) bool {
	return word == "." || strings.HasSuffix(word, "/") || strings.HasPrefix(word, "./") || strings.HasPrefix(word, ":") ||
		path.Ext(word) != "" && project.Classify(word).Class != project.Other
}
