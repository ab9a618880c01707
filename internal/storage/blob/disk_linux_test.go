package blob_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// mountSmallDisk mounts a file system of 1 MiB, which only a process in its own
// mount namespace may do.
func mountSmallDisk(dir string) (string, error) {
	return dir, syscall.Mount("perdure-test", dir, "tmpfs", 0, "size=1m")
}

func makeReadOnly(dir string) error {
	return syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

func TestFullAndReadOnlyDisk(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := runChild(cmd, "fill", t.TempDir())
	if os.IsPermission(err) || strings.HasPrefix(out, "skip:") {
		t.Skipf("no mount namespaces here: %v %s", err, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
	for _, want := range []string{
		`full: after 3, left 0: .*no space left on device`,
		`read-only: put blob: .*read-only file system`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}
