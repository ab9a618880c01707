package cleancheck_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/verify/cleancheck"
)

// sandboxed reports whether this machine has sandboxes.
func (b *bench) sandboxed() bool {
	b.Helper()
	dir := b.TempDir()
	err := guard.Run(b.Context(), guard.Config{Path: "true", Dir: dir,
		Sandbox: &sandbox.Config{Writable: []string{dir}, Temp: dir}})
	_, refused := errors.AsType[*sandbox.Error](err)
	return !refused
}

// user returns a workspace of a user with a home folder. Its check passes if the
// script does, or where the work is done.
func user(t *testing.T, script string, files map[string]string) (*bench, string) {
	t.Helper()
	files["check.sh"] = "if grep -qs good work || { " + script + "; }; then echo 'ok 1 - a'; else echo 'not ok 1 - a'; " +
		"bad=1; fi; echo 1..1; exit ${bad:-0}"
	files["work"] = "bad"
	b := newBench(t, "sh check.sh", files)
	home := filepath.Join(t.TempDir(), "user")
	b.ok(os.MkdirAll(home, 0o700))
	b.env = []string{"GOMODCACHE=", "HOME=" + home, "XDG_CONFIG_HOME=", "GOENV=", "PYTHONUSERBASE=",
		"PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH")}
	return b, home
}

