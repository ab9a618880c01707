package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// walk is the walk of one folder, or of the folder a glob starts in.
type walk struct {
	g *gatherer
	t target
	// real is the folder without links, for telling what lies inside.
	real string
	// depth is how many levels a glob can reach; 0 for all.
	depth int
	// seen are the folders walked, so that links cannot lead in circles.
	seen map[fileID]struct{}
	// links are followed after everything else, so that a file is taken under its
	// own name rather than that of a link to it.
	links []node
	// matched tells that a glob matched a file, taken or not.
	matched bool
	// hidden is a folder that ignore rules kept from the search of a glob.
	hidden string
}

// node is a place found by walking.
type node struct {
	path   string // where it is
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
func (g *gatherer) walk(t target) error {
	realPath, err := filepath.EvalSymlinks(t.path)
	if err != nil {
		return &Error{Arg: t.arg, Msg: "it cannot be looked at", Hint: hintAccess, Err: err}
	}
	w := &walk{g: g, t: t, real: realPath, seen: map[fileID]struct{}{}}
	if t.kind == kindGlob && !strings.Contains(t.pattern, "**") {
		w.depth = strings.Count(t.pattern, "/") + 1
	}
	top := node{path: t.path, ignore: rulesAbove(t.path)}
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
	if err := w.g.ctx.Err(); err != nil {
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
	n.ignore = n.ignore.enter(n.path, entries)
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

// hiddenName tells folders (and files in their place) that are never looked into.
func hiddenName(name string) bool { return name == ".git" || name == ".perdure" }

func (w *walk) unreadable(n node, err error) error {
	return w.g.refuse(candidate{name: w.name(n) + "/"}, fault{kind: KindUnreadable, why: "the folder cannot be read",
		err: bare(err)})
}

func (w *walk) name(n node) string { return w.t.prefix + n.rel }

// visit takes a file or walks a folder, unless it is ignored.
func (w *walk) visit(n node, mode fs.FileMode) error {
	if !mode.IsDir() {
		return w.file(n, mode)
	}
	if w.depth > 0 && n.depth() >= w.depth {
		return nil
	}
	if rule, ignored := n.ignore.match(n.path, true); ignored {
		w.hidden = fmt.Sprintf("%q, %s", w.name(n)+"/", rule)
		w.g.skip(w.name(n)+"/", KindIgnored, rule)
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
		w.g.skip(w.name(n), KindIgnored, rule)
		return nil
	}
	if !mode.IsRegular() {
		w.g.skip(w.name(n), KindSpecial, "it is "+modeWord(mode))
		return nil
	}
	return w.g.take(candidate{name: w.name(n), path: n.path})
}

// link follows a link when it leads to something inside the folder walked.
func (w *walk) link(n node) error {
	wanted := w.t.kind == kindFolder || doublestar.MatchUnvalidated(w.t.pattern, n.rel)
	realPath, err := filepath.EvalSymlinks(n.path)
	if err != nil {
		why := "it is a symbolic link to nothing"
		if !errors.Is(err, fs.ErrNotExist) {
			why = "it is a symbolic link that leads in a circle or cannot be followed"
		}
		if wanted {
			w.g.skip(w.name(n), KindLink, why)
		}
		return nil
	}
	inside, err := filepath.Rel(w.real, realPath)
	if err != nil || !filepath.IsLocal(inside) {
		if wanted {
			w.g.skip(w.name(n), KindLink, "it is a symbolic link that leads outside of the folder")
		}
		return nil
	}
	for _, part := range strings.Split(filepath.ToSlash(inside), "/") {
		if hiddenName(part) {
			return nil
		}
	}
	info, err := os.Stat(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away just now
	}
	if err != nil {
		return w.unreadable(n, err)
	}
	if info.IsDir() && w.holds(realPath, n) {
		w.g.skip(w.name(n), KindLink, "it is a symbolic link to a folder that holds it")
		return nil
	}
	return w.visit(n, info.Mode())
}

// holds tells whether a folder is above a link: following it would not end.
func (w *walk) holds(folder string, link node) bool {
	at, err := filepath.EvalSymlinks(filepath.Dir(link.path))
	if err != nil {
		return false
	}
	below, err := filepath.Rel(folder, at)
	return err == nil && filepath.IsLocal(below)
}
