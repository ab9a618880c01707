package python_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/enginetest"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// libc calls a function of the C library and raises an OSError if it fails.
const libc = `import ctypes, os
def call(name, *args):
    f = getattr(ctypes.CDLL(None, use_errno=True), name)
    if f(*args) == -1:
        raise OSError(ctypes.get_errno(), name)
`

// Attempts that only namespaces stop with an error.
const (
	signalAll = "signal all processes of the user"
	forkMany  = "make many processes"
)

// attempt is something that code of a model must not be able to do: it ends with an exception.
type attempt struct{ name, code string }

// target is what the attempts are after.
type target struct {
	secret string // a file of the user
	port   int    // of a server on the machine
	socket string // of another one
	// abstract is the name of an abstract socket.
	abstract string
	process  int // a process of the user
}

func (x *target) files() []attempt {
	return []attempt{
		{"read a file of the user", fmt.Sprintf("open(%q).read()", x.secret)},
		{"read it through /proc", fmt.Sprintf("open('/proc/self/root' + %q).read()", x.secret)},
		{"read it through the root of its parent", fmt.Sprintf("import os\n"+
			"open(f'/proc/{os.getppid()}/root' + %q).read()", x.secret)},
		{"read it through the root of process 1", fmt.Sprintf("open('/proc/1/root' + %q).read()", x.secret)},
		{"read it through a symbolic link", fmt.Sprintf("import os\nos.symlink(%q, 'l')\n"+
			"open('l').read()", x.secret)},
		{"read it through ..", fmt.Sprintf("open('../' * 20 + %q).read()", strings.TrimPrefix(x.secret, "/"))},
		{"read it with a program", fmt.Sprintf("import subprocess\nsubprocess.run(['/bin/cat', %q], "+
			"check=True)", x.secret)},
		{"make a hard link to it", fmt.Sprintf("import os\nos.link(%q, 'h')", x.secret)},
		{"write it", fmt.Sprintf("open(%q, 'w')", x.secret)},
		{"remove it", fmt.Sprintf("import os\nos.remove(%q)", x.secret)},
		{"read the passwords", "open('/etc/shadow').read()"},
		{"read the settings of the machine", "open('/etc/hosts').read()"},
		{"write below /etc", "open('/etc/perdure', 'w')"},
		{"write next to the programs", "open('/usr/bin/perdure', 'w')"},
		{"write into the interpreter", "import json\nopen(json.__file__, 'a')"},
		{"write into /proc/sys", "open('/proc/sys/kernel/core_pattern', 'w').write('|/x')"},
		{"leave by chroot", "import os\nos.chroot('.')"},
		{"make a device", "import os\nos.mknod('d', 0o60600, os.makedev(7, 0))"},
		{"read the memory of the machine", "open('/dev/mem').read(1)"},
		{"read the kernel's log", "open('/dev/kmsg').read(1)"},
		{"list the folder", fmt.Sprintf("import os\nos.listdir(%q)", filepath.Dir(x.secret))},
	}
}

