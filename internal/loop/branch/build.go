package branch

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/workspace"
)

// build makes trees, one after the other, with an index of its own. Git itself adds the
// files, from a folder that has only the changed ones, so that line ends are converted as
// the attributes of the repository say.
type build struct {
	r     *Repository
	files *workspace.Workspace
	from  string // the commit with which the index begins; may be empty

	dir     string          // the temporary folder
	tree    string          // of the index
	tracked map[string]bool // files and links in the index
	folders map[string]bool // the folders above them
	links   map[string]bool // submodules
	nested  map[string]bool // folders of which is known whether they are repositories
}

// open reads the first commit into the index.
func (b *build) open(ctx context.Context) (err error) {
	if b.dir, err = b.r.temporary(); err != nil {
		return err
	}
	b.nested = make(map[string]bool)
	if err = os.Mkdir(b.work(), 0o700); err == nil && b.from != "" {
		_, err = b.git(ctx, nil, "read-tree", b.from)
	}
	if err == nil {
		err = b.list(ctx)
	}
	if err == nil {
		b.tree, err = b.write(ctx)
	}
	if err != nil {
		b.close()
	}
	return err
}

func (b *build) close() { _ = os.RemoveAll(b.dir) } // the next build tries again

func (b *build) work() string { return filepath.Join(b.dir, "files") }

// git runs a command with the index.
func (b *build) git(ctx context.Context, input []byte, args ...string) (string, error) {
	return b.r.run(ctx, &command{dir: b.work(), input: input,
		env: []string{"GIT_WORK_TREE=" + b.work(), "GIT_INDEX_FILE=" + filepath.Join(b.dir, "index")}}, args...)
}

// write writes the tree of the index. A partial clone may lack files of its first commit.
func (b *build) write(ctx context.Context) (string, error) {
	out, err := b.git(ctx, nil, "write-tree", "--missing-ok")
	return strings.TrimSpace(out), err
}

// list reads the paths of the index.
func (b *build) list(ctx context.Context) error {
	out, err := b.git(ctx, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	b.tracked, b.folders, b.links = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for line := range strings.SplitSeq(out, "\x00") {
		mode, p, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		if strings.HasPrefix(mode, "160000 ") {
			b.links[p] = true
			continue
		}
		b.tracked[p] = true
		for dir := path.Dir(p); dir != "." && !b.folders[dir]; dir = path.Dir(dir) {
			b.folders[dir] = true
		}
	}
	return nil
}

// change is a path of the repository whose entry changes.
type change struct {
	path string          // in the repository
	file *workspace.File // nil: it is removed
}

// planned changes the index and returns the commit; none if it is optional and changes
// nothing.
func (b *build) planned(ctx context.Context, e Entry, changes []change) ([]planned, error) {
	before := b.tree
	if err := b.apply(ctx, e.Snapshot, changes); err != nil {
		return nil, err
	}
	var err error
	if b.tree, err = b.write(ctx); err != nil {
		return nil, err
	}
	failpoint.Hit("branch.tree")
	if b.tree == before && e.Optional {
		return nil, nil
	}
	return []planned{{b.tree, e.Message}}, nil
}

// apply makes changes in the index.
func (b *build) apply(ctx context.Context, id workspace.ID, changes []change) error {
	var removed, added bytes.Buffer
	var links []change
	names := make(map[string]string) // paths in the workspace to those in the repository
	for _, c := range changes {
		switch {
		case b.foreign(c.path):
			continue
		case c.file == nil:
			removed.WriteString(c.path + "\x00")
			continue
		case c.file.Kind == workspace.KindLink:
			links = append(links, c)
		default:
			names[c.file.Path] = c.path
		}
		added.WriteString(c.path + "\x00")
	}
	if removed.Len() > 0 {
		if _, err := b.git(ctx, removed.Bytes(), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return err
		}
	}
	if added.Len() > 0 {
		if err := b.copy(ctx, id, names, links); err != nil {
			return err
		}
		if _, err := b.git(ctx, added.Bytes(), "update-index", "-z", "--add", "--replace", "--stdin"); err != nil {
			return err
		}
	}
	if removed.Len()+added.Len() == 0 {
		return nil
	}
	if err := os.RemoveAll(b.work()); err != nil {
		return err
	}
	if err := os.Mkdir(b.work(), 0o700); err != nil {
		return err
	}
	return b.list(ctx)
}

// copy writes files of a snapshot and links where git adds them.
func (b *build) copy(ctx context.Context, id workspace.ID, names map[string]string, links []change) error {
	place := func(p string) (string, error) {
		to := filepath.Join(b.work(), filepath.FromSlash(p))
		return to, os.MkdirAll(filepath.Dir(to), 0o700)
	}
	const private = 0o700
	err := b.files.ReadFiles(ctx, id, slices.Sorted(maps.Keys(names)), func(f workspace.File, content []byte) error {
		to, err := place(names[f.Path])
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, f.FileMode()&private|0o600)
	})
	for _, c := range links {
		var to string
		if err == nil {
			to, err = place(c.path)
		}
		if err == nil {
			err = os.Symlink(c.file.Target, to)
		}
	}
	return err
}

