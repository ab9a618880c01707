package python_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// libc calls a function of the C library and raises an OSError if it fails.
const libc = `import ctypes, os
def call(name, *args):
    f = getattr(ctypes.CDLL(None, use_errno=True), name)
    if f(*args) == -1:
        raise OSError(ctypes.get_errno(), name)
`

// attempt is something that code of a model must not be able to do: it ends with an exception.
type attempt struct{ name, code string }

// target is what the attempts are after.
type target struct {
	secret  string // a file of the user
	port    int    // of a server on the machine
	socket  string // of another one
	process int    // a process of the user
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
		{"connect to it over IPv6", fmt.Sprintf("import socket\nsocket.create_connection(('::1', %d), 5)", x.port)},
		{"connect to another machine", "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)"},
		{"send a datagram", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', " +
			"('192.0.2.1', 53))"},
		{"look up a name", "import socket\nsocket.getaddrinfo('example.org', 80)"},
		{"connect to a socket of the file system", fmt.Sprintf("import socket\n"+
			"socket.socket(socket.AF_UNIX).connect(%q)", x.socket)},
		{"connect to an abstract socket", fmt.Sprintf("import socket\n"+
			"socket.socket(socket.AF_UNIX).connect('\\0' + %q)", x.socket)},
		{"open a raw socket", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"},
		{"sniff packets", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)"},
		{"fetch a page", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1/', timeout=5)"},
	}
}

func (x *target) processes() []attempt {
	return []attempt{
		{"signal a process of the user", fmt.Sprintf("import os\nos.kill(%d, 15)", x.process)},
		{"signal its parent", "import os\nassert os.getppid() == 0\nos.kill(1 << 22, 9)"},
		{"see processes of the user", fmt.Sprintf("open('/proc/%d/cmdline')", x.process)},
		{"see the environment of the host", "import os\nopen(f'/proc/{os.getppid()}/environ').read()"},
		{"trace a process", libc + fmt.Sprintf("call('ptrace', 16, %d, 0, 0)", x.process)},
		{"read the memory of a process", libc + fmt.Sprintf("call('process_vm_readv', %d, 0, 0, 0, 0, 0)\n"+
			"raise OSError", x.process)},
		{"become another user", "import os\nos.setuid(12345)"},
		{"raise its memory limit", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))"},
		{"raise its limit of processes", "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))"},
		{"take a higher priority", "import os\nos.nice(-10)"},
		{"make many processes", "import os, time\nfor i in range(1000):\n    if os.fork() == 0:\n        " +
			"time.sleep = None\n        os.read(os.pipe()[0], 1)"},
		{"make many threads", "import threading\ngate = threading.Event()\nfor i in range(1000): " +
			"threading.Thread(target=gate.wait, daemon=True).start()"},
		{"mount", libc + "call('mount', b'none', b'/tmp', b'tmpfs', 0, b'')"},
		{"mount the file system writable", libc + "call('mount', b'', b'/', b'', 0x1020, b'')"},
		{"unmount", libc + "call('umount2', b'/etc', 2)"},
		{"enter the namespaces of process 1", libc + "call('setns', os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)"},
		{"set the clock", "import time\ntime.clock_settime(time.CLOCK_REALTIME, 1)"},
		{"set the name of the machine", libc + "call('sethostname', b'x', 1)"},
		{"load a kernel module", libc + "call('syscall', 175, 0, 0, 0)"},
		{"restart the machine", libc + "call('reboot', 0x1234567)"},
		{"use up the memory", "a = []\nwhile True: a.append(bytearray(1 << 20))"},
		{"run for ever", "while True: pass"},
		{"fill the disk with a file", "open('f', 'wb').write(bytes(300 << 20))"},
		{"recurse for ever", "def f(): f()\nf()"},
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
	sleeper := exec.CommandContext(t.Context(), "sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	x.process = sleeper.Process.Pid
	return x
}

// TestAttemptsOfCode tries to leave the sandbox. Each attempt ends with an exception of the
// code, or of the engine where the process was killed, and a session goes on.
func TestAttemptsOfCode(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/var/tmp", "perdure-attempts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	x := reachable(t, dir)
	for _, a := range append(append(x.files(), x.network()...), x.processes()...) {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := start(t, python.Config{Limits: engine.Limits{CPU: 1e9, MemoryBytes: 512 << 20}})
			d, err := b.try(a.code)
			if e, ok := errors.AsType[*engine.Error](err); ok && e.Kind != engine.KindProtocol {
				return // the process was killed; the run ends with a message
			}
			if err != nil {
				t.Fatal(err)
			}
			if d.Failure == nil || d.Failure.Type == "AssertionError" || strings.Contains(d.Output, "secret") {
				t.Errorf("it succeeded: %q, %+v", d.Output, d.Failure)
			}
			b.prints("print('on')", "on\n")
		})
	}
	if text, err := os.ReadFile(x.secret); string(text) != "the secret" {
		t.Errorf("the file of the user holds %q, %v", text, err)
	}
}

// What ordinary code needs works in the sandbox.
func TestOrdinaryCode(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	b.prints(`import re, json, csv, io, math, collections, datetime, itertools
import decimal, statistics, random, hashlib, textwrap
import functools, operator, string, difflib, heapq, bisect, dataclasses, enum, typing, fractions, unicodedata, asyncio
import concurrent.futures, tempfile, pathlib, sqlite3, zlib
with tempfile.NamedTemporaryFile('w+', dir='.') as f:
    f.write('a,b\n'); f.seek(0)
    print(next(csv.reader(f)))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(len, ['a', 'bb'])))
print(pathlib.Path('x').write_text('y'), decimal.Decimal('0.1') * 3, statistics.median([1, 2, 9]))
`, "['a', 'b']\n3\n1 0.3 2\n")
}
