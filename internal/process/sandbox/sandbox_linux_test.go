package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
)

// roleVar selects what the test binary does as the program in a sandbox.
const roleVar = "SANDBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	guard.Enter()
	if role := os.Getenv(roleVar); role != "" {
		fmt.Println(act(role, os.Args[1:]))
		return
	}
	os.Exit(m.Run())
}

// act tries something and returns what came of it.
func act(role string, args []string) string {
	switch role {
	case "dial":
		c, err := (&net.Dialer{}).DialContext(context.Background(), args[0], args[1])
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint("connected", c.Close())
	case "loopback":
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err.Error()
		}
		return act("dial", []string{"tcp", l.Addr().String()})
	case "remount":
		return remount(args[0])
	case "nested": // new namespaces give capabilities again, over copies of the mounts
		cmd := exec.CommandContext(context.Background(), "/proc/self/exe", args...)
		cmd.Env = []string{roleVar + "=remount"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		return fmt.Sprint(string(out), err)
	case "trace":
		pid, err := strconv.Atoi(args[0])
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(syscall.PtraceAttach(pid))
	case "umask": // starts a program in a sandbox
		syscall.Umask(0o027)
		var out bytes.Buffer
		err := guard.Run(context.Background(), guard.Config{Path: "sh", Args: []string{"-c", "umask"}, Dir: args[0],
			Stdout: &out, Stderr: &out, Sandbox: &sandbox.Config{Writable: args, Temp: args[0]}})
		return fmt.Sprint(out.String(), err)
	case "inside": // as another user: starts a program in a sandbox
		return inside(args[0])
	}
	return "unknown role"
}

// remount tries to make a folder writable again in each way that there is.
func remount(dir string) string {
	file := filepath.Join(dir, "remounted")
	attempts := []error{
		unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""),
		unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND, ""),
		unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}),
		unix.Unmount("/tmp", unix.MNT_DETACH),
		os.WriteFile(file, nil, 0o600),
	}
	for i, err := range attempts {
		if err == nil {
			return fmt.Sprintf("attempt %d succeeded", i)
		}
	}
	return "all refused"
}

// inside runs a shell that writes into the place and next to it, and prints its user.
func inside(dir string) string {
	place := filepath.Join(dir, "place")
	var out bytes.Buffer
	script := "id -u; echo a > in && cat in; echo b > ../out; grep -E '^(Cap|NoNew)' /proc/self/status"
	err := guard.Run(context.Background(), guard.Config{Path: "sh", Args: []string{"-c", script}, Dir: place,
		Stdout: &out, Stderr: &out,
		Sandbox: &sandbox.Config{Writable: []string{place}, Readable: []string{os.Args[0]}, Temp: place}})
	return out.String() + fmt.Sprint(err)
}

// bench is a place to write with a folder next to it, where writing is refused.
type bench struct {
	*testing.T
	dir, place string
	cfg        sandbox.Config
}

// newBench skips the test if the system refuses sandboxes.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{T: t, dir: dir, place: filepath.Join(dir, "place")}
	b.ok(errors.Join(os.Mkdir(b.place, 0o700), os.Mkdir(filepath.Join(b.place, "work"), 0o700)))
	exe, err := os.Executable()
	b.ok(err)
	b.cfg = sandbox.Config{Writable: []string{b.place}, Readable: []string{exe}, Temp: b.place}
	if _, err := b.try("true"); err != nil {
		if _, refused := errors.AsType[*sandbox.Error](err); refused && os.Getenv("CI") == "" {
			t.Skip("no sandbox here: ", err)
		}
		t.Fatal(err)
	}
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// try runs a shell script in the sandbox.
func (b *bench) try(script string) (string, error) {
	var out bytes.Buffer
	err := guard.Run(b.Context(), guard.Config{Path: "sh", Args: []string{"-c", script},
		Dir: filepath.Join(b.place, "work"), Stdout: &out, Stderr: &out, Sandbox: &b.cfg})
	return out.String(), err
}

