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
	shown := "git " + clipped(strings.ReplaceAll(strings.Join(args, " "), unknown, "…"))
	if discards(args[0], options, others, args[1:]) {
		a.add(DiscardWork, shown)
	}
	if lookedAway(args[0], options) {
		a.add(SkipChecks, shown)
	}
	switch args[0] {
	case "rm":
		if has(options, 0, "cached") {
			return
		}
		a.add(GitRemove, shown)
		for _, f := range others {
			a.removes(f, has(options, 'r', ""))
		}
	case "mv":
		for _, f := range others[:max(0, len(others)-1)] {
			a.moves(f)
		}
	case "push":
		forced := has(options, 'f', "force") || has(options, 0, "force-with-lease") || has(options, 0, "mirror") ||
			has(options, 'd', "delete") ||
			slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(o, "+") || strings.HasPrefix(o, ":") })
		if forced {
			a.add(RewriteHistory, shown)
		}
	case "branch", "tag":
		if has(options, 'D', "") || args[0] == "branch" && has(options, 'f', "force") {
			a.add(RewriteHistory, shown)
		}
	case "filter-branch", "filter-repo", "replace":
		a.add(RewriteHistory, shown)
	case "update-ref":
		if has(options, 'd', "") {
			a.add(RewriteHistory, shown)
		}
	case "reflog":
		if len(others) > 0 && (others[0] == "expire" || others[0] == "delete") {
			a.add(RewriteHistory, shown)
		}
	case "gc", "prune":
		if has(options, 0, "prune") {
			a.add(RewriteHistory, shown)
		}
	case "commit", "merge", "rebase":
		if has(options, 0, "no-verify") || args[0] == "commit" && has(options, 'n', "") {
			a.add(SkipChecks, shown)
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
		a.add(SkipChecks, "git config "+clipped(strings.ReplaceAll(setting, unknown, "…")))
	case strings.HasPrefix(name, "alias.") && strings.HasPrefix(value, "!"):
		a.nested(value[1:], depth)
	case strings.HasPrefix(name, "alias."):
		a.nested("git "+value, depth)
	case slices.Contains([]string{"core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "sequence.editor",
		"diff.external", "credential.helper"}, name):
		a.nested(value, depth)
	}
}

// lookedAway reports whether a command makes git ignore changes of a file.
func lookedAway(verb string, options []string) bool {
	return verb == "update-index" && (has(options, 0, "assume-unchanged") || has(options, 0, "skip-worktree"))
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
