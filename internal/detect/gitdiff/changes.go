package gitdiff

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/detect"
)

// side is a file in one of the versions.
type side struct {
	path string // empty if the file does not exist
	mode string // as git writes it
	// id names the content; empty for the file on disk.
	id   string
	size int64
	// missing is set if this clone does not have the content.
	missing bool
}

// Changes are the files that differ between two versions.
type Changes struct {
	r        *Repository
	maxBytes int64
	// workTree is set if the new version is the working tree.
	workTree bool
	list     []change
	// Skipped are the files that cannot be read, with the reason.
	Skipped []detect.Skipped
	// Merged is the number of files that equal the other side of a merge in progress; they
	// are left out.
	Merged int
}

type change struct{ old, new side }

// path returns the new path, or the old one of a deleted file.
func (f *change) path() string { return cmp.Or(f.new.path, f.old.path) }

func (c *Changes) skip(file, why string) {
	c.Skipped = append(c.Skipped, detect.Skipped{File: file, Why: why})
}

// names returns the output of a git command that ends each entry with a NUL.
func (c *Changes) names(ctx context.Context, args ...string) ([]string, error) {
	out, err := c.r.run(ctx, nil, args...)
	return strings.Split(string(out), "\x00"), err
}

// Paths calls each with both names of each file; a name is empty if the file does not
// exist in that version.
func (c *Changes) Paths(each func(old, now string)) {
	for i := range c.list {
		each(c.list[i].old.path, c.list[i].new.path)
	}
}

// File modes of git.
const (
	modeNone   = "000000"
	modeLink   = "120000"
	modeModule = "160000"
)