// TestHiddenState: a check that passes because of files that the agent left outside of the
// workspace, or of a variable, does not pass in a copy.
func TestHiddenState(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"home":     "[ -e ~/mark ]",
		"config":   `[ -e "${XDG_CONFIG_HOME:-$HOME/.config}/mark" ]`,
		"cache":    `[ -e "${XDG_CACHE_HOME:-$HOME/.cache}/mark" ]`,
		"variable": `[ "$LD_AUDIT$HIDDEN" ] || printenv | grep -e '^NODE_OPTIONS=.*size=100' -e '^PYTHONPATH=.*/x\>'`,
		"go cache": `[ -e "$GOCACHE/mark" ]`,
		"temp":     `[ -e "$MARKED/mark" ] || [ -e "$TMPDIR/mark" ]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, home := user(t, script, map[string]string{})
			b.begin()
			temp := t.TempDir()
			b.env = append(b.env, "NODE_OPTIONS=--max-old-space-size=100", "PYTHONPATH=/x", "HIDDEN=1", "TMPDIR="+temp,
				"GOCACHE="+temp)
			b.pass = nil
			for _, dir := range []string{home, filepath.Join(home, ".config"), filepath.Join(home, ".cache"), temp} {
				b.ok(errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "mark"), nil, 0o600)))
			}
			v := b.seal()
			if v.State == cleancheck.Passed || v.State == cleancheck.Partly {
				t.Errorf("it passes: %+v", v)
			}
		})
	}
}

// TestStateBetweenRuns: a run in a copy finds nothing that an earlier one left.
func TestStateBetweenRuns(t *testing.T) {
	t.Parallel()
	// The candidate passes in the workspace, and from the second run in a copy on.
	b, _ := user(t, `[ ! -e other ] || [ "$(basename "$(dirname "$PWD")")" != copy ] || {
		for d in ~ /tmp /var/tmp /dev/shm "$TMPDIR"; do
			[ -e "$d/perdure-seen" ] && found=1; echo x > "$d/perdure-seen"
		done; [ $found ]; }`, map[string]string{".gitignore": "left\n"})
	if !b.sandboxed() {
		t.Skip("without a sandbox /tmp is shared")
	}
	b.begin()
	b.put(map[string]string{"left": "x", "other": "y"})
	b.want(b.seal(), cleancheck.Failed, "test_failure")
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		_ = os.Remove(filepath.Join(dir, "perdure-seen")) // of the last run, which is without a sandbox
	}
}

// TestReplacedTool: a program of the check that was changed, or that another one earlier on
// PATH hides, is a regression that names it; other programs are noted.
func TestReplacedTool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ put, old, says string }{
		"changed": {"real/tool", "old/tool", "content of "},
		"hidden":  {"bin/tool", "old/tool", "tool is "},
		"link":    {"", "old/tool", " leads to "},
		"removed": {"-", "old/tool", "no longer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, home := user(t, "false", map[string]string{})
			b.check = "tool && sh check.sh"
			b.env = append(b.env, "PATH="+home+"/bin:"+home+"/old:"+os.Getenv("PATH"))
			program := func(name, text string) {
				name = filepath.Join(home, name)
				b.ok(errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.RemoveAll(name),
					os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700))) //nolint:gosec // a program
			}
			program("bin/unrelated", "true")
			program("real/tool", "true")
			program("real/other", "exit 0")
			b.ok(os.MkdirAll(filepath.Join(home, "old"), 0o700))
			b.ok(os.Symlink(filepath.Join(home, "real", "tool"), filepath.Join(home, c.old)))
			b.begin()
			b.put(map[string]string{"work": "good"})
			if v := b.seal(); v.State != cleancheck.Passed {
				t.Fatalf("it does not pass with the same program: %+v", v)
			}
			switch c.put {
			case "":
				b.ok(os.Remove(filepath.Join(home, c.old)))
				b.ok(os.Symlink(filepath.Join(home, "real", "other"), filepath.Join(home, c.old)))
			case "-":
				b.ok(os.Remove(filepath.Join(home, c.old)))
				b.check = "sh check.sh"
			default:
				program(c.put, "exit  0")
			}
			b.want(b.seal(), cleancheck.Failed, "validation_bypass", "programs of the check were replaced", "tool", c.says)
		})
	}
}

// TestOtherPrograms: a changed program that the check does not name is noted.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	b, home := user(t, "false", map[string]string{})
	other := filepath.Join(home, "bin", "other")
	b.ok(errors.Join(os.MkdirAll(filepath.Dir(other), 0o700), os.WriteFile(other, nil, 0o700))) //nolint:gosec // a program
	b.begin()
	b.put(map[string]string{"work": "good"})
	if v := b.seal(); v.State != cleancheck.Passed || len(v.Notes) > 0 || !v.Isolation.Path {
		t.Fatalf("%+v", v)
	}
	b.ok(errors.Join(os.Remove(other), os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700))) //nolint:gosec // a program
	b.want(b.seal(), cleancheck.Passed, "", other)
}

// TestChangedCache: a cache of downloaded packages of which files were changed is not used.
// The check fails if it needs that cache, and is not repeated without the sandbox, where it
// could download.
func TestChangedCache(t *testing.T) {
	t.Parallel()
	const site = ".local/lib/python3.9/site-packages/"
	for name, c := range map[string]struct {
		file   string
		shared bool
	}{
		"changed": {site + "a.py", false}, "added": {site + "b.py", false}, "same": {"", true}, "removed": {"-", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, home := user(t, "false", map[string]string{})
			b.env = slices.DeleteFunc(b.env, func(v string) bool { return v == "PYTHONUSERBASE=" })
			write := func(name, text string) {
				name = filepath.Join(home, name)
				b.ok(errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)))
			}
			write(site+"a.py", "x = 1")
			b.check = `sh check.sh && [ "$PYTHONUSERBASE" -o "$PWD" = '` + b.dir + "' ]"
			b.begin()
			b.put(map[string]string{"work": "good"})
			switch c.file {
			case "":
			case "-":
				b.ok(os.Remove(filepath.Join(home, site+"a.py")))
			default:
				write(c.file, "x = 2")
			}
			v := b.seal()
			if c.shared != (v.State == cleancheck.Passed) || c.shared != slices.Contains(v.Isolation.Shared,
				"Python packages of the user") || !c.shared && (v.Type != "validation_bypass" ||
				v.Isolation.Why == cleancheck.BaselineNeedsMore) {
				t.Errorf("%+v %+v", v, v.Isolation)
			}
		})
	}
}

