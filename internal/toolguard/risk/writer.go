package risk

import (
	"path"
	"slices"
	"strings"
)

// writer assesses other programs that write, move or delete the files they are given.
func (a *assessment) writer(name string, args []string) {
	options, others := split(args)
	all := func(do func(string)) {
		for _, f := range others {
			do(f)
		}
	}
	switch name {
	case "truncate":
		all(a.writes)
		if size := strings.Join(args, " "); strings.Contains(size, "-s 0") || strings.Contains(size, "-s0") ||
			strings.Contains(size, "--size=0") || strings.Contains(size, "--size 0") {
			all(a.empties)
		}
	case "tee", "sponge", "ed", "ex", "chattr", "sqlite3":
		all(a.writes)
	case "sed", "perl", "ruby", "awk", "gawk":
		in := programOf(name, args)
		for i := 0; in.inPlace && i < len(in.files); i++ {
			a.writes(in.files[i])
		}
		for i := 0; name == "sed" && i < len(in.scripts); i++ {
			a.sedScript(in.scripts[i])
		}
	case "vi", "vim", "nvim", "emacs":
		if len(options) > 0 { // not a person at a terminal
			all(a.writes)
		}
	case "mv", "cp", "install", "ln":
		to, from := destination(args)
		for _, f := range from {
			if name == "mv" {
				a.moves(f)
			}
		}
		a.copied(to, from)
		a.overwrites(options, to, from)
	case "rsync":
		a.rsync(options, others)
	case "chmod", "chown":
		a.modes(name, args)
	case "dd":
		for _, f := range others {
			if to, ok := strings.CutPrefix(f, "of="); ok {
				a.writes(to)
				a.empties(to)
			}
		}
	case "sort", "curl", "wget":
		for i, o := range args {
			if (o == "-o" || o == "--output" || o == "-O") && i+1 < len(args) {
				a.writes(args[i+1])
			}
		}
	case "patch":
		if len(others) > 0 {
			a.writes(others[0])
		}
	case "zip":
		if has(options, 'm', "move") && len(others) > 1 {
			for _, f := range others[1:] {
				a.removes(f, has(options, 'r', ""))
			}
		}
	case "unzip":
		a.unpacks(name, options, args)
	case "tar":
		a.unpacks(name, options, args)
		if slices.Contains(options, "--remove-files") {
			all(func(f string) { a.removes(f, true) })
		}
	case "rename":
		all(a.moves)
	}
}

// destination returns the target of a copy, and the files copied.
func destination(args []string) (to string, from []string) {
	for i, o := range args {
		dir, found := strings.CutPrefix(o, "--target-directory=")
		rest := args[i+1:]
		if (o == "-t" || o == "--target-directory") && len(rest) > 0 {
			dir, rest, found = rest[0], rest[1:], true
		}
		if found {
			_, from = split(slices.Concat(args[:i], rest))
			return dir, from
		}
	}
	_, others := split(args)
	if len(others) == 0 {
		return "", nil
	}
	return others[len(others)-1], others[:len(others)-1]
}

// copied assesses files that are written into a folder or over a file.
func (a *assessment) copied(to string, from []string) {
	a.writes(to)
	if rel, outside := a.place(to); !outside && (testFolder(rel) || strings.HasSuffix(to, "/")) {
		for _, f := range from {
			a.writes(path.Join(to, path.Base(f)))
		}
	}
}

// modes assesses removed permissions: a test that cannot be read, or a hook that cannot
// be run, is as good as deleted.
func (a *assessment) modes(name string, args []string) {
	var others []string
	for _, arg := range args {
		if len(arg) > 1 && arg[0] == '-' && !strings.ContainsAny(arg[1:2], "rwxstX") {
			continue
		}
		others = append(others, arg)
	}
	if len(others) < 2 {
		return
	}
	mode := others[0]
	takes := name == "chown" || strings.ContainsAny(mode, "-=")
	if digits := strings.TrimLeft(mode, "0"); strings.Trim(mode, "01234567") == "" {
		takes = len(digits) < 3 || digits[len(digits)-3] < '4'
	}
	for _, f := range others[1:] {
		rel, outside := a.place(f)
		hook := !outside && strings.HasPrefix(rel, ".git/hooks/") && !strings.Contains(mode, "+")
		if !takes && !hook {
			continue
		}
		a.writes(f)
		if !outside && testFolder(rel) {
			a.add(WriteTest, f)
		}
	}
}

// rsync assesses a copy of folders, which can delete in both of them.
func (a *assessment) rsync(options, others []string) {
	if len(others) < 2 || has(options, 'n', "dry-run") {
		return
	}
	to := others[len(others)-1]
	remote := strings.Contains(to, ":") && !strings.HasPrefix(to, "/")
	if slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "--del") }) && !remote {
		a.removes(to, true)
	}
	if has(options, 0, "remove-source-files") {
		for _, from := range others[:len(others)-1] {
			a.removes(from, true)
		}
	}
	if !remote {
		a.writes(to)
	}
}
