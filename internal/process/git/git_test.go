package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/process/git"
)

// repository is a repository whose settings name programs. Each of them makes a file with
// its name in marks.
type repository struct {
	t          *testing.T
	dir, marks string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs git and a shell")
	}
	r := &repository{t: t, dir: t.TempDir(), marks: t.TempDir()}
	r.plain("init", "-q", "-b", "main")
	r.write("a.txt", "one\n")
	r.write("gone.txt", "gone\n")
	r.plain("add", ".")
	r.plain("commit", "-q", "-m", "first")
	return r
}

// plain runs git as a user does; the result does not matter after a hostile setting.
func (r *repository) plain(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git",
		append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = r.dir
	cmd.WaitDelay = time.Second // for programs that it started
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

// program is a command line that leaves a mark.
func (r *repository) program(name string) string {
	return "touch '" + filepath.Join(r.marks, name) + "'; true"
}

func (r *repository) marked() string {
	r.t.Helper()
	entries, err := os.ReadDir(r.marks)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if err := os.Remove(filepath.Join(r.marks, e.Name())); err != nil {
			r.t.Fatal(err)
		}
	}
	return strings.Join(names, " ")
}

func (r *repository) query(env ...string) git.Query {
	return git.Query{Dir: r.dir, Environ: append(os.Environ(), env...)}
}

// all runs every command that perdure runs.
func (r *repository) all(q git.Query) {
	r.t.Helper()
	ctx := r.t.Context()
	filters, err := git.Filters(ctx, q)
	if err != nil {
		r.t.Fatal(err)
	}
	q.NoFilters = filters
	for _, args := range [][]string{
		{"rev-parse", "--show-toplevel"},
		{"diff", "--raw", "-z", "--no-ext-diff", "--no-textconv", "HEAD", "--"},
		{"diff", "--raw", "-z", "--no-ext-diff", "--no-textconv", "--cached", "HEAD", "--"},
		{"ls-files", "-v", "-z"},
		{"ls-files", "--others", "--exclude-standard", "-z"},
		{"ls-tree", "--full-tree", "-l", "HEAD"},
	} {
		if out, err := git.Command(ctx, q, args...).CombinedOutput(); err != nil {
			r.t.Errorf("git %v: %v\n%s", args, err, out)
		}
	}
	for _, args := range [][]string{{"check-ignore", "-z", "--stdin"}, {"cat-file", "--batch"}} {
		cmd := git.Command(ctx, q, args...)
		cmd.Stdin = strings.NewReader("HEAD:gone.txt\nHEAD:a.txt\n")
		_ = cmd.Run() // none is ignored, an object is missing
	}
}

