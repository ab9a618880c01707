package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testdb"
)

// A kill -9 leaves what the kernel has; a power loss leaves what was flushed.
// These tests record what a process asks of the kernel while it acknowledges
// durable operations, rebuild the disk at each acknowledgement from what had
// been flushed by then, open the store on it and look for what was acknowledged.

// roleEnv makes the test binary play a part in a test instead of running tests.
const roleEnv = "PERDURE_E2E_ROLE"

// playRole does what a child process of a test is for.
func playRole(role string) error {
	name, dir, _ := strings.Cut(role, " ")
	if name != "acknowledge" {
		return fmt.Errorf("no role %q", name)
	}
	return acknowledgeOperations(context.Background(), dir)
}

const trees, leavesEach = 3, 4

// acknowledgeOperations changes a store in every way a run does and says after
// each change which event is durable by now.
func acknowledgeOperations(ctx context.Context, dir string) error {
	s, err := perdure.Open(ctx, perdure.Config{Dir: dir})
	if err != nil {
		return err
	}
	var last int64
	ack := func(err error) error {
		if err != nil {
			return err
		}
		events, err := s.Events(ctx, perdure.EventFilter{After: last})
		if len(events) > 0 {
			last = events[len(events)-1].Seq
		}
		fmt.Printf("ACK %d\n", last)
		return err
	}
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		return err
	}
	for range trees {
		tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "test", Root: perdure.TaskSpec{Prompt: "root"}})
		if err := ack(err); err != nil {
			return err
		}
		if err := runAcknowledged(ctx, s, ss, tree, ack); err != nil {
			return err
		}
	}
	return errors.Join(ack(ss.Close(ctx)), s.Close())
}

func runAcknowledged(ctx context.Context, s *perdure.Store, ss *perdure.Session, tree perdure.Tree, ack func(error) error) error {
	specs := make([]perdure.TaskSpec, leavesEach)
	for i := range specs {
		specs[i].Prompt = strings.Repeat("leaf ", 1+i*5000) // in the row, in the payload table
	}
	for {
		leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 2, Trees: []perdure.TreeID{tree.ID}})
		if err := ack(err); err != nil || len(leases) == 0 {
			return err
		}
		for _, l := range leases {
			if l.Task.Depth == 0 && l.Fence() == 1 {
				_, err := l.Spawn(ctx, specs)
				if err := ack(err); err != nil {
					return err
				}
				continue
			}
			if err := settleAcknowledged(ctx, l, ack); err != nil {
				return err
			}
		}
	}
}

func settleAcknowledged(ctx context.Context, l *perdure.Lease, ack func(error) error) error {
	call, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h", ReserveTokens: 5})
	if err := ack(err); err != nil {
		return err
	}
	if err := ack(l.SettleCall(ctx, call.ID, perdure.CallResult{Response: "r", InputTokens: 2})); err != nil {
		return err
	}
	// A result beyond the payload table's limit goes to a blob file first.
	text := strings.Repeat("x", 1+int(l.Task.ID%3)*(perdure.MaxPayloadBytes/2+1))
	return ack(l.Complete(ctx, perdure.Result{Text: text}))
}

func TestPowerLoss(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	trace := recordTrace(t, base)
	d := &disk{base: base, files: map[string]*diskFile{}, began: map[string]string{}, rng: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a test's order
	d.replay(t, trace)
	if d.acks < trees*leavesEach*3 {
		t.Fatalf("%d acknowledgements seen, the trace is not whole", d.acks)
	}
	if d.lost > 0 {
		t.Errorf("%d of %d acknowledgements were not true after a power loss: %s", d.lost, d.acks, d.first)
	}
	t.Logf("%d acknowledgements, %d flushes, %d disks rebuilt", d.acks, d.flushes, d.rebuilt)

	// The test must see a loss: a disk that ignores flushes loses what it says.
	lazy := &disk{base: base, files: map[string]*diskFile{}, began: map[string]string{}, rng: d.rng, lazy: true}
	lazy.replay(t, trace)
	if lazy.lost == 0 {
		t.Error("a disk that ignores flushes lost nothing; the test proves nothing")
	}
}

func recordTrace(t *testing.T, base string) []string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		testdb.Missing(t, "strace", "strace is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-xx", "-s", "9000000", "-o", trace,
		"-e", "trace=openat,pwrite64,write,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat", self)
	cmd.Env = append(os.Environ(), roleEnv+"=acknowledge "+filepath.Join(base, "store"))
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			testdb.Missing(t, "strace", "strace may not trace here: "+string(out))
		}
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n")
}

// change is a write, or a cut when data is nil, that may not be on the disk yet.
type change struct {
	off  int64
	data []byte
}

// diskFile is a file as it was last flushed, and what came since.
type diskFile struct {
	flushed  bool // it is on the disk at all
	durable  []byte
	unsynced []change
}

// disk is the file system below base. As ext4 does, a file whose content was
// flushed has its name on the disk.
type disk struct {
	base  string
	files map[string]*diskFile
	began map[string]string // by thread: the call that has not returned yet
	rng   *rand.Rand
	lazy  bool // flushes do nothing

	acks, lost, flushes, rebuilt int
	first                        string
}

var (
	wholeCall = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (-?\d+)`)
	begunCall = regexp.MustCompile(`^(\d+) +(\w+\(.*) <unfinished \.\.\.>$`)
	endedCall = regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>(.*)$`)
	fdOf      = regexp.MustCompile(`^\d+<([^>]*)>`)
	hexText   = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
	lastInt   = regexp.MustCompile(`, (\d+)$`)
)

