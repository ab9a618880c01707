package risk

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/check/project"
)

// removes assesses deleting a file or folder, with all its content if whole is set.
func (a *assessment) removes(name string, whole bool) {
	kind := DeleteFiles
	if whole {
		kind = DeleteTree
	}
	if strings.Contains(name, unknown) {
		a.removesUnknown(name, kind)
		return
	}
	rel, outside := a.place(withoutWildcards(name))
	if !outside {
		rel = hiddenFolder(rel)
	}
	class := project.Classify(rel).Class
	switch {
	case everything(rel, outside, a.at):
		a.add(DeleteAll, name)
	case a.held(rel, outside) || own(rel) || class == project.OwnFile:
		a.add(WriteOwn, name)
	case outside && harmless(rel):
	case outside:
		a.add(WriteOutside, name)
	case class == project.TestFile || testFolder(rel):
		a.add(DeleteTest, name)
	case class.Protected() || a.at.Protected != nil && a.at.Protected(rel):
		a.add(WriteGuard, name)
	case !product(rel):
		a.add(kind, name)
	}
}

// removesUnknown assesses deleting a path of which only the shell knows parts. A variable that
// is not set is empty: rm -rf "$DIR/" deletes the root then.
func (a *assessment) removesUnknown(name string, kind Pattern) {
	rest := strings.ReplaceAll(name, empty, "")
	if kind == DeleteTree && rest != "" && !strings.Contains(rest, unknown) {
		if rel, outside := a.place(withoutWildcards(rest)); everything(rel, outside, a.at) {
			kind = DeleteAll
		}
	}
	a.add(kind, conceal(name))
}

// withoutWildcards removes the last parts of a path that match everything in their folder.
func withoutWildcards(name string) string {
	absolute := strings.HasPrefix(name, "/")
	parts := strings.Split(strings.TrimRight(name, "/"), "/")
	for len(parts) > 0 && matchesAll(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	name = strings.Join(parts, "/")
	if name == "" && absolute || len(name) == 2 && name[1] == ':' {
		return name + "/"
	}
	return name
}

// matchesAll reports whether a pattern of the shell matches all files of a folder, or all
// hidden ones.
func matchesAll(pattern string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	samples := []string{"src", "main.go", "README.md", "a1"}
	if strings.HasPrefix(pattern, ".") {
		samples = []string{".git", ".perdure", ".env"}
	}
	return !slices.ContainsFunc(samples, func(s string) bool { return !matches(pattern, s) })
}

// matches reports whether a pattern of the shell matches a name.
func matches(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && ok
}

// hiddenFolder replaces a pattern at the beginning of a path in the workspace that matches the
// repository, or the folder of perdure.
func hiddenFolder(rel string) string {
	first, rest, _ := strings.Cut(rel, "/")
	if !strings.HasPrefix(first, ".") || !strings.ContainsAny(first, "*?[") {
		return rel
	}
	for _, folder := range []string{".git", ".perdure"} {
		if matches(first, folder) {
			return path.Join(folder, rest)
		}
	}
	return rel
}

// everything reports whether a path contains the workspace, is the repository, the home folder
// or a folder of the system, or is a disk.
func everything(rel string, outside bool, at Where) bool {
	if !outside {
		return rel == "." || rel == ".git" || strings.HasPrefix(rel, ".git/")
	}
	root := path.Clean(filepath.ToSlash(at.Root))
	return rel == "/" || strings.HasPrefix(root, strings.TrimSuffix(rel, "/")+"/") || at.Home != "" &&
		(rel == path.Clean(filepath.ToSlash(at.Home)) ||
			strings.HasPrefix(filepath.ToSlash(at.Home), strings.TrimSuffix(rel, "/")+"/")) || systemFolder(rel)
}

// systemFolder reports whether an absolute path is a folder at the top of the system, or a
// disk.
func systemFolder(name string) bool {
	folders := []string{"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run",
		"/sbin", "/srv", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "/Applications", "/Volumes", "/private",
		"c:/windows", "c:/users", "c:/program files"}
	drive := len(name) >= 2 && name[1] == ':' && strings.Trim(name[2:], "/.") == ""
	return drive || slices.ContainsFunc(folders, func(f string) bool { return strings.EqualFold(f, name) }) || isDisk(name)
}

// isDisk reports whether a path is a disk, or a part of one.
func isDisk(name string) bool {
	dev, ok := strings.CutPrefix(name, "/dev/")
	return ok && slices.ContainsFunc([]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "loop",
		"mapper/", "md", "dm-"}, func(kind string) bool { return strings.HasPrefix(dev, kind) })
}