// act runs this test binary in the sandbox.
func (b *bench) act(role string, args ...string) string {
	b.Helper()
	var out bytes.Buffer
	exe, err := os.Executable()
	b.ok(err)
	b.ok(guard.Run(b.Context(), guard.Config{Path: exe, Args: args, Env: []string{roleVar + "=" + role}, Dir: b.place,
		Stdout: &out, Stderr: &out, Sandbox: &b.cfg}))
	return out.String()
}

// TestWrites: only the place can be written; /tmp and /dev/shm are private.
func TestWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	home, err := os.UserHomeDir()
	b.ok(err)
	for _, dir := range []string{b.dir, home, "/", "/usr", "/etc", "/proc/sys/kernel", "/sys"} {
		out, err := b.try("echo x > '" + dir + "/perdure-written'; echo $?")
		private := dir == b.dir // where the folder was created for the place
		if err != nil || !private && (strings.HasSuffix(out, "\n0\n") || out == "0\n") {
			t.Errorf("%s can be written: %s %v", dir, out, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "perdure-written")); err == nil {
			t.Errorf("a file was written in %s", dir)
		}
	}
	out, err := b.try("for d in . .. /tmp /var/tmp /dev/shm; do echo x > $d/perdure-written && " +
		"cat $d/perdure-written; done")
	if err != nil || strings.Count(out, "x") != 5 {
		t.Errorf("the place cannot be written: %s %v", out, err)
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if _, err := os.Lstat(filepath.Join(dir, "perdure-written")); err == nil {
			t.Errorf("%s is not private", dir)
		}
	}
	if _, err := os.Lstat(filepath.Join(b.place, "work", "perdure-written")); err != nil {
		t.Error(err)
	}
}

// TestNetwork: the loopback interface is the sandbox's own, and sockets in hidden folders
// cannot be reached. Those in folders that can be read can.
func TestNetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, network := range []string{"tcp", "unix"} {
		addr := map[string]string{"tcp": "127.0.0.1:0", "unix": "@perdure-" + filepath.Base(b.dir) +
			strconv.Itoa(os.Getpid())}[network]
		l, err := (&net.ListenConfig{}).Listen(t.Context(), network, addr)
		b.ok(err)
		defer l.Close()
		if got := b.act("dial", network, l.Addr().String()); strings.Contains(got, "connected") {
			t.Errorf("a listener of the machine is reachable: %s", got)
		}
		if network == "unix" {
			continue
		}
		b.cfg.Network = true
		if got := b.act("dial", network, l.Addr().String()); !strings.Contains(got, "connected") {
			t.Errorf("the network is not kept: %s", got)
		}
		b.cfg.Network = false
	}
	if got := b.act("loopback"); !strings.Contains(got, "connected") {
		t.Errorf("the own loopback interface does not work: %s", got)
	}
	socket := filepath.Join(b.dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	b.ok(err)
	defer l.Close()
	b.cfg.Readable = append(b.cfg.Readable, b.dir)
	if got := b.act("dial", "unix", socket); !strings.Contains(got, "connected") {
		t.Errorf("the socket is not reachable where its folder is readable: %s", got)
	}
	b.cfg.Readable = b.cfg.Readable[:1]
	if got := b.act("dial", "unix", socket); strings.Contains(got, "connected") {
		t.Errorf("a socket in a hidden folder is reachable: %s", got)
	}
}

// TestInheritedDescriptors: a program does not have the files that the program around it
// inherited, as from a shell with a lock.
func TestInheritedDescriptors(t *testing.T) { //nolint:paralleltest // children of other tests would inherit it
	b := newBench(t)
	secret := filepath.Join(b.dir, "secret")
	b.ok(os.WriteFile(secret, []byte("secret"), 0o600))
	f, err := os.OpenFile(secret, os.O_RDWR, 0) //nolint:gosec // of the test
	b.ok(err)
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 20) // without FD_CLOEXEC
	b.ok(err)
	defer func() { b.ok(unix.Close(fd)) }()
	for _, confine := range []*sandbox.Confine{nil, {Programs: []string{"/usr", "/bin", "/lib", "/lib64"}}} {
		b.cfg.Confine = confine
		if out, err := b.try(fmt.Sprintf("test -e /proc/self/fd/%d && echo open || echo closed", fd)); err != nil ||
			out != "closed\n" {
			t.Errorf("confine %v: %s %v", confine, out, err)
		}
	}
}