func (x *target) network() []attempt {
	return []attempt{
		{"connect to a server of the machine", fmt.Sprintf("import socket\n"+
			"socket.create_connection(('127.0.0.1', %d), 5)", x.port)},
		{"connect to a socket of the file system", fmt.Sprintf("import socket\n"+
			"socket.socket(socket.AF_UNIX).connect(%q)", x.socket)},
		{"connect to an abstract socket",
			fmt.Sprintf("import socket\nsocket.socket(socket.AF_UNIX).connect('\\0' + %q)", x.abstract)},
		{"send to a socket of the file system", fmt.Sprintf("import socket\n"+
			"a, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', %q)", x.socket)},
		{"connect to the host of a virtual machine", "import socket\nsocket.socket(40, socket.SOCK_STREAM)"},
		{"ask the kernel through netlink", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"},
		{"open a raw socket", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"},
		{"sniff packets", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)"},
	}
}

func (x *target) processes() []attempt {
	return []attempt{
		{"signal a process of the user", fmt.Sprintf("import os\nos.kill(%d, 15)", x.process)},
		{signalAll, "import os\nos.kill(-1, 0)"},
		{"see processes of the user", fmt.Sprintf("open('/proc/%d/cmdline')", x.process)},
		{"see the environment of the host", "import os\nopen(f'/proc/{os.getppid()}/environ').read()"},
		{"trace a process", libc + fmt.Sprintf("call('ptrace', 16, %d, 0, 0)", x.process)},
		{"read the memory of a process",
			libc + fmt.Sprintf("import errno\nbuf = ctypes.create_string_buffer(8)\n"+
				"class vec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]\n"+
				"one = vec(ctypes.addressof(buf), 8)\ntry:\n"+
				"    call('process_vm_readv', %d, ctypes.byref(one), 1, ctypes.byref(one), 1, 0)\n"+
				"except OSError as e:\n    if e.errno in (errno.ESRCH, errno.EPERM): raise", x.process)},
		{"become another user", "import os\nos.setuid(12345)"},
		{"raise its memory limit", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))"},
		{"raise its limit of processes", "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))"},
		{"take a higher priority", "import os\nos.nice(-10)"},
		{"mount", libc + "call('mount', b'none', b'/tmp', b'tmpfs', 0, b'')"},
		{"mount the file system writable", libc + "call('mount', b'', b'/', b'', 0x1020, b'')"},
		{"unmount", libc + "call('umount2', b'/etc', 2)"},
		{"enter the namespaces of process 1", libc + "call('setns', os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)"},
		{"set the clock", "import time\ntime.clock_settime(time.CLOCK_REALTIME, 1)"},
		{"set the name of the machine", libc + "call('sethostname', b'x', 1)"},
		{"make namespaces", libc + "call('unshare', 0x10000000)"},
		{"change the limits of a process of the user", libc + fmt.Sprintf("call('prlimit', %d, 0, 0, 0)", x.process)},
		{"keep memory in files without a name", "import os\nos.memfd_create('x')"},
		{"load a kernel module",
			libc + "call('init_module', b'x', 1, b'')"},
	}
}

// floods are attempts to use up what a machine has, each in a session of its own.
func floods() []attempt {
	all := []attempt{
		{forkMany, "import os, time\nfor i in range(1000):\n    if os.fork() == 0:\n        " +
			"time.sleep = None\n        os.read(os.pipe()[0], 1)"},
		{"make many threads", "import threading\ngate = threading.Event()\nfor i in range(1000): " +
			"threading.Thread(target=gate.wait, daemon=True).start()"},
		{"fill the memory with files", "for i in range(256): open(f'/dev/shm/{i}', 'wb').write(bytes(1 << 20))"},
	}
	if os.Getenv(bareVar) != "" {
		return all
	}
	return append(all, []attempt{ // the limits of the process stop these, in any sandbox
		{"use up the memory", "a = []\nwhile True: a.append(bytearray(1 << 20))"},
		{"run for ever", "while True: pass"},
		{"run for ever without the limit of its process", "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\n" +
			"while True: pass"},
		{"fill the disk with a file", "open('f', 'wb').write(bytes(300 << 20))"},
		{"recurse for ever", "def f(): f()\nf()"},
	}...)
}

// kernel are attempts that a filter of system calls stops, with the numbers of x86-64.
func kernel() []attempt {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	return []attempt{
		{"make namespaces for a child", libc + "call('syscall', 56, 0x10000000 | 17, 0, 0, 0, 0)"},
		{"load a program into the kernel", libc + "call('syscall', 321, 0, 0, 0)"},
		{"use io_uring", libc + "call('syscall', 425, 1, 0)"},
		{"use the keys of the user", libc + "call('syscall', 250, 0, -4, 1)"},
		{"count events of the processor", libc + "call('syscall', 298, 0, 0, -1, -1, 0)"},
		{"handle page faults itself", libc + "call('syscall', 323, 0)"},
	}
}

// reachable are the things on the machine that the attempts are after: each is there for
// ordinary programs.
func reachable(t *testing.T, dir string) *target {
	t.Helper()
	x := &target{secret: filepath.Join(dir, "secret"), socket: filepath.Join(dir, "socket")}
	if err := os.WriteFile(x.secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	x.port = server.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	unix, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", x.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close() })
	x.abstract = filepath.Base(dir)
	abstract, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "@"+x.abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = abstract.Close() })
	sleeper := exec.CommandContext(t.Context(), "sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	x.process = sleeper.Process.Pid
	return x
}

// TestAttemptsOfCode tries to leave the sandbox. Each attempt ends with an exception of the
// code, or of the engine where the process was killed, and the session goes on. Attempts that need
// nothing but a process share a session.
func TestAttemptsOfCode(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/var/tmp", "perdure-attempts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	x := reachable(t, dir)
	t.Cleanup(func() {
		if text, err := os.ReadFile(x.secret); string(text) != "the secret" {
			t.Errorf("the file of the user holds %q, %v", text, err)
		}
	})
	for name, attempts := range map[string][]attempt{"files": x.files(), "network": x.network(),
		"processes": x.processes(), "kernel": kernel()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := confined(t)
			for _, a := range attempts {
				if a.skip() {
					continue
				}
				t.Run(a.name, func(t *testing.T) {
					if !a.fails(t, b) {
						b = nil
					}
				})
				if b == nil {
					b = confined(t)
				}
			}
		})
	}
	for _, a := range floods() {
		if a.skip() {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.fails(t, confined(t))
		})
	}
}

