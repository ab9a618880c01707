//go:build unix

package workspace_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/internal/workspace"
)

// TestMain runs this binary as the process that is killed.
func TestMain(m *testing.M) {
	testenv.Set()
	failpoint.Enable()
	work := os.Getenv("PERDURE_TEST_WORK")
	if work == "" {
		m.Run() // returning exits with its code
		return
	}
	if err := child(context.Background(), work, os.Getenv("PERDURE_TEST_ROOT"),
		workspace.ID(os.Getenv("PERDURE_TEST_ID"))); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(ctx context.Context, work, root string, id workspace.ID) error {
	if os.Getenv("PERDURE_TEST_FSIZE") != "" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	cfg := config(root)
	cfg.Grace = -1
	w, err := workspace.Open(cfg)
	if err != nil {
		return err
	}
	_, _ = fmt.Println("started")
	switch work {
	case "snapshot":
		_, _, err = w.Snapshot(ctx)
	case "restore":
		_, err = w.Restore(ctx, id)
	case "sweep":
		_, err = w.Sweep(ctx, workspace.Retain{Keep: []workspace.ID{id}})
	}
	return err
}

// job is the work of a child process.
type job struct {
	work, root string
	id         workspace.ID
	env        []string
}

// play starts a child and kills it after a time; with 0 it waits for its end.
func play(t *testing.T, j job, after time.Duration) (killed bool, output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PERDURE_TEST_WORK="+j.work, "PERDURE_TEST_ROOT="+j.root,
		"PERDURE_TEST_ID="+string(j.id))
	cmd.Env = append(cmd.Env, j.env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = bufio.NewReader(out).ReadString('\n')
	if after > 0 {
		<-time.After(after)
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return true, ""
	}
	return false, stderr.String()
}

// mess makes many changes, different ones in each round.
func mess(t *testing.T, root string, random *rand.Rand) {
	t.Helper()
	for range 40 {
		dir := fmt.Sprintf("d%d", random.IntN(6))
		name := fmt.Sprintf("%s/f%d", dir, random.IntN(12))
		if info, err := os.Lstat(filepath.Join(root, dir)); err == nil && !info.IsDir() {
			remove(t, root, dir)
		}
		switch random.IntN(6) {
		case 0:
			remove(t, root, dir)
		case 1:
			remove(t, root, name)
		case 2:
			remove(t, root, name)
			write(t, root, map[string]string{name + "@": "nowhere"})
		case 3:
			remove(t, root, dir)
			write(t, root, map[string]string{dir: "a file now"})
		default:
			remove(t, root, name)
			write(t, root, map[string]string{name: strings.Repeat(fmt.Sprint(random.IntN(1000)), 300)})
		}
	}
	write(t, root, map[string]string{".gitignore": fmt.Sprintf("*.%d\n", random.IntN(3))})
}

// whole checks that every stored snapshot is complete.
func whole(t *testing.T, w *workspace.Workspace) {
	t.Helper()
	for id := range ids(t, w) {
		files, _, err := w.Files(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Kind != workspace.KindFile {
				continue
			}
			if _, err := w.ReadFile(t.Context(), id, f.Path); err != nil {
				t.Fatalf("snapshot %s: %v", id, err)
			}
		}
	}
}

// crashed is a workspace in which children are killed.
type crashed struct {
	root   string
	cfg    workspace.Config
	w      *workspace.Workspace
	id     workspace.ID
	want   map[string]string
	random *rand.Rand
}

func newCrashed(t *testing.T, seed uint64) *crashed {
	t.Helper()
	c := &crashed{root: project(t, map[string]string{}), random: rand.New(rand.NewPCG(seed, 1))}
	c.cfg = config(c.root)
	mess(t, c.root, c.random)
	c.w = open(t, c.cfg)
	c.id, c.want = take(t, c.w), tree(t, c.root)
	return c
}

// round changes the files, kills a child during its work, and checks the files and snapshots.
func (c *crashed) round(t *testing.T, work string, after time.Duration, env ...string) bool {
	t.Helper()
	mess(t, c.root, c.random)
	if work == "sweep" {
		take(t, c.w)
		mess(t, c.root, c.random)
		take(t, c.w)
	}
	killed, output := play(t, job{work, c.root, c.id, env}, after)
	if output != "" {
		t.Fatalf("%s: %s", work, output)
	}
	whole(t, c.w)
	// Also from other files, and a second time.
	if _, err := c.w.Restore(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	same(t, "tree after "+work, tree(t, c.root), c.want)
	if _, err := c.w.Sweep(t.Context(), workspace.Retain{Keep: []workspace.ID{c.id}}); err != nil {
		t.Fatal(err)
	}
	nothingHalf(t, c.cfg)
	return killed
}

// After a kill at any time there are only complete snapshots, and a repeated restore has the
// same result.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newCrashed(t, seed)
	kills := map[string]int{}
	for i := range 30 {
		work := []string{"snapshot", "restore", "sweep"}[i%3]
		if c.round(t, work, 1+time.Duration(c.random.Int64N(int64(25*time.Millisecond)))) {
			kills[work]++
		}
	}
	t.Logf("killed %v", kills)
}

// The same at each failpoint.
func TestKilledAtFailpoints(t *testing.T) {
	t.Parallel()
	c := newCrashed(t, 7)
	total := 0
	for _, work := range []string{"snapshot", "restore", "sweep"} {
		list := filepath.Join(t.TempDir(), "list")
		c.round(t, work, 0, "PERDURE_FAILPOINT_LIST="+list)
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for name := range strings.FieldsSeq(string(data)) {
			seen[name]++
		}
		for name, n := range seen {
			for _, hit := range []int{1, (n + 1) / 2} {
				if c.round(t, work, 0, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", name, hit)) {
					total++
				}
			}
		}
		t.Logf("%s passes %d places", work, len(seen))
	}
	if total < 20 {
		t.Errorf("only %d kills", total)
	}
}

// A full disk leaves no incomplete snapshot and no incomplete file.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"small": "s"})
	cfg := config(root)
	w := open(t, cfg)
	id := take(t, w)
	write(t, root, map[string]string{"large": strings.Repeat("0123456789", 300_000)})
	before := tree(t, root)
	full := []string{"PERDURE_TEST_FSIZE=1"}
	for _, work := range []string{"snapshot", "restore"} {
		_, output := play(t, job{work, root, id, full}, 0)
		if !strings.Contains(output, workspace.ErrDiskFull.Error()) {
			t.Errorf("%s: %q, want %q", work, output, workspace.ErrDiskFull)
		}
		same(t, work+": tree", tree(t, root), before)
		same(t, work+": snapshots", ids(t, w), map[workspace.ID]bool{id: true})
		nothingHalf(t, cfg)
	}
	large := take(t, w)
	restore(t, w, id)
	// The restored files do not fit: no part of them is written.
	_, output := play(t, job{"restore", root, large, full}, 0)
	if !strings.Contains(output, workspace.ErrDiskFull.Error()) {
		t.Errorf("restore of a large file: %q, want %q", output, workspace.ErrDiskFull)
	}
	if _, err := os.Stat(filepath.Join(root, "large")); !os.IsNotExist(err) {
		t.Errorf("half a file: %v", err)
	}
	restore(t, w, large)
	same(t, "tree", tree(t, root), before)
}
