package risk

import (
	"slices"
	"strings"
)

// git judges a command of git.
func (a *assessment) git(args []string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // of git itself
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
	shown := "git " + clip(strings.ReplaceAll(strings.Join(args, " "), unknown, "…"))
	if discards(args[0], options, others, args[1:]) {
		a.add(DiscardWork, shown)
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
		forced := has(options, 'f', "force") || has(options, 0, "mirror") || has(options, 'd', "delete") ||
			slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(o, "+") || strings.HasPrefix(o, ":") })
		if forced {
			a.add(RewriteHistory, shown)
		}
	case "branch", "tag":
		if has(options, 'D', "") || args[0] == "branch" && has(options, 'd', "delete") && has(options, 'f', "force") {
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
		if slices.Contains(others, "core.hooksPath") {
			a.add(SkipChecks, shown)
		}
	}
}

// discards tells whether a command of git throws work away that is in no commit.
func discards(verb string, options, others, all []string) bool {
	switch verb {
	case "checkout":
		paths := slices.Contains(all, "--") || slices.ContainsFunc(others, func(o string) bool { return o == "." || strings.HasSuffix(o, "/") })
		return has(options, 'f', "force") || paths && len(others) > 0 && !has(options, 'b', "")
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
	case "worktree":
		return len(others) > 0 && others[0] == "remove" && has(options, 'f', "force")
	}
	return false
}