// foreign reports whether a path belongs to a submodule, or to a repository in the
// workspace of which the commits have no file.
func (b *build) foreign(p string) bool {
	for dir := p; dir != "."; dir = path.Dir(dir) {
		if b.links[dir] || dir != p && !b.folders[dir] && b.repository(dir) {
			return true
		}
	}
	return false
}

// repository reports whether a folder below the workspace is a repository of its own.
func (b *build) repository(dir string) bool {
	rel, ok := strings.CutPrefix(dir, b.r.prefix)
	if !ok || rel == "" {
		return false
	}
	is, known := b.nested[dir]
	if !known {
		_, err := os.Lstat(filepath.Join(b.r.root, filepath.FromSlash(rel), ".git"))
		is = err == nil
		b.nested[dir] = is
	}
	return is
}

// snapshot is the content of a snapshot for comparisons.
type snapshot struct {
	files map[string]*workspace.File // files and links
	left  []workspace.LeftOut
}

func (b *build) snapshot(ctx context.Context, id workspace.ID) (*snapshot, error) {
	list, left, err := b.files.Files(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &snapshot{files: make(map[string]*workspace.File, len(list)), left: left}
	for i := range list {
		if list[i].Kind != workspace.KindFolder {
			s.files[list[i].Path] = &list[i]
		}
	}
	return s, nil
}

// leftOut reports whether a path exists that the snapshot cannot contain.
func (s *snapshot) leftOut(p string) bool {
	return slices.ContainsFunc(s.left, func(l workspace.LeftOut) bool {
		return l.Path == p || strings.HasPrefix(p, l.Path+"/")
	})
}

// between returns the changes from one snapshot to another, sorted by path.
func (b *build) between(ctx context.Context, from, to workspace.ID) ([]change, error) {
	if from == to {
		return nil, nil
	}
	old, err := b.snapshot(ctx, from)
	if err != nil {
		return nil, err
	}
	now, err := b.snapshot(ctx, to)
	if err != nil {
		return nil, err
	}
	var list []change
	for p, f := range now.files {
		if o := old.files[p]; o == nil || *o != *f {
			list = append(list, change{b.r.prefix + p, f})
		}
	}
	for p := range old.files {
		if now.files[p] == nil && !now.leftOut(p) {
			list = append(list, change{b.r.prefix + p, nil})
		}
	}
	return sorted(list), nil
}

// sinceHead returns the changes from the commit of HEAD to a snapshot of the workspace as
// it is now. Files that git considers unchanged are unchanged, whatever their bytes: line
// ends may be converted.
func (b *build) sinceHead(ctx context.Context, head string, id workspace.ID) ([]change, error) {
	now, err := b.snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []change
	for p, f := range now.files {
		if !b.tracked[b.r.prefix+p] {
			list = append(list, change{b.r.prefix + p, f})
		}
	}
	if head == "" {
		return sorted(list), nil
	}
	out, err := b.r.run(ctx, nil, "diff-index", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", head,
		"--", ".")
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for p := range strings.SplitSeq(out, "\x00") {
		rel, ok := strings.CutPrefix(p, b.r.prefix)
		if !ok || rel == "" || seen[p] || !b.tracked[p] {
			continue
		}
		seen[p] = true
		if f := now.files[rel]; f != nil || !now.leftOut(rel) {
			list = append(list, change{p, f})
		}
	}
	return sorted(list), nil
}

func sorted(list []change) []change {
	slices.SortFunc(list, func(a, b change) int { return strings.Compare(a.path, b.path) })
	return list
}