// Changes lists the files that differ. Of contents of more than maxBytes only the size is
// read.
func (r *Repository) Changes(ctx context.Context, b *Between, maxBytes int64) (*Changes, error) {
	// The options make the output independent of the user's settings.
	args := []string{"diff", "--raw", "-z", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-color",
		"--find-renames", "-l1000", "--ignore-submodules=dirty", "--no-relative", "-O" + os.DevNull}
	if b.Staged {
		args = append(args, "--cached")
	}
	args = append(args, b.Base)
	if b.Now != "" {
		args = append(args, b.Now)
	}
	out, err := r.run(ctx, nil, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	c := &Changes{r: r, maxBytes: maxBytes, workTree: b.Now == "" && !b.Staged}
	if err := c.parse(out); err != nil {
		return nil, err
	}
	if c.workTree {
		if err := c.untracked(ctx); err != nil {
			return nil, err
		}
		if err := c.unwatched(ctx); err != nil {
			return nil, err
		}
	}
	if b.other != "" {
		if err := c.withoutOther(ctx, b); err != nil {
			return nil, err
		}
	}
	return c, c.sizes(ctx)
}

// parse reads the output of git diff --raw -z.
func (c *Changes) parse(out []byte) error {
	fields := strings.Split(string(out), "\x00")
	next := func() (string, bool) {
		if len(fields) < 2 { // the output ends with a NUL
			return "", false
		}
		f := fields[0]
		fields = fields[1:]
		return f, true
	}
	for {
		head, ok := next()
		if !ok {
			return nil
		}
		f := strings.Fields(head)
		name, named := next()
		if len(f) != 5 || !strings.HasPrefix(f[0], ":") || !named {
			return fmt.Errorf("list changed files: unexpected output of git %q", head)
		}
		to := name
		if kind := f[4][0]; kind == 'R' || kind == 'C' {
			if to, named = next(); !named {
				return fmt.Errorf("list changed files: no second name after %q in the output of git", head)
			}
		}
		c.add(change{newSide(name, f[0][1:], f[2]), newSide(to, f[1], f[3])}, f[4][0])
	}
}

func newSide(path, mode, id string) side {
	if mode == modeNone {
		return side{}
	}
	if strings.Trim(id, "0") == "" {
		id = ""
	}
	return side{path: path, mode: mode, id: id}
}

// add adds a file, unless its content cannot be compared.
func (c *Changes) add(f change, kind byte) {
	switch {
	case kind == 'U':
		c.skip(f.old.path, "in conflict: not staged yet")
	case f.old.mode == modeModule || f.new.mode == modeModule:
		c.skip(f.path(), "a separate repository: run the check inside it")
	default:
		c.list = append(c.list, f)
	}
}

// untracked adds the untracked files that git does not ignore.
func (c *Changes) untracked(ctx context.Context) error {
	names, err := c.names(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	for _, name := range names {
		switch {
		case name == "", strings.Contains("/"+name, "/.perdure/"): // perdure's own files, if they are not ignored
		case strings.HasSuffix(name, "/"):
			c.add(change{new: side{path: strings.TrimSuffix(name, "/"), mode: modeModule}}, 'A')
		default:
			c.list = append(c.list, change{new: side{path: name, mode: "100644"}})
		}
	}
	return err
}

// unwatched skips the files that git does not check for changes. Of the files that a
// sparse checkout leaves out, only those that exist are listed.
func (c *Changes) unwatched(ctx context.Context) error {
	entries, err := c.names(ctx, "ls-files", "-v", "-z")
	for _, entry := range entries {
		tag, name, ok := strings.Cut(entry, " ")
		switch {
		case !ok || tag == "H":
		case tag == "S" || tag == "s":
			if _, err := os.Lstat(filepath.Join(c.r.Root, filepath.FromSlash(name))); err == nil {
				c.skip(name, "marked skip-worktree in git; git update-index --no-skip-worktree undoes it")
			}
		case tag == strings.ToLower(tag):
			c.skip(name, "marked assume-unchanged in git; git update-index --no-assume-unchanged undoes it")
		}
	}
	return err
}

// withoutOther leaves out files that equal the other side of a merge: they were checked
// there.
func (c *Changes) withoutOther(ctx context.Context, b *Between) error {
	args := []string{"diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-relative",
		"--ignore-submodules=dirty"}
	if b.Staged {
		args = append(args, "--cached")
	}
	names, err := c.names(ctx, append(args, b.other, "--")...)
	if err != nil {
		return err
	}
	differs := make(map[string]bool)
	for _, name := range names {
		differs[name] = true
	}
	before := len(c.list)
	c.list = slices.DeleteFunc(c.list, func(f change) bool {
		untracked := f.old.path == "" && f.new.id == "" // it belongs to this side
		return !differs[f.path()] && !untracked
	})
	c.Merged = before - len(c.list)
	return nil
}

// sizes reads the sizes of the contents stored in git. Of a renamed file in the working tree
// git prints the ID that its content would have; if it is not stored, the file on disk is
// read.
func (c *Changes) sizes(ctx context.Context) error {
	var ask bytes.Buffer
	var sides []*side
	files := make(map[*side]bool)
	for i := range c.list {
		for _, s := range []*side{&c.list[i].old, &c.list[i].new} {
			if s.id != "" {
				files[s] = c.workTree && s == &c.list[i].new
				sides = append(sides, s)
				ask.WriteString(s.id + "\n")
			}
		}
	}
	if len(sides) == 0 {
		return nil
	}
	out, err := c.r.run(ctx, ask.Bytes(), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return err
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(answers) != len(sides) {
		return fmt.Errorf("read sizes: git returned %d of %d", len(answers), len(sides))
	}
	for i, text := range answers {
		if sides[i].size, err = strconv.ParseInt(text, 10, 64); err != nil {
			if sides[i].missing = !files[sides[i]]; files[sides[i]] {
				sides[i].id = ""
			}
		}
	}
	return nil
}

// Each yields the files one after the other. It may be called once.
func (c *Changes) Each(ctx context.Context) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) {
		root, err := os.OpenRoot(c.r.Root)
		if err != nil {
			yield(detect.Change{}, err)
			return
		}
		defer root.Close()
		store := &objects{r: c.r}
		defer store.close()
		for i := range c.list {
			d, ok, err := c.read(ctx, root, store, &c.list[i])
			if err == nil {
				err = ctx.Err()
			}
			if !ok && err == nil {
				continue
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// read reads both versions of a file. It returns false, and records the reason, if a
// version cannot be read.
func (c *Changes) read(ctx context.Context, root *os.Root, store *objects, f *change) (detect.Change, bool, error) {
	var d detect.Change
	for _, v := range []struct {
		from *side
		to   *detect.Version
	}{{&f.old, &d.Old}, {&f.new, &d.New}} {
		var err error
		switch {
		case v.from.path == "":
			continue
		case v.from.missing:
			c.skip(v.from.path, "its content is not in this partial clone; git fetch --refetch fetches it")
			return d, false, nil
		case v.from.mode == modeLink:
			*v.to = detect.Version{Path: v.from.path, Kind: detect.Link}
		case v.from.id == "":
			*v.to, err = c.onDisk(root, v.from.path)
		default:
			*v.to, err = store.version(ctx, v.from, c.maxBytes)
		}
		if err != nil {
			return d, false, fmt.Errorf("read %q: %w", v.from.path, err)
		}
	}
	return d, d.Old.Path != "" || d.New.Path != "", nil
}

// onDisk reads a file of the working tree. A file removed meanwhile counts as missing.
func (c *Changes) onDisk(root *os.Root, name string) (detect.Version, error) {
	at := filepath.FromSlash(name)
	info, err := root.Lstat(at)
	switch {
	case os.IsNotExist(err):
		return detect.Version{}, nil
	case err != nil:
		return detect.Version{}, err
	case info.Mode()&os.ModeSymlink != 0:
		return detect.Version{Path: name, Kind: detect.Link}, nil
	case !info.Mode().IsRegular():
		return detect.Version{Path: name, Kind: detect.Other}, nil
	case info.Size() > c.maxBytes:
		return detect.Version{Path: name, Size: info.Size()}, nil
	}
	text, err := root.ReadFile(at)
	return detect.Version{Path: name, Content: unix(text), Size: info.Size()}, err
}

// unix converts line ends to the form that git stores, so that a difference in line ends
// alone is not a change.
func unix(text []byte) []byte {
	if text == nil {
		return []byte{}
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}
