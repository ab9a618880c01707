package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestPowerLoss records the system calls of a process that uses the library, rebuilds
// the disk as after a power loss at the moment of an acknowledgement, in the worst case
// and at random, opens the store on it and checks that it has all acknowledged changes.
// PERDURE_POWERLOSS=all checks every acknowledgement instead of a sample. (After kill -9
// the kernel still writes.)
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	trace, base := record(t, "acknowledge")
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 2))
	d := newDisk(base)
	opened, logs, soon := 0, 0, 0
	d.acked = func() {
		// All of the first, while the store is small; one after the log was begun
		// anew; and the last.
		if d.logs != logs {
			logs, soon = d.logs, len(d.acks)+1
		}
		n := len(d.acks)
		if os.Getenv("PERDURE_POWERLOSS") != "all" && n > 16 && n > soon && d.acks[n-1] != "end" {
			return
		}
		opened++
		if lost := survives(t, d, nil); len(lost) > 0 {
			t.Errorf("after %d acknowledgements, at worst: %v", n, lost)
		}
		if lost := survives(t, d, rng); len(lost) > 0 {
			t.Errorf("after %d acknowledgements, by chance: %v", n, lost)
		}
	}
	play(t, d, trace)
	t.Logf("%d acknowledgements, %d power losses, the log was begun %d times", len(d.acks), 2*opened, d.logs)
	if d.logs < 3 {
		t.Error("the log was not moved into the database and begun anew; the test proves too little")
	}
	if len(d.acks) < 150 || d.acks[len(d.acks)-1] != "end" {
		t.Errorf("the trace has %d acknowledgements", len(d.acks))
	}
}

// A transaction is one write to the log, however many pages it changed, and one
// flush. What it takes more is for the largest, and for the log's beginning.
func TestLogWrites(t *testing.T) {
	t.Parallel()
	trace, base := record(t, "acknowledge")
	d := newDisk(base)
	d.acked = func() {}
	play(t, d, trace)
	t.Logf("%d writes, %d flushes of the log, begun %d times", d.logWrites, d.logFlushes, d.logs)
	if d.logFlushes < 100 || d.logWrites > 2*d.logFlushes { // without our layer it is two writes a page
		t.Errorf("%d writes and %d flushes of the log for %d acknowledgements", d.logWrites, d.logFlushes, len(d.acks))
	}
}

// Each flush is needed: on a disk that only pretends to do it, something that
// was acknowledged is lost. This also shows that the test can fail.
func TestPowerLossOnLyingDisk(t *testing.T) {
	t.Parallel()
	trace, base := record(t, "acknowledge")
	for name, ignore := range map[string]func(path string) bool{
		"the log":      func(path string) bool { return strings.HasSuffix(path, "-wal") },
		"the database": func(path string) bool { return strings.HasSuffix(path, "perdure.db") },
		"blobs":        func(path string) bool { return strings.Contains(path, "/blobs/") && !isDir(path) },
		"blob names":   func(path string) bool { return strings.Contains(path, "/blobs") && isDir(path) },
		"the folder":   func(path string) bool { return filepath.Base(path) == ".perdure" },
		"the project":  func(path string) bool { return filepath.Base(path) == "project" },
		"everything":   func(string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(base)
			d.ignore = ignore
			var lost []string
			d.acked = func() {
				if n := len(d.acks); n%20 == 0 && n <= 200 || d.acks[n-1] == "end" {
					lost = survives(t, d, nil)
					d.over = len(lost) > 0
				}
			}
			play(t, d, trace)
			if len(lost) == 0 {
				t.Error("nothing is lost")
			}
		})
	}
}

// isDir reports whether a name of a trace is that of a folder.
func isDir(path string) bool { return len(filepath.Base(path)) <= len("blobs") }

// A writer without synchronous=FULL acknowledges changes that are not on the disk, and the
// test finds them.
func TestPowerLossOfSloppyWriter(t *testing.T) {
	t.Parallel()
	trace, base := record(t, "sloppy")
	d := newDisk(base)
	lost := 0
	d.acked = func() {
		if len(survives(t, d, nil)) > 0 {
			lost++
		}
	}
	play(t, d, trace)
	if len(d.acks) < 5 || lost < len(d.acks)/2 {
		t.Errorf("%d losses at %d acknowledgements", lost, len(d.acks))
	}
}

// recording has the system calls of a process, and the folder that is its disk.
type recording struct {
	trace   []byte
	base    string
	missing string // why nothing was recorded
}

// record runs a role of this test binary under strace, once for all tests.
func record(t *testing.T, role string) (trace []byte, base string) {
	t.Helper()
	record := recordSnapshots
	switch role {
	case "acknowledge":
		record = recordAcknowledge
	case "sloppy":
		record = recordSloppy
	}
	r, err := record()
	if err != nil {
		t.Fatal(err)
	}
	if r.missing != "" {
		testdb.Missing(t, "strace", r.missing)
	}
	return r.trace, r.base
}

var (
	recordAcknowledge = sync.OnceValues(func() (recording, error) { return recordRole("acknowledge") })
	recordSloppy      = sync.OnceValues(func() (recording, error) { return recordRole("sloppy") })
	recordSnapshots   = sync.OnceValues(func() (recording, error) { return recordRole("snapshots") })
)