// TestUndo: a program cannot make its file system writable again, not even in namespaces of
// its own, nor reach files and memory of programs outside.
func TestUndo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.Readable = append(b.cfg.Readable, b.dir) // so that it exists inside
	if got := b.act("remount", b.dir); got != "all refused\n" {
		t.Errorf("remount: %s", got)
	}
	if got := b.act("nested", b.dir); strings.Contains(got, "succeeded") {
		t.Errorf("remount in nested namespaces: %s", got)
	}
	p, err := guard.Start(t.Context(), guard.Config{Path: "sleep", Args: []string{"60"}, Grace: -1})
	b.ok(err)
	defer func() { p.Kill(); _ = p.Wait() }()
	if got := b.act("trace", strconv.Itoa(p.Pid())); !strings.Contains(got, "not permitted") {
		t.Errorf("a program outside can be traced: %s", got)
	}
	out, err := b.try(fmt.Sprintf("echo x > /proc/%d/root%s/through", p.Pid(), b.dir))
	if _, there := os.Lstat(filepath.Join(b.dir, "through")); err == nil || there == nil {
		t.Errorf("the root of a program outside can be used: %s", out)
	}
	if os.Getuid() == 0 {
		if out, err := b.try("mknod d b 7 0 || head -c1 /dev/mem || chown 1 ."); err == nil {
			t.Errorf("root has capabilities: %s", out)
		}
	}
}

// TestGuardPromises: what a program in a sandbox starts ends with it, and its exit status
// is reported; the guard cannot be traced.
func TestGuardPromises(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out, err := b.try("setsid sleep 300 >/dev/null 2>&1 & echo $!; (sleep 300 >/dev/null 2>&1 & echo $!); exit 7")
	ended, ok := errors.AsType[*guard.ExitError](err)
	if !ok || ended.Code != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	for pid := range strings.FieldsSeq(out) {
		if n, err := strconv.Atoi(pid); err != nil || syscall.Kill(n, 0) == nil {
			t.Errorf("process %s still runs", pid)
		}
	}
	if out, err = b.try("readlink /proc/$PPID/exe; kill -9 $PPID; sleep 300"); !errors.Is(err, guard.ErrGuardLost) ||
		strings.Contains(out, "/") {
		t.Errorf("kill of the guard: %v, %s", err, out)
	}
	err = guard.Run(t.Context(), guard.Config{Path: "./no-program", Dir: b.place, Sandbox: &b.cfg})
	if err == nil || !guard.Missing(err) {
		t.Errorf("a missing program: %v", err)
	}
	b.ok(os.WriteFile(filepath.Join(b.place, "text"), []byte{0}, 0o700)) //nolint:gosec // executable, but no program
	if err = guard.Run(t.Context(), guard.Config{Path: "./text", Dir: b.place, Sandbox: &b.cfg}); !guard.Missing(err) {
		t.Errorf("a file that is no program: %v", err)
	}
}

// TestOtherUser: an ordinary user has the same sandbox, and keeps the number.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	b := newBench(t)
	const unprivileged = 65534
	dir, err := os.MkdirTemp("/var/tmp", "perdure-sandbox-")
	b.ok(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe := filepath.Join(dir, "exe")
	self, err := os.Executable()
	b.ok(err)
	place := filepath.Join(dir, "place")
	b.ok(errors.Join(os.Mkdir(place, 0o700), os.Chown(place, unprivileged, unprivileged),
		exec.CommandContext(t.Context(), "cp", self, exe).Run(),
		os.Chmod(dir, 0o777), os.Chmod(exe, 0o755))) //nolint:gosec // for another user
	cmd := exec.CommandContext(t.Context(), exe, dir)
	cmd.Env = []string{roleVar + "=inside", "PATH=/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	b.ok(err)
	text := string(out)
	if !strings.HasPrefix(text, "65534\na\n") || !strings.Contains(text, "CapBnd:\t0000000000000000") ||
		!strings.Contains(text, "CapEff:\t0000000000000000") || !strings.Contains(text, "NoNewPrivs:\t1") {
		t.Errorf("got %s", text)
	}
	if _, err := os.Lstat(filepath.Join(dir, "out")); err == nil {
		t.Error("a file was written next to the place")
	}
}

// TestNotRefused: a missing folder is not a refusal of the system, so that an agent cannot turn the
// sandbox off by removing one.
func TestNotRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	missing := filepath.Join(b.dir, "missing")
	b.cfg.Writable = append(b.cfg.Writable, missing)
	_, err := b.try("true")
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Refused || !strings.Contains(e.Error(), missing) {
		t.Errorf("a missing folder to write: %v", err)
	}
	b.cfg.Writable = b.cfg.Writable[:1]
	err = guard.Run(t.Context(), guard.Config{Path: "/bin/true", Dir: missing, Sandbox: &b.cfg})
	if _, ok := errors.AsType[*sandbox.Error](err); ok || err == nil {
		t.Errorf("a missing folder to work in: %v", err)
	}
}

