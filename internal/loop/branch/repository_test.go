package branch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/loop/branch"
)

// Repositories of every form have the commits of a loop.
func TestKindsOfRepositories(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		make  func(p *place) (root string)
		files string // of the branch after the iteration
		log   []string
	}{
		{"detached HEAD", func(p *place) string {
			p.git("checkout", "-q", "--detach")
			return p.root
		}, ".gitignore\na.txt\ndir/b.txt\nnew.txt\n", []string{"I1", "first"}},
		{"unborn branch", func(p *place) string {
			root := p.TempDir()
			p.git("init", "-q", root)
			p.ok(os.WriteFile(filepath.Join(root, "own.txt"), nil, 0o600))
			return root
		}, "new.txt\nown.txt\n", []string{"I1", "base"}},
		{"empty repository", func(p *place) string {
			root := p.TempDir()
			p.git("init", "-q", root)
			return root
		}, "new.txt\n", []string{"I1"}},
		{"shallow clone", func(p *place) string {
			p.git("commit", "-q", "--allow-empty", "-m", "second")
			root := p.TempDir()
			p.git("clone", "-q", "--depth=1", "file://"+p.root, root)
			return root
		}, ".gitignore\na.txt\ndir/b.txt\nnew.txt\n", []string{"I1", "second"}},
		{"linked worktree", func(p *place) string {
			p.git("config", "extensions.worktreeConfig", "true")
			root := filepath.Join(p.TempDir(), "w")
			p.git("worktree", "add", "-q", "-b", "side", root)
			p.git("-C", root, "config", "--worktree", "user.name", "Side")
			return root
		}, ".gitignore\na.txt\ndir/b.txt\nnew.txt\n", []string{"I1", "first"}},
		{"subfolder", func(p *place) string { return filepath.Join(p.root, "dir") },
			".gitignore\na.txt\ndir/b.txt\ndir/new.txt\n", []string{"I1", "first"}},
		{"sparse checkout", func(p *place) string {
			p.git("sparse-checkout", "set", "--cone", "--sparse-index", "other")
			return p.root
		}, ".gitignore\na.txt\ndir/b.txt\nnew.txt\n", []string{"I1", "first"}},
		{"partial clone", func(p *place) string {
			p.git("config", "uploadpack.allowFilter", "true")
			root := p.TempDir()
			p.git("clone", "-q", "--filter=blob:none", "--sparse", "file://"+p.root, root)
			return root
		}, ".gitignore\na.txt\ndir/b.txt\nnew.txt\n", []string{"I1", "first"}},
		{"submodule", func(p *place) string {
			p.git("submodule", "--quiet", "add", p.root, "sub")
			p.git("commit", "-q", "-m", "second")
			p.put("sub/a.txt", "changed in it\n")
			return p.root
		}, ".gitignore\n.gitmodules\na.txt\ndir/b.txt\nnew.txt\nsub\n", []string{"I1", "second", "first"}},
		{"nested repository", func(p *place) string {
			p.git("init", "-q", "inner")
			p.put("inner/file", "f\n")
			return p.root
		}, ".gitignore\na.txt\ndir/b.txt\nnew.txt\n", []string{"I1", "first"}},
		{"other hash", func(p *place) string {
			root := p.TempDir()
			p.git("init", "-q", "--object-format=sha256", root)
			p.ok(os.WriteFile(filepath.Join(root, "own.txt"), nil, 0o600))
			return root
		}, "new.txt\nown.txt\n", []string{"I1", "base"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "")
			root := test.make(p)
			q := newPlace(t, root)
			at := q.start()
			q.put("new.txt", "n\n")
			if test.name == "submodule" { // its files stay those of its own commits
				q.put("sub/new.txt", "n\n")
				q.remove("sub/.git")
			}
			at = q.add(at, "I1\n")
			q.same("commits", q.log(name), test.log)
			q.same("files", q.git("ls-tree", "-r", "--name-only", "--full-tree", at.Head), test.files)
			q.same("repeated", q.head(), at.Head)
			if test.name == "submodule" {
				q.same("submodule", strings.Fields(q.git("ls-tree", name, "sub"))[0], "160000")
			}
		})
	}
}

// head returns the head of the branch.
func (p *place) head() string {
	p.Helper()
	return strings.TrimSpace(p.git("rev-parse", name))
}

// Line ends are converted as in the user's own commits.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.put(".gitattributes", "*.txt text eol=crlf\n*.bin -text\n")
	p.put("a.txt", "one\r\n")
	p.commitAll()
	p.remove("a.txt")
	p.git("checkout", "-q", "a.txt")
	at := p.start()
	p.same("commits", p.log(name), []string{"first", "first"})
	p.put("a.txt", "one\r\ntwo\r\n")
	p.put("b.bin", "x\r\n")
	p.add(at, "I1\n")
	p.same("text", p.show("a.txt"), "one\ntwo\n")
	p.same("binary", p.show("b.bin"), "x\r\n")
	p.same("changes", p.git("diff", "--name-only", name+"^", name), "a.txt\nb.bin\n")
}

// Another repository in the place of the first one gets no commit.
func TestOtherRepository(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	at := p.start()
	other := t.TempDir()
	p.git("clone", "-q", ".", other)
	p.remove(".git")
	p.put(".git", "gitdir: "+filepath.Join(other, ".git")+"\n")
	_, err := p.repository().Add(t.Context(), p.files, at, []branch.Entry{{Snapshot: p.snapshot(), Message: "I1\n"}})
	p.refused(err, "the repository of the workspace is")
}