func recordRole(role string) (recording, error) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return recording{missing: "install strace: " + err.Error()}, nil
	}
	dir := filepath.Join(sharedFolder(), role)
	r := recording{base: filepath.Join(dir, "disk")}
	if err := os.MkdirAll(r.base, 0o700); err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	file := filepath.Join(dir, "trace")
	cmd := exec.Command(strace, "-f", "-s", "4000000", "-o", file, "-e", "trace="+traced+","+foreign, self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role+" "+filepath.Join(r.base, "project", ".perdure"))
	if out, err := cmd.CombinedOutput(); err != nil {
		if bytes.Contains(bytes.ToLower(out), []byte("ptrace")) {
			return recording{missing: "it may not trace here: " + string(out)}, nil
		}
		return r, fmt.Errorf("trace %s: %w\n%.2000s", role, err, out)
	}
	r.trace, err = os.ReadFile(file)
	return r, err
}

func play(t *testing.T, d *disk, trace []byte) {
	t.Helper()
	for line := range bytes.Lines(trace) {
		if d.over {
			break
		}
		d.line(strings.TrimSuffix(string(line), "\n"))
	}
	if d.err != nil {
		t.Fatal(d.err)
	}
}

// survives rebuilds the disk and returns the lost acknowledged changes. Without a source
// of random numbers it is the worst case.
func survives(t *testing.T, d *disk, rng *rand.Rand) []string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "lost") //nolint:usetesting // removed here: a test rebuilds very many
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if rng == nil {
		err = d.worst(dir)
	} else {
		err = d.chance(dir, rng)
	}
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "project", ".perdure")
	if _, err := os.Stat(filepath.Join(store, "perdure.db")); err != nil {
		return []string{"the store: " + err.Error()}
	}
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: store})
	if err != nil {
		return []string{"open: " + err.Error()}
	}
	defer s.Close()
	var lost []string
	problems, err := s.Check(t.Context())
	for _, p := range problems {
		lost = append(lost, p.Kind+": "+p.Detail)
	}
	if err != nil {
		return append(lost, "check: "+err.Error())
	}
	l := &leftover{s: s, tasks: make(map[string]leftTask)}
	for _, fact := range d.acks {
		if err := l.holds(t.Context(), strings.Fields(fact)); err != nil {
			lost = append(lost, fmt.Sprintf("%s: %v", fact, err))
		}
	}
	return lost
}

// leftover is a store after a power loss, and the tasks read from it.
type leftover struct {
	s     *perdure.Store
	tasks map[string]leftTask
}

type leftTask struct {
	perdure.Task
	calls []perdure.Call
}

// task reads a task and its calls, once.
func (l *leftover) task(ctx context.Context, id string) (leftTask, error) {
	if t, read := l.tasks[id]; read {
		return t, nil
	}
	n, err := perdure.ParseTaskID(id)
	if err != nil {
		return leftTask{}, err
	}
	var t leftTask
	if t.Task, err = l.s.Task(ctx, n); err != nil {
		return t, err
	}
	if t.calls, err = l.s.Calls(ctx, n); err != nil {
		return t, err
	}
	l.tasks[id] = t
	return t, nil
}

// holds returns an error if an acknowledged fact is no longer true.
func (l *leftover) holds(ctx context.Context, fact []string) error {
	switch kind := fact[0]; kind {
	case "end", "open":
		return nil
	case "tree":
		_, err := l.s.Tree(ctx, perdure.TreeID(fact[1]))
		return err
	case "context":
		_, err := l.s.Context(ctx, fact[1])
		return err
	case "blob":
		b, err := l.s.OpenBlob(ctx, fact[1])
		if err != nil {
			return err
		}
		return errors.Join(b.Close(), want(fmt.Sprint(b.Size()), fact[2]))
	case "task", "completed", "failed", "cancelled", "output", "begun", "settled":
		return l.taskHolds(ctx, kind, fact[1:])
	default:
		return fmt.Errorf("unknown fact %q", kind)
	}
}

func (l *leftover) taskHolds(ctx context.Context, kind string, fact []string) error {
	task, err := l.task(ctx, fact[0])
	if err != nil {
		return err
	}
	switch kind {
	case "completed":
		return errors.Join(want(string(task.State), "completed"), want(fmt.Sprint(len(task.Result)), fact[1]))
	case "failed", "cancelled":
		return want(string(task.State), kind)
	case "output":
		return want(fmt.Sprint(len(task.Output)), fact[1])
	case "task":
		return nil
	}
	i := slices.IndexFunc(task.calls, func(c perdure.Call) bool { return c.ID.String() == fact[1] })
	if i < 0 {
		return errors.New("the call is gone")
	}
	if kind == "settled" {
		return errors.Join(want(string(task.calls[i].State), "completed"), want(task.calls[i].Response, fact[2]))
	}
	return nil
}

func want(got, want string) error {
	if got != want {
		return fmt.Errorf("it is %q, was %q", got, want)
	}
	return nil
}
