package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/config"
	looprecord "github.com/perdure/perdure/loop/record"
)

// settings writes the settings file.
func (w *workplace) settings(text string) { w.write(".perdure/config.yaml", text) }

// loopConfig returns the current configuration of the only loop.
func (w *workplace) loopConfig() config.Config {
	t := w.t
	t.Helper()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	loops, err := looprecord.New(store).Loops(t.Context(), 2)
	if err != nil || len(loops) != 1 {
		t.Fatalf("loops: %+v, %v", loops, err)
	}
	tree, err := store.Tree(t.Context(), loops[0].Tree)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Of(&tree, &loops[0])
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// After a kill during a resume with other settings, a loop has them, and the next resume
// reads them again, except those of flags.
func TestLoopResumeKilled(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.try(loopRun, "PERDURE_FAILPOINT=loop.act.done:1")
	w.settings("loop.max_iterations: 5\nloop.check_timeout: 20m\n")
	_, said, _ := w.try("perdure loop resume --idle-timeout 3m", "PERDURE_FAILPOINT=loop.resumed:1")
	if cfg := w.loopConfig(); cfg.MaxIterations != 5 || cfg.CheckTimeout.String() != "20m0s" ||
		cfg.IdleTimeout.String() != "3m0s" {
		t.Fatalf("after the kill it is to do %+v: %s", cfg, said)
	}
	w.settings("loop.max_iterations: 4\nloop.idle_timeout: 1m\n")
	_, said, status := w.try("perdure loop resume")
	if want := "max_iterations 5 -> 4, check_timeout 20m -> 30m\n"; status != 0 || !strings.Contains(said, want) {
		t.Errorf("resume ended with %d and did not say %q: %s", status, want, said)
	}
	if cfg := w.loopConfig(); cfg.IdleTimeout.String() != "3m0s" {
		t.Errorf("what a flag gave was overridden: %s", cfg.IdleTimeout)
	}
	w.loopEnds()
}

// After a kill while it was to continue beyond its limit, an ended loop is the same loop,
// and the next resume continues it.
func TestLoopReopenedKilled(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	if out, errs, status := w.try(loopRun + " --max-iterations 2"); status != 1 ||
		!strings.Contains(out, "which is the limit") {
		t.Fatalf("it ended with %d: %s%s", status, out, errs)
	}
	if out, errs, status := w.try("perdure loop resume"); status != 5 || !strings.Contains(errs, "--max-iterations") {
		t.Fatalf("without more iterations it ended with %d: %s%s", status, out, errs)
	}
	w.try("perdure loop resume --max-iterations 6", "PERDURE_FAILPOINT=loop.reopened:1")
	if got := strings.Count(w.read("log"), "line\n"); got > 2 {
		t.Fatalf("it was not killed: the agent's log has %d lines", got)
	}
	w.sh("perdure doctor")
	if out, errs, status := w.try("perdure loop resume"); status != 0 {
		t.Errorf("resume ended with %d: %s%s", status, out, errs)
	}
	if n := w.loopConfig().MaxIterations; n != 6 {
		t.Errorf("the limit is %d iterations", n)
	}
	w.loopEnds()
}

// A daemon that finds a loop whose process died continues it with its settings, also if
// the settings files changed.
func TestLoopOfADeadProcessKeepsItsConfiguration(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.settings("loop.max_iterations: 4\n")
	w.try(loopRun, "PERDURE_FAILPOINT=loop.act.done:1")
	w.settings("loop:\n  max_iterations: 1\n  notify:\n    command: echo $PERDURE_EVENT > told\n")
	short, err := os.MkdirTemp("", "pd") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(short) }()
	out := w.sh("mkfifo told && { perdure serve & } && read event < told && echo $event && kill -INT $! && wait $!",
		"PERDURE_SOCKET="+filepath.Join(short, "s"))
	if !strings.Contains(out, "loop_complete") {
		t.Errorf("told %q", out)
	}
	if n := w.loopConfig().MaxIterations; n != 4 {
		t.Errorf("the limit is %d iterations", n)
	}
	if got := strings.Count(w.read("log"), "line\n"); got != 3 {
		t.Errorf("the agent's log has %d lines, want 3", got)
	}
}

// A gate is notified once when its loop is killed afterwards, and twice with the same
// ID when it is killed before that was noted; never not at all.
func TestGateIsToldThroughCrashes(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]int{"loop.gate:1": 1, "loop.gate.done:1": 2, "loop.gate:2": 1} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			w.settings("loop.notify.command: cat >> told\n")
			run := strings.Replace(loopRun, " --unattended", " --no-wait", 1)
			if out, errs, status := w.try(run, "PERDURE_FAILPOINT="+point); status != -1 && status != 128+9 {
				t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
			}
			if out, errs, status := w.try("perdure loop resume --no-wait"); status != 6 {
				t.Fatalf("resume ended with %d: %s%s", status, out, errs)
			}
			told := w.read("told")
			if n := strings.Count(told, `/gate/1","event":"gate_opened"`); n != want || strings.Count(told, `"id":`) != want {
				t.Errorf("told %d times, want %d: %s", n, want, told)
			}
		})
	}
}