// TestNoWayOut: a check cannot connect to a listener of the machine, and cannot write into
// the workspace, the home folder or the store. What passes with less than the sandbox is
// repeated without, and reported.
func TestNoWayOut(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, home := user(t, "false", map[string]string{})
	if !b.sandboxed() {
		t.Skip("no sandbox here")
	}
	b.begin()
	b.put(map[string]string{"work": "good", "check.sh": `
if [ "$(basename "$(dirname "$PWD")")" = copy ]; then
	python3 -c "import socket; socket.create_connection(('127.0.0.1', ` + port + `), 5).close()" 2>/dev/null
	for d in '` + b.dir + "' '" + home + `'; do echo out > "$d/written"; done 2>/dev/null
fi
echo 'ok 1 - a'; echo 1..1`})
	v := b.seal()
	if v.State != cleancheck.Passed || !v.Isolation.Network || !v.Isolation.Writes || !v.Isolation.Home ||
		v.Isolation.Words() != ", without network and writes outside" {
		t.Errorf("%+v %+v", v, v.Isolation)
	}
	b.ok(l.(*net.TCPListener).Close())
	if c, err := l.Accept(); err == nil {
		t.Error("a connection arrived:", c.RemoteAddr())
	}
	for _, dir := range []string{b.dir, home} {
		if _, err := os.Lstat(filepath.Join(dir, "written")); err == nil {
			t.Errorf("%s was written", dir)
		}
	}
}

// TestWorkspaceHidden: a check in a copy does not read the workspace by its path.
func TestWorkspaceHidden(t *testing.T) {
	t.Parallel()
	b, _ := user(t, "false", map[string]string{".gitignore": "left\n"})
	if !b.sandboxed() {
		t.Skip("no sandbox here")
	}
	b.put(map[string]string{"work": "good"})
	b.begin()
	b.put(map[string]string{"left": "x", "check.sh": "name='" + filepath.Dir(b.dir) +
		"'; [ -e $name/" + filepath.Base(b.dir) + "/left ] && echo 'ok 1 - a' && echo 1..1"})
	b.want(b.seal(), cleancheck.Failed, "test_failure", "It passes with the network")
}

// TestMissingPassedFolder: an agent does not turn the sandbox off by removing a folder of
// loop.env. One that cannot be created makes the check impossible, also with the sandbox.
func TestMissingPassedFolder(t *testing.T) {
	t.Parallel()
	b, home := user(t, "false", map[string]string{})
	if !b.sandboxed() {
		t.Skip("no sandbox here")
	}
	cache := filepath.Join(home, "cache", "build")
	b.env = append(b.env, "GOCACHE="+cache)
	b.check = `sh check.sh && case $PWD in */copy/*) echo x > "$GOCACHE/made";; esac`
	b.put(map[string]string{"work": "good"})
	b.begin()
	b.put(map[string]string{"other": "x"})
	if v := b.seal(); v.State != cleancheck.Passed || !v.Isolation.Writes {
		t.Errorf("%+v %+v", v, v.Isolation)
	}
	b.ok(errors.Join(os.RemoveAll(cache), os.WriteFile(cache, nil, 0o600)))
	b.want(b.seal(), cleancheck.Impossible, "", "not a directory")
}

// TestNeedsMore: a check whose baseline passes only outside of the sandbox is repeated
// without it, and the verdict says so.
func TestNeedsMore(t *testing.T) {
	t.Parallel()
	b, home := user(t, "false", map[string]string{})
	if !b.sandboxed() {
		t.Skip("no sandbox here")
	}
	b.check = "echo x > '" + home + "/needed' && sh check.sh"
	b.put(map[string]string{"work": "good"})
	b.begin()
	b.put(map[string]string{"other": "x"})
	v := b.seal()
	if v.State != cleancheck.Passed || v.Isolation.Network || v.Isolation.Writes ||
		v.Isolation.Why != cleancheck.BaselineNeedsMore || !strings.Contains(v.Isolation.Words(), "access to the network") {
		t.Errorf("%+v %+v", v, v.Isolation)
	}
	// A candidate that needs it, where the baseline does not, fails.
	b.check = "sh check.sh"
	b.begin()
	b.put(map[string]string{"check.sh": "echo x > '" + home + "/needed' && echo 'ok 1 - a' && echo 1..1"})
	b.want(b.seal(), cleancheck.Failed, "test_failure", "It passes with the network")
}

