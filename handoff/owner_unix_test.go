//go:build unix

package handoff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/handoff"
)

func TestWriteKeepsModeAndLinks(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	if err := os.Chmod(path, 0o646); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12345, 23456); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	f := lock(t, link)
	if err := f.Write(with(t, f, small()), nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if after.Mode() != before.Mode() || is.Uid != was.Uid || is.Gid != was.Gid {
		t.Errorf("mode %v of %d:%d, want %v of %d:%d", after.Mode(), is.Uid, is.Gid, before.Mode(), was.Uid, was.Gid)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if !strings.Contains(content(t, path), "checkpoint") {
		t.Error("the file behind the link has no checkpoint")
	}
}

// A new file in a folder of perdure is for its user only.
func TestModeOfANewFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, ".perdure/loops/x")
	path := filepath.Join(dir, ".perdure", "loops", "new.json")
	if err := handoff.Create(t.Context(), path, handoff.Skeleton{Now: at("2026-02-28T10:00:00Z")}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A folder or a file that is not writable is an error.
func TestLockWithoutPermission(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can play another user")
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.Link(os.Args[0], program); err != nil {
		t.Skipf("this program cannot be where others see it: %v", err)
	}
	for dir := program; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		dir, file os.FileMode
		want      string
	}{
		{0o755, 0o666, "permission denied"},
		{0o777, 0o644, "the file is read-only: permission denied"},
		{0o777, 0o600, "read-only"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, handoff.FileName)
		if err := os.WriteFile(path, []byte(emptyPRD), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{dir: tt.dir, path: tt.file} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = "/"
		cmd.Env = []string{childFile + "=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("folder %v, file %v: %v, %s, want %s", tt.dir, tt.file, err, out, tt.want)
		}
		if got := content(t, path); got != emptyPRD {
			t.Errorf("the file is %q", got)
		}
		if got := names(t, dir); len(got) != 1 {
			t.Errorf("left in the folder: %q", got)
		}
	}
}

// A repository that git does not read, such as one of another user, is not asked file by file.
//
//nolint:paralleltest // sets the environment
func TestSourcesOfABrokenRepository(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git program")
	}
	bin, root := t.TempDir(), t.TempDir()
	calls := filepath.Join(bin, "calls")
	script := "#!/bin/sh\necho x >> '" + calls + "'\nexec '" + git + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i := range 64 {
		paths = append(paths, "src/"+strings.Repeat("a", i+1))
	}
	sources, _, err := handoff.Sources(t.Context(), root, paths)
	if err != nil || len(sources) != len(paths) {
		t.Errorf("%d sources, %v", len(sources), err)
	}
	const most = 3
	if n := strings.Count(content(t, calls), "x"); n > most {
		t.Errorf("git was started %d times, want at most %d", n, most)
	}
}
