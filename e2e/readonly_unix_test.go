//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A store in a folder that cannot be written is read as it is, and the commands say so. Those that
// write fail with a hint.
func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	program, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pd") //nolint:usetesting // another user may not enter the folders of testing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { setWritable(t, dir, true); _ = os.RemoveAll(dir) })
	raw, err := os.ReadFile(program)
	if err == nil {
		program = filepath.Join(dir, "perdure")
		err = errors.Join(os.WriteFile(program, raw, 0o755), //nolint:gosec // other users start it
			os.Mkdir(filepath.Join(dir, "p"), 0o755), os.WriteFile(filepath.Join(dir, "p", "a.txt"), []byte("text\n"), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	perdure := func(args ...string) (stdout, stderr string, status int) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = filepath.Join(dir, "p")
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
		if os.Getuid() == 0 { // to whom nothing is read-only
			const other = 65534
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
		}
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return out.String(), said.String(), cmd.ProcessState.ExitCode()
	}
	setWritable(t, dir, true)
	if _, said, status := perdure("run", "text", "-c", "a.txt"); status != 0 {
		t.Fatal(said)
	}
	setWritable(t, filepath.Join(dir, "p", ".perdure"), false)
	for _, command := range []string{"status", "tree", "report", "result", "show task-0001"} {
		out, said, status := perdure(strings.Fields(command)...)
		if status != 0 || out == "" || !strings.Contains(said, "cannot be written; it is read as it is") {
			t.Errorf("%s ended with status %d: %s%s", command, status, out, said)
		}
	}
	if _, said, status := perdure("var", "set", "name", "1"); status != 7 || !strings.Contains(said, "hint: ") {
		t.Errorf("var set ended with status %d: %s", status, said)
	}
}

// setWritable gives or takes the right to write all files below a folder, which belong to the user of
// the test's commands.
func setWritable(t *testing.T, dir string, can bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() &^ 0o222
		if can {
			mode |= 0o200
		}
		if os.Getuid() == 0 {
			err = os.Chown(name, 65534, 65534)
		}
		return errors.Join(err, os.Chmod(name, mode))
	})
	if err != nil {
		t.Error(err)
	}
}
