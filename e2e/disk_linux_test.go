package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/testing/testdb"
)

// own runs a shell script in new namespaces: as their root (0), it may mount disks that
// no other process sees; with another user ID, permissions apply to it. The output of
// each command is written to files.
func own(t *testing.T, user int, script string) (dir string) {
	t.Helper()
	path, err := exec.LookPath("perdure")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	head := `t() { name=$1; shift; timeout 50 perdure "$@" > "$OUT/$name.out" 2> "$OUT/$name.err"; echo $? > "$OUT/$name.status"; }
cd disk
`
	if user == 0 {
		head = "mount -t tmpfs -o size=2m none disk || exit 77\n" + head
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", head+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OUT="+dir, "PERDURE_LOOP_ENV=OUT",
		"PERDURE_DIR="+filepath.Join(dir, "disk", ".perdure"), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case os.IsPermission(err), cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 77:
		testdb.Missing(t, "namespaces", fmt.Sprintf("no mounts of one's own here: %v %s", err, out))
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// said checks the output of a command of a script: an error that matches a pattern, or
// with status 0 a result that contains a text.
func said(t *testing.T, dir, name string, status int, want string) {
	t.Helper()
	read := func(kind string) string {
		text, err := os.ReadFile(filepath.Join(dir, name+"."+kind))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := strings.TrimSpace(read("status")); got != fmt.Sprint(status) {
		t.Errorf("%s: status %s, want %d\n%s", name, got, status, read("err"))
		return
	}
	if status == 0 {
		if out := read("out"); !strings.Contains(out, want) {
			t.Errorf("%s says no %q:\n%s%s", name, want, out, read("err"))
		}
		return
	}
	if err := toldOnce(read("err"), want); err != nil {
		t.Errorf("%s: %v:\n%s", name, err, read("err"))
	}
}

// TestFullDisk: the disk is full before the store is created, while a context is read,
// and during a run. The run ends by itself, and can be resumed after space was freed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := own(t, 0, `
dd if=/dev/zero of=filler bs=4096 2> /dev/null
t none run x --model mock:text=a
t init init
rm -rf filler .perdure
for i in 1 2 3 4 5 6; do echo "text $i" > f$i.txt; done
head -c 3000000 /dev/zero | tr '\0' 'a' > ../large.txt
t context run x --model mock:text=a --context ../large.txt

cat > model.sh <<'EOF'
cat > /dev/null
echo x >> ../calls
if [ $(wc -l < ../calls) = 3 ]; then dd if=/dev/zero of=filler bs=4096 2> /dev/null; fi
echo "answer"
EOF
t run batch 'f*.txt' 'What of {file}?' --model 'exec:sh model.sh' --concurrency 1
dd if=/dev/zero of=more bs=4096 2> /dev/null
t full run x --model mock:text=a
rm more
t status status
rm filler
t resume resume
t whole doctor
`)
	const full = "disk is full|no space left on device"
	said(t, dir, "none", 7, full)
	said(t, dir, "init", 7, full)
	said(t, dir, "context", 7, full)

	said(t, dir, "run", 7, full)
	said(t, dir, "full", 7, full)
	said(t, dir, "status", 0, "interrupted")
	said(t, dir, "resume", 0, "## f6.txt\n\nanswer")
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if n := strings.Count(string(calls), "x"); err != nil || n < 6 || n > 8 {
		t.Errorf("the model was asked %d times (%v), want 6 and at most those again that could not be written", n, err)
	}
	if out, err := os.ReadFile(filepath.Join(dir, "whole.out")); err != nil ||
		!strings.Contains(string(out), "sound, sqlite") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}

// TestReadOnlyDisk: no user can write.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := own(t, 0, `
t before run x --model mock:text=before
mount -o remount,ro none "$PWD" || exit 77
t run run x --model mock:text=a
t resume resume
t serve serve
PERDURE_DIR="$PWD/other"
export PERDURE_DIR
t new run x --model mock:text=a
t init init
`)
	const readOnly = "read-only file system"
	said(t, dir, "before", 0, "before")
	for _, name := range []string{"run", "resume", "serve"} {
		said(t, dir, name, 7, "store is read-only: .*"+readOnly)
	}
	said(t, dir, "new", 7, readOnly)
	said(t, dir, "init", 7, readOnly)
}

// TestReadOnlyFolder: permissions forbid it, and then no longer do.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	dir := own(t, 1000, `
chmod a-w .
t new run x --model mock:text=a
t init init
chmod u+w .
t before run x --model mock:text=before
echo secret > secret; chmod a-r secret
mkdir closed; echo text > closed/text; chmod 000 closed
t secret run x --model mock:text=a --context secret
t closed run x --model mock:text=a --context closed
chmod 700 closed
chmod -R a-w .perdure
t run run x --model mock:text=a
t resume resume
t serve serve
t status status
chmod -R u+w .perdure
t again run x --model mock:text=again
t list status
`)
	const denied = "permission denied"
	said(t, dir, "new", 7, denied)
	said(t, dir, "init", 7, denied)
	said(t, dir, "before", 0, "before")
	said(t, dir, "secret", 2, `"secret": it cannot be read: `+denied)
	said(t, dir, "closed", 2, `"closed": the folder cannot be read: `+denied)
	for _, name := range []string{"run", "resume", "serve"} {
		said(t, dir, name, 7, "store is read-only: .*"+denied)
	}
	said(t, dir, "status", 0, "tree-")
	said(t, dir, "again", 0, "again")
	said(t, dir, "list", 0, "tree-")
}
