package branch_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/loop/branch"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/internal/workspace"
)

func TestMain(m *testing.M) {
	testenv.Set()
	os.Exit(m.Run())
}

const name = "perdure/fix-1a2b3c4d"

// place is a workspace in a repository.
type place struct {
	*testing.T
	root    string // the workspace
	scratch string
	files   *workspace.Workspace
	env     []string
}

// newPlace opens a workspace in a folder; empty: a new repository with a commit.
func newPlace(t *testing.T, root string) *place {
	t.Helper()
	p := &place{T: t, root: root, scratch: t.TempDir(), env: append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "XDG_CONFIG_HOME="+t.TempDir())}
	if root == "" {
		p.root = t.TempDir()
		p.put("a.txt", "one\n")
		p.put("dir/b.txt", "two\n")
		p.put(".gitignore", "*.log\n")
		p.git("init", "-q", "-b", "main")
		p.commitAll()
	}
	p.reopen()
	return p
}

func (p *place) reopen() {
	p.Helper()
	var err error
	p.files, err = workspace.Open(workspace.Config{Root: p.root, Dir: p.TempDir()})
	p.ok(err)
	p.root = p.files.Root()
}

func (p *place) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) put(file, text string) {
	p.Helper()
	path := filepath.Join(p.root, file)
	p.ok(os.MkdirAll(filepath.Dir(path), 0o700))
	p.ok(os.WriteFile(path, []byte(text), 0o600))
}

func (p *place) remove(file string) {
	p.Helper()
	p.ok(os.RemoveAll(filepath.Join(p.root, file)))
}

// git runs the user's git in the workspace.
func (p *place) git(args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "git", args...)
	cmd.Dir = p.root
	cmd.Env = append(p.env, "GIT_AUTHOR_NAME=U", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=U",
		"GIT_COMMITTER_EMAIL=u@example.com", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow",
		"GIT_CONFIG_VALUE_0=always")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *place) commitAll() {
	p.Helper()
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
}

func (p *place) repository() *branch.Repository {
	p.Helper()
	r, err := branch.Open(p.Context(), branch.Config{Root: p.root, Scratch: p.scratch, Environ: p.env})
	p.ok(err)
	return r
}

func (p *place) snapshot() workspace.ID {
	p.Helper()
	id, _, err := p.files.Snapshot(p.Context())
	p.ok(err)
	return id
}

func (p *place) start() branch.Position {
	p.Helper()
	at, err := p.repository().Start(p.Context(), p.files, name, p.base())
	p.ok(err)
	return at
}

func (p *place) base() branch.Entry {
	return branch.Entry{Snapshot: p.snapshot(), Message: "base\n", Optional: true}
}

func (p *place) add(at branch.Position, message string) branch.Position {
	p.Helper()
	next, err := p.repository().Add(p.Context(), p.files, at, []branch.Entry{{Snapshot: p.snapshot(), Message: message}})
	p.ok(err)
	return next
}

// log returns the subjects of the commits of a branch, the first last.
func (p *place) log(of string) []string {
	p.Helper()
	return strings.Fields(p.git("log", "--format=%s", of))
}

// tree returns the files of a commit.
func (p *place) tree(of string) string {
	p.Helper()
	return p.git("ls-tree", "-r", "--name-only", of)
}

func (p *place) show(file string) string {
	p.Helper()
	return p.git("show", name+":"+file)
}

func (p *place) same(what string, got, want any) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// state is everything of the user's in the folders of a repository: contents, but for objects
// and for the branch of the loop with its reflog.
func (p *place) state(dirs ...string) map[string]string {
	p.Helper()
	found := make(map[string]string)
	for _, dir := range dirs {
		p.ok(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "objects" || d.Name() == "perdure") {
				return fs.SkipDir
			}
			if d.Type().IsRegular() {
				text, err := os.ReadFile(path)
				info, infoErr := d.Info()
				if err == nil && infoErr == nil {
					found[path] = info.ModTime().String() + "\n" + string(text)
				}
				return errors.Join(err, infoErr)
			}
			return nil
		}))
	}
	return found
}

