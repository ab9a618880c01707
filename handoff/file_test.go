package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testenv"
)

const childFile = "PERDURE_TEST_HANDOFF_FILE"

// TestMain lets this binary play another process that writes.
func TestMain(m *testing.M) {
	testenv.Set()
	failpoint.Enable()
	if path := os.Getenv(childFile); path != "" {
		for i := 0; ; i++ {
			if err := addStep(context.Background(), path, fmt.Sprintf("%s %d", os.Getenv("PERDURE_TEST_HANDOFF_NAME"),
				i)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	effort.Checks(30)
	m.Run()
}

// addStep is what an update does: read, adopt, write.
func addStep(ctx context.Context, path, name string) error {
	f, err := handoff.Lock(ctx, path)
	if err != nil {
		return err
	}
	c, err := f.Document().Checkpoint(handoff.PRD)
	if err == nil && c == nil {
		c = &handoff.Checkpoint{}
	}
	if err == nil {
		c.PendingSteps = append(c.PendingSteps, name)
		var d *handoff.Document
		if d, err = f.Document().With(handoff.PRD, c, time.Time{}); err == nil {
			err = f.Write(d, nil)
		}
	}
	return errors.Join(err, f.Close())
}

func newFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), handoff.FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lock(t *testing.T, path string) *handoff.File {
	t.Helper()
	f, err := handoff.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func with(t *testing.T, f *handoff.File, c *handoff.Checkpoint) *handoff.Document {
	t.Helper()
	d, err := f.Document().With(handoff.PRD, c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

const emptyPRD = `{"activePrd": {"id": "p"}}`

func TestWrite(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	f := lock(t, path)
	d := with(t, f, small())
	var intended string
	if err := f.Write(d, func(sum string) error {
		intended = sum
		if got := content(t, path); got != emptyPRD {
			t.Errorf("the file is %q before its hash is known", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if intended != f.Sum() || len(intended) != 64 {
		t.Errorf("intended %q, the file has %q", intended, f.Sum())
	}
	if got := content(t, path); got != string(d.Bytes()) {
		t.Errorf("content %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{handoff.FileName}, names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("left in the folder (-want +got):\n%s", diff)
	}
	again := lock(t, path)
	defer again.Close()
	if again.Sum() != intended {
		t.Errorf("the file reads as %q, %q was intended", again.Sum(), intended)
	}
}

func TestWriteStopsWithItsHook(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	f := lock(t, path)
	defer f.Close()
	broken := errors.New("no")
	if err := f.Write(with(t, f, small()), func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got := content(t, path); got != emptyPRD {
		t.Errorf("content %q, want the old one", got)
	}
}

// An editor that knows no lock is noticed before it is overwritten.
func TestWriteNoticesEditors(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	f := lock(t, path)
	defer f.Close()
	const edited = `{"activePrd": {"id": "q"}}`
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(with(t, f, small()), nil); !errors.Is(err, handoff.ErrConflict) {
		t.Errorf("error %v, want a conflict", err)
	}
	if got := content(t, path); got != edited {
		t.Errorf("content %q, want the edit", got)
	}
	if got := names(t, filepath.Dir(path)); len(got) != 2 { // the file and the lock
		t.Errorf("folder holds %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(with(t, f, small()), nil); !errors.Is(err, handoff.ErrNotFound) {
		t.Errorf("error %v, want that the file is gone", err)
	}
}

func TestLockRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		kind error
		want string
	}{
		{put("read-only.json", emptyPRD, 0o400), handoff.ErrReadOnly, "read-only"},
		{put("broken.json", "{\n\"a\": }", 0o600), handoff.ErrSyntax, ":2:6: "},
		{filepath.Join(dir, "missing.json"), handoff.ErrNotFound, "no such file"},
		{filepath.Join(dir, "broken.json", "below"), handoff.ErrNotFound, "no such file"},
		{dangling, handoff.ErrNotFound, "no such file"},
		{dir, handoff.ErrInvalid, "not a regular file"},
	}
	for _, tt := range tests {
		f, err := handoff.Lock(t.Context(), tt.path)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %v: %s", filepath.Base(tt.path), err, tt.kind, tt.want)
		}
	}
	for _, name := range names(t, dir) {
		if strings.HasSuffix(name, ".lock") {
			t.Errorf("%s was left", name)
		}
	}
	if got := content(t, filepath.Join(dir, "broken.json")); got != "{\n\"a\": }" {
		t.Errorf("a broken file became %q", got)
	}
}

func TestLockWaits(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	f := lock(t, path)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := handoff.Lock(ctx, path); !errors.Is(err, handoff.ErrConflict) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a conflict", err)
	}
	got := make(chan error)
	go func() { got <- addStep(t.Context(), path, "waited") }()
	if err := f.Write(with(t, f, small()), nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	c, err := load(t, path).Checkpoint(handoff.PRD)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Blockers) != 1 || len(c.PendingSteps) != 1 {
		t.Errorf("checkpoint %+v, want both writes", c)
	}
}

func load(t *testing.T, path string) *handoff.Document {
	t.Helper()
	d, err := handoff.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Writers that take the lock lose nothing of each other.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := addStep(t.Context(), path, fmt.Sprint(w, " ", i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	c, err := load(t, path).Checkpoint(handoff.PRD)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.PendingSteps) != writers*each {
		t.Errorf("%d steps, want %d", len(c.PendingSteps), writers*each)
	}
	if diff := cmp.Diff([]string{handoff.FileName}, names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("left in the folder (-want +got):\n%s", diff)
	}
}

// Two processes write and are killed again and again: the file is always a whole
// one, the lock ends with its holder, and nothing stays behind.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	path := newFile(t, emptyPRD)
	kills := 12
	if testing.Short() {
		kills = 3
	}
	steps := 0
	for round := range kills {
		var children []*exec.Cmd
		for _, name := range []string{"a", "b"} {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childFile+"="+path, fmt.Sprintf("PERDURE_TEST_HANDOFF_NAME=%s%d", name, round))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			children = append(children, cmd)
		}
		// They are at work when there are more steps than before.
		for n := steps; n < steps+3+round; {
			c, err := load(t, path).Checkpoint(handoff.PRD)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				n = len(c.PendingSteps)
			}
		}
		for _, cmd := range children {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		for _, cmd := range children {
			if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("a writer ended: %v", err)
			}
		}
		if err := addStep(t.Context(), path, "after"); err != nil {
			t.Fatal(err)
		}
		c, err := load(t, path).Checkpoint(handoff.PRD)
		if err != nil {
			t.Fatal(err)
		}
		steps = len(c.PendingSteps)
		wantInOrder(t, c.PendingSteps)
	}
	if diff := cmp.Diff([]string{handoff.FileName}, names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("left in the folder (-want +got):\n%s", diff)
	}
}

// wantInOrder checks that no step of a writer is missing between two others.
func wantInOrder(t *testing.T, steps []string) {
	t.Helper()
	next := make(map[string]int)
	for _, step := range steps {
		var name string
		var i int
		if _, err := fmt.Sscanf(step, "%s %d", &name, &i); err != nil {
			continue // "after"
		}
		if i != next[name] {
			t.Fatalf("step %q, want %d of %s: one was lost", step, next[name], name)
		}
		next[name]++
	}
}

// Killed at each point of a write, the file is the old one or the new one.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for point, written := range map[string]bool{"handoff.before_write": false, "handoff.before_rename": false,
		"handoff.after_rename": true} {
		path := newFile(t, emptyPRD)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childFile+"="+path, "PERDURE_FAILPOINT="+point)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%s: %v\n%s", point, err, out)
		}
		c, err := load(t, path).Checkpoint(handoff.PRD)
		if err != nil || (c != nil) != written || !written && content(t, path) != emptyPRD {
			t.Errorf("%s: %+v, %v, want it written: %v", point, c, err, written)
		}
		if err := addStep(t.Context(), path, "after"); err != nil {
			t.Errorf("%s: %v", point, err)
		}
		if got := names(t, filepath.Dir(path)); len(got) != 1 {
			t.Errorf("%s: left in the folder: %q", point, got)
		}
	}
}