// product reports whether tools create a file again.
func product(rel string) bool {
	folders := []string{"node_modules", "dist", "build", "target", "out", "bin", "obj", "__pycache__", ".pytest_cache",
		".cache", "coverage", "tmp", ".next", ".venv", "venv", ".mypy_cache", ".ruff_cache", ".tox", ".turbo", ".gradle",
		".nyc_output", ".parcel-cache", ".svelte-kit", ".nuxt", ".terraform", "htmlcov", "logs"}
	return slices.Contains([]string{".pyc", ".pyo", ".o", ".log", ".tmp", ".class"}, path.Ext(rel)) ||
		slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool {
			return slices.Contains(folders, part) || part == ".coverage" || part == ".DS_Store" ||
				strings.HasSuffix(part, ".egg-info")
		})
}

func (a *assessment) rm(name string, args []string) {
	options, others := split(args)
	whole := name == "rimraf" || name == "del-cli" || name == "trash" || name == "trash-put" || (name == "rm" ||
		name == "srm" || name == "wipe") && (has(options, 'r', "recursive") || has(options, 'R', ""))
	for _, target := range others {
		a.removes(target, whole)
	}
}

// removesBelow assesses deleting the files below folders that a command selects.
func (a *assessment) removesBelow(starts []string, by selection) {
	for _, start := range starts {
		rel, outside := a.place(start)
		switch {
		case by.narrow && by.product && !outside:
		case !by.narrow:
			a.removes(start, true)
		case strings.Contains(start, unknown):
			a.add(DeleteTree, conceal(start))
		case everything(rel, outside, a.at) && outside:
			a.add(WriteOutside, start)
		case rel == ".":
			a.add(DeleteTree, start)
		default:
			a.removes(start, true)
		}
	}
}

// pipedFiles assesses a list of files that a pipeline passes to a program that deletes them.
func (a *assessment) pipedFiles(x *syntax.Stmt, to []string, depth int) {
	from, ok := a.called(x)
	if !ok || len(from) == 0 || len(to) == 0 {
		return
	}
	if undoesDiff(from, to) {
		a.add(DiscardWork, shown(strings.Join(from, " ")+" | "+strings.Join(to, " ")))
	}
	starts, by := listFolders(from)
	if name := path.Base(to[0]); len(starts) == 0 || name != "xargs" && name != "parallel" || !a.deletes(to, depth) {
		return
	}
	a.removesBelow(starts, by)
}

// deletes reports whether a command deletes files.
func (a *assessment) deletes(words []string, depth int) bool {
	if depth >= maxNested {
		return false
	}
	inner := newAssessment(a.at)
	inner.words(slices.Clone(words), depth+1)
	return slices.ContainsFunc(inner.found, func(f Finding) bool {
		return f.Pattern == DeleteFiles || f.Pattern == DeleteTree
	})
}

// listFolders returns the folders whose files a command prints, and which of these it selects.
func listFolders(words []string) (starts []string, by selection) {
	options, others := split(words[1:])
	switch name := path.Base(words[0]); {
	case name == "find":
		starts, expression := findStarts(words[1:])
		f := finder{args: expression}
		return starts, f.list()
	case name == "ls" && !has(options, 'd', ""):
		starts = others
	case name == "git" && len(words) > 1 && words[1] == "ls-files":
		by.narrow = slices.ContainsFunc(options, func(o string) bool { return o != "-z" && o != "-c" && o != "--cached" })
		starts = others[1:]
	default:
		return nil, by
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	return starts, by
}