// skip reports whether only a PID namespace stops the attempt, and there is none: then no signal
// arrives, but none is reported, and root has no limit of processes.
func (a attempt) skip() bool {
	return os.Getenv(bareVar) != "" && (a.name == signalAll || a.name == forkMany && os.Getuid() == 0)
}

func confined(t *testing.T) *enginetest.Bench {
	t.Helper()
	return start(t, python.Config{Limits: engine.Limits{CPU: 1e9, MemoryBytes: 512 << 20}})
}

// fails makes the attempt in a session of a test above, and reports whether the session goes on.
func (a attempt) fails(t *testing.T, session *enginetest.Bench) bool {
	t.Helper()
	b := *session
	b.TB = t
	d, err := b.Try(a.code)
	if e, ok := errors.AsType[*engine.Error](err); ok && (e.Kind == engine.KindKilled || e.Kind == engine.KindCPU) {
		return false // the process was ended; the run ends with a message
	}
	if err != nil {
		t.Fatal(err)
	}
	if d.Failure == nil || d.Failure.Type == "AssertionError" || strings.Contains(d.Output, "secret") {
		t.Errorf("it succeeded: %q, %+v", d.Output, d.Failure)
	}
	b.Prints("print('on')", "on\n")
	return true
}

// What ordinary code needs works in the sandbox.
func TestOrdinaryCode(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	b.Prints(`import re, json, csv, io, math, collections, datetime, itertools
import decimal, statistics, random, hashlib, textwrap
import functools, operator, string, difflib, heapq, bisect, dataclasses, enum, typing, fractions, unicodedata, asyncio
import concurrent.futures, tempfile, pathlib, sqlite3, zlib
with tempfile.NamedTemporaryFile('w+', dir='.') as f:
    f.write('a,b\n'); f.seek(0)
    print(next(csv.reader(f)))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(len, ['a', 'bb'])))
import multiprocessing, subprocess
async def f(): return await asyncio.sleep(0, 'awaited')
print(asyncio.new_event_loop().run_until_complete(f()))
print(subprocess.run(['/bin/sh', '-c', 'echo from a program | /bin/cat'], capture_output=True, text=True).stdout, end='')
here, there = multiprocessing.Pipe()
p = multiprocessing.get_context('fork').Process(target=there.send, args=('from a process',))
p.start(); print(here.recv()); p.join()
print(pathlib.Path('x').write_text('y'), decimal.Decimal('0.1') * 3, statistics.median([1, 2, 9]))
`, "['a', 'b']\n3\nawaited\nfrom a program\nfrom a process\n1 0.3 2\n")
}