// TestExcludedCacheStaysConfined: an agent that changes a cache does not turn the sandbox
// off, where the check could download what is missing.
func TestExcludedCacheStaysConfined(t *testing.T) {
	t.Parallel()
	b, home := user(t, "false", map[string]string{})
	if !b.sandboxed() {
		t.Skip("no sandbox here")
	}
	b.env = slices.DeleteFunc(b.env, func(v string) bool { return v == "PYTHONUSERBASE=" })
	dir := filepath.Join(home, ".local", "lib", "python3.9", "site-packages")
	b.ok(errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "a.py"), nil, 0o600)))
	// A check that uses the cache, or writes outside of the copy as a download could.
	b.check = `sh check.sh && { [ "$PYTHONUSERBASE" ] || echo x > '` + home + `/downloaded'; }`
	b.begin()
	b.put(map[string]string{"work": "good"})
	b.ok(os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 2"), 0o600))
	b.want(b.seal(), cleancheck.Failed, "validation_bypass", "cannot be repeated without files outside", "a.py")
}

// TestIsolationWords: a result says that a setup with network preceded, and keeps the reason
// for which there is no sandbox in a loop of an older version.
func TestIsolationWords(t *testing.T) {
	t.Parallel()
	b, _ := user(t, "false", map[string]string{})
	if !b.sandboxed() {
		t.Skip("no sandbox here")
	}
	b.setup = "true"
	b.begin()
	b.put(map[string]string{"work": "good"})
	if v := b.seal(); v.Isolation.Words() != ", after a setup with network, without network and writes outside" {
		t.Errorf("%+v %s", v, v.Isolation.Words())
	}
	b.machine, b.open = nil, cleancheck.BaselineNeedsMore
	if v := b.seal(); v.Isolation.Why != cleancheck.BaselineNeedsMore || v.Isolation.Network {
		t.Errorf("%+v %+v", v, v.Isolation)
	}
}

// TestPassedVariables: patterns of loop.env pass variables of folders, and any
// name for commits arrives.
func TestPassedVariables(t *testing.T) {
	t.Parallel()
	b, home := user(t, "false", map[string]string{})
	cache := filepath.Join(home, "cache")
	const name = "A \u00a0\"B\" \\ # C"
	b.ok(os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = \"A \u00a0\\\"B\\\" \\\\ # C\"\n"),
		0o600))
	b.env = append(b.env, "GOCACHE="+cache)
	b.pass = []string{"GOC*"}
	b.put(map[string]string{"work": "good"})
	b.check = `sh check.sh && case $PWD in */copy/*) [ "$GOCACHE" = '` + cache + `' ] &&
		[ "$(git config user.name)" = '` + name + `' ];; esac`
	b.begin()
	b.put(map[string]string{"other": "x"})
	if v := b.seal(); v.State != cleancheck.Passed {
		t.Errorf("%+v", v)
	}
}

// TestSelectedVersions: an agent that selects another version of a tool chain is noticed.
func TestSelectedVersions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".tool-versions", ".pyenv/version", ".rustup/settings.toml"} {
		b, home := user(t, "false", map[string]string{})
		b.env = append(b.env, "PYENV_ROOT=", "RUSTUP_HOME=")
		b.begin()
		b.put(map[string]string{"work": "good"})
		file := filepath.Join(home, filepath.FromSlash(name))
		b.ok(errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x 1"), 0o600)))
		b.want(b.seal(), cleancheck.Failed, "validation_bypass", "select versions", name)
	}
}