func TestCommitsAreFilesOfSnapshots(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	at := p.start()
	p.same("branch without changes", at.Head, strings.TrimSpace(p.git("rev-parse", "HEAD")))
	p.put("a.txt", "three\n")
	p.put("new/c.sh", "#!/bin/sh\n")
	p.ok(os.Chmod(filepath.Join(p.root, "new/c.sh"), 0o700))
	p.ok(os.Symlink("a.txt", filepath.Join(p.root, "link")))
	p.put("x.log", "ignored\n")
	p.remove("dir")
	at = p.add(at, "I1\n")
	p.same("files", p.tree(name), ".gitignore\na.txt\nlink\nnew/c.sh\n")
	p.same("content", p.show("a.txt"), "three\n")
	p.same("link", p.show("link"), "a.txt")
	p.same("mode", strings.Fields(p.git("ls-tree", name, "new/c.sh"))[0], "100755")
	p.remove("a.txt") // a file becomes a folder, a folder a file, a folder a link
	p.put("a.txt/inside", "i\n")
	p.remove("new")
	p.put("new", "file\n")
	at = p.add(at, "I2\n")
	p.same("files", p.tree(name), ".gitignore\na.txt/inside\nlink\nnew\n")
	p.remove("a.txt")
	p.ok(os.Symlink("new", filepath.Join(p.root, "a.txt")))
	at = p.add(at, "I3\n")
	p.same("files", p.tree(name), ".gitignore\na.txt\nlink\nnew\n")
	at = p.add(at, "I4\n") // nothing changed
	p.same("commits", p.log(name), []string{"I4", "I3", "I2", "I1", "first"})
	p.same("head", strings.TrimSpace(p.git("rev-parse", name)), at.Head)
	p.same("objects", p.git("fsck", "--strict", "--no-dangling"), "")
	if left, err := os.ReadDir(p.scratch); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// What the user did not commit becomes a commit of its own, which has files as they are, but
// not those that git leaves as they are.
func TestUncommittedChangesComeFirst(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.put("a.txt", "edited\n")
	p.put("staged.txt", "s\n")
	p.git("add", "staged.txt")
	p.put("untracked.txt", "u\n")
	p.remove("dir/b.txt")
	at := p.start()
	p.same("commits", p.log(name), []string{"base", "first"})
	p.same("files", p.tree(name), ".gitignore\na.txt\nstaged.txt\nuntracked.txt\n")
	p.same("content", p.show("a.txt"), "edited\n")
	p.add(at, "I1\n")
	p.same("changes of the iteration", p.git("diff", name+"^", name), "")
}

// Nothing of the user's changes, and no program of the repository is started.
func TestNothingElseChanges(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.put("a.txt", "stashed\n")
	p.git("stash", "-q")
	p.put("dir/b.txt", "staged\n")
	p.git("add", "dir/b.txt")
	p.put("dir/b.txt", "edited\n")
	p.put(".gitattributes", "*.txt filter=bad\n")
	mark := filepath.Join(t.TempDir(), "started")
	hooks := t.TempDir()
	for _, dir := range []string{filepath.Join(p.root, ".git/hooks"), hooks} {
		for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction",
			"post-index-change", "update", "post-update", "prepare-commit-msg", "post-checkout"} {
			p.ok(os.MkdirAll(dir, 0o700))
			p.ok(os.WriteFile(filepath.Join(dir, hook), []byte("#!/bin/sh\necho "+hook+" >> "+mark+"\n"), 0o700))
		}
	}
	program := "echo setting >> " + mark
	for key, value := range map[string]string{"core.hooksPath": hooks, "filter.bad.clean": program,
		"filter.bad.smudge": program, "filter.bad.process": program, "filter.bad.required": "true",
		"core.fsmonitor": program, "diff.external": program, "commit.gpgSign": "true", "gpg.program": "/bin/false",
		"core.splitIndex": "true", "core.untrackedCache": "true"} {
		p.git("config", key, value)
	}
	p.remove("../" + filepath.Base(mark))
	before := p.state(p.root, hooks)
	at := p.start()
	p.put("a.txt", "by the agent\n")
	at = p.add(at, "I1\n")
	p.put("a.txt", "one\n") // as it was
	at = p.add(at, "I2\n")
	after := p.state(p.root, hooks)
	for path := range before {
		if strings.HasSuffix(path, "a.txt") {
			delete(before, path)
			delete(after, path)
		}
	}
	p.same("state", after, before)
	p.same("commits", p.log(name), []string{"I2", "I1", "base", "first"})
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("programs were started: %s", text)
	}
	p.same("author", p.git("log", "-1", "--format=%an %ae", at.Head), "perdure perdure@localhost\n")
}

