//go:build unix

package perdure_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// unprivileged makes the command run without the rights of root, to whom nothing
// is read-only. Another user keeps its own rights.
func unprivileged(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	// The test binary is in a folder of root's.
	dir, err := os.MkdirTemp("", "perdure") //nolint:usetesting // others may not enter those of testing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // others start the program in it
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	copyProgram(t, cmd.Path, program)
	cmd.Path, cmd.Dir = program, "/"
	const otherUser = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	// So are the folders of tests.
	for _, entry := range cmd.Env {
		if name, ok := cutVariable(entry, dirVariable); ok {
			openPath(t, name)
		}
	}
}

func cutVariable(entry, name string) (string, bool) {
	if len(entry) <= len(name) || entry[:len(name)+1] != name+"=" {
		return "", false
	}
	return entry[len(name)+1:], true
}

// openPath lets everybody go down to a folder.
func openPath(t *testing.T, dir string) {
	t.Helper()
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		st, err := os.Stat(up)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o005 == 0o005 {
			continue
		}
		if err := os.Chmod(up, st.Mode().Perm()|0o055); err != nil {
			t.Fatal(err)
		}
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
}