// TestUmask: a program has the umask of the user.
func TestUmask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	exe, err := os.Executable()
	b.ok(err)
	cmd := exec.CommandContext(t.Context(), exe, b.place)
	cmd.Env = append(os.Environ(), roleVar+"=umask")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "0027\n<nil>\n" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestOpen: an open sandbox hides and replaces files, also for root, and changes nothing else.
func TestOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := func(name string) string { return filepath.Join(b.dir, name) }
	for name, text := range map[string]string{"secret/deep/x": "hidden", "secret/kept/y": "kept", "one": "hidden",
		"old/z": "hidden", "new/z": "new", "rest": "rest"} {
		b.ok(errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), []byte(text), 0o600)))
	}
	b.cfg = sandbox.Config{Open: true, Network: true, Hidden: []string{at("secret"), at("one"), at("none")},
		Readable: []string{at("secret/kept")}, Replaced: []sandbox.Replacement{{Path: at("old"), By: at("new")}}}
	out, err := b.try("cd ../..; cat secret/deep/x one; cat secret/kept/y old/z rest; echo more > rest2; " +
		"echo in > old/w; echo no > secret/n; umount secret; mount --bind / old; " +
		"find . -type f -exec cat {} + | grep -c hidden")
	if !strings.Contains(out, "keptnewrest") || strings.Contains(out, "hidden") || !strings.HasSuffix(out, "\n0\n") ||
		!strings.Contains(out, "Read-only file system") {
		t.Errorf("%s, %v", out, err)
	}
	for name, want := range map[string]string{"rest2": "more\n", "new/w": "in\n", "secret/deep/x": "hidden",
		"one": "hidden"} {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// A process of the program can neither enter the mounts of others nor read their files.
	out, _ = b.try(fmt.Sprintf("cat /proc/%d/root%s; nsenter -t %[1]d -m true; unshare -Urm cat %[2]s",
		os.Getpid(), at("secret/deep/x")))
	if strings.Contains(out, "hidden") {
		t.Errorf("it is reached: %s", out)
	}
}

// TestDoor: the only address that a program without network reaches is the door, which another process
// serves.
func TestDoor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outside, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	b.ok(err)
	defer outside.Close()
	socket := filepath.Join(b.dir, "s")
	local, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	b.ok(err)
	defer local.Close()
	go func() {
		conn, err := local.AcceptUnix()
		if err != nil {
			return
		}
		defer conn.Close()
		door, err := sandbox.ReceiveListener(conn)
		if err != nil {
			return
		}
		defer door.Close()
		one, err := door.Accept()
		if err == nil {
			_ = one.Close()
		}
	}()
	const address = "127.0.0.1:4321"
	for _, c := range []struct {
		address string
		door    *sandbox.Door
		want    string
	}{{outside.Addr().String(), nil, "refused"}, {address, &sandbox.Door{Address: address, Socket: socket}, "connected"}} {
		b.cfg = sandbox.Config{Open: true, Door: c.door}
		if out := b.act("dial", "tcp", c.address); !strings.Contains(out, c.want) {
			t.Errorf("%s: %s", c.address, out)
		}
	}
}