func TestNoProgramOfTheRepositoryStarts(t *testing.T) {
	t.Parallel()
	filter := func(name string) func(*repository) {
		return func(r *repository) {
			r.plain("config", "filter."+name+".clean", r.program("clean"))
			r.plain("config", "filter."+name+".process", r.program("process"))
			r.plain("config", "filter."+name+".required", "true")
			r.write(".gitattributes", "* filter="+name+"\n")
		}
	}
	tests := map[string]func(r *repository){
		"filter":               filter("x"),
		"filter with dots":     filter("x.y.clean"),
		"filter in upper case": filter("X-Y"),
		"clean filter only": func(r *repository) {
			r.plain("config", "filter.a.clean", r.program("clean"))
			r.write(".gitattributes", "* filter=a\n")
		},
		"included filter": func(r *repository) {
			r.write(".git/more", "[filter \"a\"]\n\tclean = \""+r.program("clean")+"\"\n")
			r.plain("config", "include.path", "more")
			r.write(".git/info/attributes", "*.txt filter=a\n")
		},
		"filter of the work tree's own settings": func(r *repository) {
			r.plain("config", "extensions.worktreeConfig", "true")
			r.plain("config", "--worktree", "filter.a.clean", r.program("clean"))
			r.write(".gitattributes", "* filter=a\n")
		},
		"file system monitor": func(r *repository) {
			r.write("monitor", "#!/bin/sh\n"+r.program("monitor")+"\n")
			r.plain("config", "core.fsmonitor", filepath.Join(r.dir, "monitor"))
		},
		"hook": func(r *repository) {
			r.write(".git/hooks/post-index-change", "#!/bin/sh\n"+r.program("hook")+"\n")
		},
		"external diff": func(r *repository) {
			r.plain("config", "diff.external", r.program("external"))
			r.plain("config", "diff.d.command", r.program("driver"))
			r.plain("config", "diff.d.textconv", r.program("textconv"))
			r.write(".gitattributes", "* diff=d\n")
		},
		"missing object": func(r *repository) {
			id := r.plain("rev-parse", "HEAD:gone.txt")
			if err := os.Remove(filepath.Join(r.dir, ".git", "objects", id[:2], id[2:])); err != nil {
				r.t.Fatal(err)
			}
			r.plain("config", "core.repositoryFormatVersion", "1")
			r.plain("config", "extensions.partialClone", "evil")
			r.plain("config", "protocol.ext.allow", "always")
			r.plain("config", "protocol.allow", "always")
			r.plain("config", "remote.evil.url", "ext::sh -c "+strings.ReplaceAll(
				"touch "+filepath.Join(r.marks, "fetch"), " ", "% "))
			r.plain("config", "remote.evil.promisor", "true")
		},
		"upload program": func(r *repository) {
			id := r.plain("rev-parse", "HEAD:gone.txt")
			if err := os.Remove(filepath.Join(r.dir, ".git", "objects", id[:2], id[2:])); err != nil {
				r.t.Fatal(err)
			}
			r.plain("config", "core.repositoryFormatVersion", "1")
			r.plain("config", "extensions.partialClone", "evil")
			r.plain("config", "remote.evil.url", r.dir)
			r.plain("config", "remote.evil.uploadpack", r.program("uploadpack")+"; :")
			r.plain("config", "remote.evil.promisor", "true")
		},
	}
	for name, hostile := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			hostile(r)
			r.write("a.txt", "two\n")
			r.all(r.query("GIT_EXTERNAL_DIFF="+r.program("environment"),
				"GIT_TRACE="+filepath.Join(r.marks, "trace")))
			if marks := r.marked(); marks != "" {
				t.Errorf("started: %s", marks)
			}
			// The same attack works on a git that is run without this package.
			r.plain("status")
			r.plain("diff", "HEAD")
			r.plain("cat-file", "-p", "HEAD:gone.txt")
			r.plain("update-index", "--force-write-index", "--refresh")
			if r.marked() == "" {
				t.Errorf("the attack is not one: plain git starts nothing")
			}
		})
	}
}

// What cannot be turned off is refused, and so is an endless list.
func TestFiltersThatCannotBeTurnedOff(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.plain("config", "filter.a=b.clean", r.program("clean"))
	if off, err := git.Filters(t.Context(), r.query()); err == nil || !strings.Contains(err.Error(), `"a=b"`) {
		t.Errorf("%q, %v", off, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := git.Filters(stopped, r.query()); err == nil {
		t.Error("no error after the end of the context")
	}
}

// The variables of a hook select another repository, unless the query is about its own.
func TestOwnRepository(t *testing.T) {
	t.Parallel()
	r, other := newRepository(t), newRepository(t)
	q := r.query("GIT_DIR="+filepath.Join(other.dir, ".git"), "GIT_WORK_TREE="+other.dir)
	for own, want := range map[bool]string{false: other.dir, true: r.dir} {
		q.Own = own
		out, err := git.Command(t.Context(), q, "rev-parse", "--show-toplevel").Output()
		top, _ := filepath.EvalSymlinks(want)
		if got := strings.TrimSpace(string(out)); err != nil || got != top {
			t.Errorf("own %v: %q, %v; want %q", own, got, err, top)
		}
	}
}
