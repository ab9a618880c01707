package blob_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPowerLoss records the system calls of a writing process and rebuilds, at each
// acknowledgement, the worst disk that a power loss could leave: a file has only the
// content flushed before, a folder only the names it had at its last flush. Each
// acknowledged blob has to be on that disk. (A kill -9 proves less: the kernel continues
// to write.)
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	base := t.TempDir()
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-s", "100", "-o", trace,
		"-e", "trace=openat,mkdirat,mkdir,write,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat", os.Args[0])
	if out, err := runChild(cmd, "put", filepath.Join(base, "new", "blobs")); err != nil {
		if strings.Contains(err.Error(), "PTRACE") || strings.Contains(err.Error(), "ptrace") {
			t.Skipf("strace may not trace here: %v", err)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{base: base, live: map[string]*node{}, durable: map[string]*node{}}
	for _, line := range strings.Split(string(text), "\n") {
		d.line(t, line)
	}
	if d.acknowledged != childPuts {
		t.Errorf("%d acknowledgements seen in the trace, want %d", d.acknowledged, childPuts)
	}
}

// node is a file or folder of the rebuilt disk.
type node struct {
	dir             bool
	written, synced int64
}

// disk is the file system below base as programs see it (live) and as it is
// after a power loss (durable).
type disk struct {
	base          string
	live, durable map[string]*node
	unfinished    map[string]string // by process: the call that has not returned yet
	acknowledged  int
}

var (
	callLine  = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (-?\d+)`)
	halfLine  = regexp.MustCompile(`^(\d+) +(\w+\(.*) <unfinished \.\.\.>$`)
	restLine  = regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>(.*)$`)
	ackText   = regexp.MustCompile(`ACK ([0-9a-f]{64}) (\d+)`)
	fdPath    = regexp.MustCompile(`^\d+<([^>]*)>`)
	quotation = regexp.MustCompile(`"([^"]*)"`)
)

// line takes one line of the trace. Calls count when they return; an
// acknowledgement counts when it starts.
func (d *disk) line(t *testing.T, line string) {
	if m := halfLine.FindStringSubmatch(line); m != nil {
		if d.unfinished == nil {
			d.unfinished = map[string]string{}
		}
		d.unfinished[m[1]] = m[2]
		d.acknowledge(t, m[2])
		return
	}
	resumed := false
	if m := restLine.FindStringSubmatch(line); m != nil {
		line, resumed = m[1]+" "+d.unfinished[m[1]]+m[2], true
	}
	m := callLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	if !resumed {
		d.acknowledge(t, m[2]+"("+m[3])
	}
	if ret, err := strconv.ParseInt(m[4], 10, 64); err == nil && ret >= 0 {
		d.call(m[2], m[3], ret)
	}
}

func (d *disk) call(name, args string, ret int64) {
	var paths []string
	for _, q := range quotation.FindAllStringSubmatch(args, -1) {
		paths = append(paths, q[1])
	}
	switch name {
	case "openat":
		if strings.Contains(args, "O_CREAT") && d.live[paths[0]] == nil {
			d.live[paths[0]] = &node{}
		}
	case "mkdir", "mkdirat":
		d.live[paths[0]] = &node{dir: true}
	case "rename", "renameat", "renameat2":
		d.live[paths[1]] = d.live[paths[0]]
		delete(d.live, paths[0])
	case "unlink", "unlinkat":
		delete(d.live, paths[0])
	case "write":
		if n := d.file(args); n != nil {
			n.written += ret
		}
	case "fsync", "fdatasync":
		d.flush(args)
	}
}

// file is the file whose descriptor is the first argument.
func (d *disk) file(args string) *node {
	if m := fdPath.FindStringSubmatch(args); m != nil {
		return d.live[m[1]]
	}
	return nil
}

func (d *disk) flush(args string) {
	if n := d.file(args); n != nil && !n.dir {
		n.synced = n.written
		return
	}
	m := fdPath.FindStringSubmatch(args)
	if m == nil {
		return
	}
	for path := range d.durable {
		if filepath.Dir(path) == m[1] && d.live[path] == nil {
			delete(d.durable, path)
		}
	}
	for path, n := range d.live {
		if filepath.Dir(path) == m[1] {
			d.durable[path] = n
		}
	}
}

// acknowledge checks the disk when the process reported a durable blob.
func (d *disk) acknowledge(t *testing.T, call string) {
	m := ackText.FindStringSubmatch(call)
	if m == nil {
		return
	}
	d.acknowledged++
	path := filepath.Join(d.base, "new", "blobs", m[1][:2], m[1][2:])
	n := d.durable[path]
	if n == nil {
		t.Errorf("acknowledgement %d: the name of the blob is not on the disk", d.acknowledged)
		return
	}
	if fmt.Sprint(n.synced) != m[2] {
		t.Errorf("acknowledgement %d: %d bytes are on the disk, want %s", d.acknowledged, n.synced, m[2])
	}
	for dir := filepath.Dir(path); dir != d.base; dir = filepath.Dir(dir) {
		if d.durable[dir] == nil {
			t.Errorf("acknowledgement %d: the folder %s is not on the disk", d.acknowledged, dir)
		}
	}
}