func TestAuthorIsTheUser(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.git("config", "user.name", "Ada L")
	p.git("config", "user.email", "ada@example.com")
	at := p.add(p.start(), "I1\n")
	p.same("author", p.git("log", "-1", "--format=%an %ae %cn", at.Head), "Ada L ada@example.com Ada L\n")
}

// A call that is repeated after a crash makes no commit twice, wherever the crash was.
func TestRepeatedCalls(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.put("a.txt", "edited\n")
	first := p.start()
	p.same("repeated start", p.start(), first)
	p.put("a.txt", "more\n")
	between := p.snapshot()
	p.put("a.txt", "most\n")
	list := []branch.Entry{{Snapshot: between, Message: "between\n", Optional: true}, {Snapshot: p.snapshot(),
		Message: "I1\n"}}
	next, err := p.repository().Add(t.Context(), p.files, first, list)
	p.ok(err)
	again, err := p.repository().Add(t.Context(), p.files, first, list)
	p.ok(err)
	p.same("repeated call", again, next)
	p.same("commits", p.log(name), []string{"I1", "between", "base", "first"})
	list[1].Message = "I2\n"
	_, err = p.repository().Add(t.Context(), p.files, first, list)
	p.refused(err, "was moved to")
}

func (p *place) refused(err error, words string) {
	p.Helper()
	problem, ok := errors.AsType[*branch.Error](err)
	if !ok || !strings.Contains(problem.Error(), words) || problem.Hint == "" {
		p.Errorf("error %v, want one about %q with a hint", err, words)
	}
}

// A branch that is not as the loop left it is not changed.
func TestBranchOfTheUserIsNotOverwritten(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, words string
		change      func(p *place, at *branch.Position)
	}{
		{"moved", "was moved to", func(p *place, _ *branch.Position) { p.git("branch", "-f", name, "HEAD") }},
		{"deleted", "was deleted", func(p *place, _ *branch.Position) { p.git("branch", "-D", name) }},
		{"checked out", "is checked out in", func(p *place, _ *branch.Position) {
			p.git("worktree", "add", "-q", filepath.Join(p.TempDir(), "w"), name)
		}},
		{"symbolic", "symbolic reference", func(p *place, at *branch.Position) {
			p.git("branch", "victim", at.Head)
			p.git("symbolic-ref", "refs/heads/"+name, "refs/heads/victim")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "")
			at := p.add(p.start(), "I1\n")
			test.change(p, &at)
			before := p.git("for-each-ref", "--format=%(refname) %(objectname)")
			_, err := p.repository().Add(t.Context(), p.files, at, []branch.Entry{{Snapshot: p.snapshot(), Message: "I2\n"}})
			p.refused(err, test.words)
			p.same("branches", p.git("for-each-ref", "--format=%(refname) %(objectname)"), before)
		})
	}
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.git("commit", "-q", "--allow-empty", "-m", "second")
	p.git("branch", name, "HEAD^")
	_, err := p.repository().Start(t.Context(), p.files, name, p.base())
	p.refused(err, "exists already")
	p.ok(p.repository().Usable(t.Context()))
	p.git("branch", "-D", name)
	p.git("branch", "perdure")
	p.refused(p.repository().Usable(t.Context()), "has a branch perdure")
}

func TestNoRepository(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	_, err := branch.Open(t.Context(), branch.Config{Root: t.TempDir(), Environ: p.env})
	p.refused(err, "not in the working tree of a git repository")
	bare := t.TempDir()
	p.git("clone", "-q", "--bare", ".", bare)
	_, err = branch.Open(t.Context(), branch.Config{Root: bare, Environ: p.env})
	p.refused(err, "not in the working tree of a git repository")
	_, err = branch.Open(t.Context(), branch.Config{Root: p.root, Environ: p.env, Git: "no-such-git"})
	p.refused(err, "not found in PATH")
}