func (d *disk) replay(t *testing.T, trace []string) {
	t.Helper()
	for _, line := range trace {
		if m := begunCall.FindStringSubmatch(line); m != nil {
			d.began[m[1]] = m[2]
			continue
		}
		if m := endedCall.FindStringSubmatch(line); m != nil {
			line = m[1] + " " + d.began[m[1]] + m[2]
		}
		m := wholeCall.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(m[4], "-") {
			continue
		}
		d.call(t, m[2], m[3])
	}
}

func (d *disk) call(t *testing.T, name, args string) {
	t.Helper()
	switch name {
	case "write", "pwrite64":
		data := unhex(t, args)
		if seq, ok := strings.CutPrefix(string(data), "ACK "); ok {
			d.acknowledged(t, strings.TrimSpace(seq))
			return
		}
		if f := d.file(args, true); f != nil {
			f.unsynced = append(f.unsynced, change{off: d.offset(name, args, f), data: data})
		}
	case "ftruncate":
		if f := d.file(args, true); f != nil {
			f.unsynced = append(f.unsynced, change{off: number64(t, lastInt.FindStringSubmatch(args)[1])})
		}
	case "fsync", "fdatasync":
		if f := d.file(args, false); f != nil && !d.lazy {
			d.flushes++
			f.flushed = true
			for _, c := range f.unsynced {
				f.durable = c.apply(f.durable)
			}
			f.unsynced = nil
		}
	case "rename", "renameat", "renameat2":
		paths := hexText.FindAllString(args, -1)
		from, to := string(unhex(t, paths[0])), string(unhex(t, paths[1]))
		d.files[to] = d.files[from]
		delete(d.files, from)
	case "unlink", "unlinkat":
		delete(d.files, string(unhex(t, args)))
	}
}

// file is the file whose descriptor is the first argument, nil for folders and
// files that do not count.
func (d *disk) file(args string, create bool) *diskFile {
	m := fdOf.FindStringSubmatch(args)
	if m == nil {
		return nil
	}
	path := m[1]
	if strings.HasPrefix(path, `\x`) {
		path = decodeHex(path)
	}
	if !strings.HasPrefix(path, d.base) || strings.HasSuffix(path, "-shm") {
		return nil
	}
	f := d.files[path]
	if f == nil && create {
		f = &diskFile{}
		d.files[path] = f
	}
	return f
}

// offset is where a write goes; a plain write goes to the end.
func (d *disk) offset(name, args string, f *diskFile) int64 {
	if name == "pwrite64" {
		n, _ := strconv.ParseInt(lastInt.FindStringSubmatch(args)[1], 10, 64)
		return n
	}
	size := int64(len(f.durable))
	for _, c := range f.unsynced {
		size = max(size, c.off+int64(len(c.data)))
	}
	return size
}

func (c change) apply(b []byte) []byte {
	if c.data == nil {
		for int64(len(b)) < c.off {
			b = append(b, 0)
		}
		return b[:c.off]
	}
	if end := int(c.off) + len(c.data); len(b) < end {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[c.off:], c.data)
	return b
}

// acknowledged rebuilds the disk twice: with nothing that was not flushed, and
// with some of it, sectors torn off.
func (d *disk) acknowledged(t *testing.T, seq string) {
	t.Helper()
	d.acks++
	for _, some := range []bool{false, true} {
		if problem := d.look(t, number64(t, seq), some); problem != "" {
			if d.lost++; d.first == "" {
				d.first = fmt.Sprintf("event %s, unflushed writes kept: %v: %s", seq, some, problem)
			}
			return
		}
		if d.lazy {
			return
		}
	}
}

func (d *disk) look(t *testing.T, seq int64, some bool) string {
	t.Helper()
	root := t.TempDir()
	d.rebuilt++
	for path, f := range d.files {
		if !f.flushed && !some {
			continue
		}
		content := append([]byte(nil), f.durable...)
		if some {
			content = d.tear(content, f.unsynced)
		}
		to := filepath.Join(root, strings.TrimPrefix(path, d.base))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return lookAt(t, filepath.Join(root, "store"), seq)
}

// tear applies some of the writes, each whole or up to a sector.
func (d *disk) tear(b []byte, unsynced []change) []byte {
	const sector = 512
	for _, c := range unsynced {
		switch d.rng.IntN(3) {
		case 0:
		case 1:
			b = c.apply(b)
		case 2:
			if len(c.data) > sector {
				c.data = c.data[:sector*(1+d.rng.IntN(len(c.data)/sector))]
			}
			b = c.apply(b)
		}
	}
	return b
}

// lookAt opens the store and says what is not as it was acknowledged.
func lookAt(t *testing.T, dir string, seq int64) string {
	t.Helper()
	ctx := t.Context()
	s, err := perdure.Open(ctx, perdure.Config{Dir: dir})
	if err != nil {
		return err.Error()
	}
	defer s.Close() //nolint:errcheck // thrown away
	events, err := s.Events(ctx, perdure.EventFilter{After: seq - 1, Limit: 1})
	if err != nil {
		return err.Error()
	}
	if seq > 0 && len(events) == 0 {
		return "the event is gone"
	}
	problems, err := s.Check(ctx)
	if err != nil || len(problems) > 0 {
		return fmt.Sprint("not sound: ", problems, err)
	}
	return ""
}

func unhex(t *testing.T, args string) []byte {
	t.Helper()
	m := hexText.FindStringSubmatch(args)
	if m == nil {
		t.Fatalf("no text in %.200s", args)
	}
	return []byte(decodeHex(m[1]))
}

func decodeHex(s string) string {
	out := make([]byte, 0, len(s)/4)
	for i := 0; i+3 < len(s); i += 4 {
		b, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
		if err != nil {
			return s
		}
		out = append(out, byte(b))
	}
	return string(out)
}

func number64(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
