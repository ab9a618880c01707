package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// walk is the walk of one folder, or of the folder that a glob starts in.
type walk struct {
	c *collector
	t target
	// real is the path of the folder without links, to find links that lead outside.
	real string
	// depth is the number of levels that a glob can reach; 0 for all.
	depth int
	// seen are the folders walked, so that circular links end.
	seen map[fileID]struct{}
	// links are followed last, so that a file is read under its own name and not under
	// that of a link to it.
	links []node
	// matched is set if a glob matched a file, read or skipped.
	matched bool
	// hidden is an ignored folder in which a glob was not searched.
	hidden string
}

// node is a file, folder or link found by walking.
type node struct {
	path   string
	rel    string // slash-separated, below the folder walked
	ignore *ignoreRules
}

func (n node) child(name string) node {
	return node{path: filepath.Join(n.path, name), rel: path.Join(n.rel, name), ignore: n.ignore}
}

func (n node) depth() int {
	if n.rel == "" {
		return 0
	}
	return strings.Count(n.rel, "/") + 1
}

// walk reads the files of a folder or glob.
func (c *collector) walk(t target) error {
	realPath, err := filepath.EvalSymlinks(t.path)
	if err != nil {
		return &Error{Arg: t.arg, Msg: "it cannot be accessed", Hint: hintAccess, Err: err}
	}
	w := &walk{c: c, t: t, real: realPath, seen: map[fileID]struct{}{}}
	if t.kind == kindGlob && !strings.Contains(t.pattern, "**") {
		w.depth = strings.Count(t.pattern, "/") + 1
	}
	top := node{path: t.path}
	if !c.cfg.NoIgnore {
		top.ignore = rulesAbove(t.path)
	}
	if _, err := os.ReadDir(t.path); err != nil {
		return &Error{Arg: t.arg, Msg: "the folder cannot be read", Hint: hintAccess, Err: bare(err)}
	}
	if err := w.folder(top); err != nil {
		return err
	}
	for i := 0; i < len(w.links); i++ { // following a link may find more
		if err := w.link(w.links[i]); err != nil {
			return err
		}
	}
	if t.kind == kindGlob && !w.matched {
		e := &Error{Arg: t.arg, Msg: "the pattern matches no file", Hint: "** matches any number of folders"}
		if w.hidden != "" {
			e.Hint = "not searched: " + w.hidden
		}
		return e
	}
	return nil
}

// folder walks the entries of a folder in the order of their names.
func (w *walk) folder(n node) error {
	if err := w.c.ctx.Err(); err != nil {
		return fmt.Errorf("read context: %w", err)
	}
	info, err := os.Stat(n.path)
	if err != nil {
		return w.unreadable(n, err)
	}
	id := identify(n.path, info)
	if _, again := w.seen[id]; again {
		return nil
	}
	w.seen[id] = struct{}{}
	entries, err := os.ReadDir(n.path)
	if err != nil {
		return w.unreadable(n, err)
	}
	if !w.c.cfg.NoIgnore {
		n.ignore = n.ignore.enter(n.path, entries)
	}
	for _, e := range entries {
		if hiddenName(e.Name()) {
			continue
		}
		child := n.child(e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			w.links = append(w.links, child)
			continue
		}
		if err := w.visit(child, e.Type()); err != nil {
			return err
		}
	}
	return nil
}

// leavesOut reports whether build folders with a name are left out: the pattern does not have
// the name.
func (w *walk) leavesOut(name string) bool {
	return !w.c.cfg.NoIgnore && !slices.Contains(strings.Split(w.t.pattern, "/"), name)
}

// hiddenName reports whether a name is that of a folder that is never read.
func hiddenName(name string) bool { return name == ".git" || name == ".perdure" }

func (w *walk) unreadable(n node, err error) error {
	return w.c.refuse(candidate{name: w.name(n) + "/"}, fault{kind: KindUnreadable, why: "the folder cannot be read",
		err: bare(err)})
}

func (w *walk) name(n node) string { return w.t.prefix + n.rel }

// visit reads a file or walks a folder, unless it is ignored.
func (w *walk) visit(n node, mode fs.FileMode) error {
	if !mode.IsDir() {
		return w.file(n, mode)
	}
	if w.depth > 0 && n.depth() >= w.depth {
		return nil
	}
	if rule, ignored := n.ignore.match(n.path, true); ignored {
		w.hidden = fmt.Sprintf("%q, %s", w.name(n)+"/", rule)
		w.c.skip(w.name(n)+"/", KindIgnored, rule)
		return nil
	}
	if why := buildFolder(n.path); why != "" && w.leavesOut(path.Base(n.rel)) {
		w.hidden = fmt.Sprintf("%q, %s", w.name(n)+"/", why)
		w.c.skip(w.name(n)+"/", KindBuild, why)
		return nil
	}
	return w.folder(n)
}

func (w *walk) file(n node, mode fs.FileMode) error {
	if w.t.kind == kindGlob {
		if !doublestar.MatchUnvalidated(w.t.pattern, n.rel) {
			return nil
		}
		w.matched = true
	} else if rule, ignored := n.ignore.match(n.path, false); ignored {
		w.c.skip(w.name(n), KindIgnored, rule)
		return nil
	}
	if !mode.IsRegular() {
		w.c.skip(w.name(n), KindSpecial, "it is "+modeWord(mode))
		return nil
	}
	if why := secretFile(n.path); why != "" {
		w.c.skip(w.name(n), KindSecret, why)
		return nil
	}
	return w.c.take(candidate{name: w.name(n), path: n.path})
}

// link follows a link to a target inside the folder walked.
func (w *walk) link(n node) error {
	skip := func(why string) error {
		if w.t.kind == kindFolder || doublestar.MatchUnvalidated(w.t.pattern, n.rel) {
			w.c.skip(w.name(n), KindLink, "it is a symbolic link "+why)
		}
		return nil
	}
	realPath, err := filepath.EvalSymlinks(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return skip("to a missing file")
	}
	if err != nil {
		return skip("that is circular or cannot be followed")
	}
	inside, err := filepath.Rel(w.real, realPath)
	if err != nil || !filepath.IsLocal(inside) {
		return skip("to a target outside of the folder")
	}
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(inside), "/"), hiddenName) {
		return nil
	}
	info, err := os.Stat(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return w.unreadable(n, err)
	}
	if info.IsDir() && w.contains(realPath, n) {
		w.c.skip(w.name(n), KindLink, "it is a symbolic link to a folder that contains it")
		return nil
	}
	return w.visit(n, info.Mode())
}

// contains reports whether a folder is above a link: following it would not end.
func (w *walk) contains(folder string, link node) bool {
	at, err := filepath.EvalSymlinks(filepath.Dir(link.path))
	if err != nil {
		return false
	}
	below, err := filepath.Rel(folder, at)
	return err == nil && filepath.IsLocal(below)
}
