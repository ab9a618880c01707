package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/testing/longtask"
)

// TestRandomKillsInARepl kills a process of a run of the REPL with SIGKILL at random moments:
// the program, the guard of the engine, or the engine. The run is resumed until it ends: its
// answer is right, and no recorded answer is asked for again. PERDURE_REPL_KILLS sets the
// number of kills.
func TestRandomKillsInARepl(t *testing.T) {
	t.Parallel()
	x := &replKills{want: int64(number(t, "PERDURE_REPL_KILLS", 4, 500)), first: uint64(seed(t))}
	t.Run("rounds", func(t *testing.T) {
		for i := range 3 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for x.done() < x.want && !t.Failed() {
					x.round(t)
				}
			})
		}
	})
	t.Logf("%d kills of the program, %d of guards, %d of engines in %d runs; %d calls with unknown outcome",
		x.kills[victimHost].Load(), x.kills[victimGuard].Load(), x.kills[victimEngine].Load(), x.rounds.Load(),
		x.uncertain.Load())
}

// victim is a process of a run.
type victim int

const (
	victimHost victim = iota
	victimGuard
	victimEngine
	victims
)

// replKills are the kills of TestRandomKillsInARepl.
type replKills struct {
	want      int64
	first     uint64
	rounds    atomic.Uint64
	kills     [victims]atomic.Int64
	uncertain atomic.Int64
}

func (x *replKills) done() (n int64) {
	for i := range x.kills {
		n += x.kills[i].Load()
	}
	return n
}

// round is one run with up to three kills, of which one is of an engine or its guard: a block
// whose engine ends twice is lost.
func (x *replKills) round(t *testing.T) {
	t.Helper()
	number := x.rounds.Add(1)
	rng := rand.New(rand.NewPCG(x.first, number))
	questions := longtask.Questions(rng.Uint64())
	server := &longtask.Server{Question: questions[rng.IntN(len(questions))], Nested: rng.IntN(4) == 0,
		Delay: time.Duration(rng.Int64N(int64(20 * time.Millisecond)))}
	b := newLongBed(t, server, longtask.Spec{Seed: rng.Uint64(), Lines: 20 + rng.Int64N(600)})
	answered := make(chan struct{}, b.calls)
	b.server.OnAnswer(func(string, int) {
		select {
		case answered <- struct{}{}:
		default: // no kill waits for it
		}
	})
	b.how = append(b.how, "--concurrency", fmt.Sprint(1+rng.IntN(8)))
	plan := []victim{victimHost, victimHost, victimGuard + victim(rng.IntN(2))}
	rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	plan = plan[:1+rng.IntN(len(plan))]
	for len(b.trees()) == 0 || !b.trees()[0].State.Terminal() {
		plan = x.step(b, rng, plan, answered)
	}
	x.uncertain.Add(int64(b.checkEnd()))
	if t.Failed() {
		t.Logf("in round %d", number)
	}
}

// step runs or resumes the tree, kills what is planned meanwhile, and returns the rest of the
// plan.
func (x *replKills) step(b *longBed, rng *rand.Rand, plan []victim, answered <-chan struct{}) []victim {
	b.t.Helper()
	cmd := b.next()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for len(plan) > 0 && randomMoment(rng, b.calls, answered, ended) {
			if x.kill(cmd.Process.Pid, plan[0]) {
				plan = plan[1:]
			}
		}
	})
	hung := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	hung.Stop()
	close(ended)
	killer.Wait()
	if err != nil && !killed(err) {
		b.t.Fatalf("run: %v\n%s", err, out.String())
	}
	return plan
}

// randomMoment waits for a random time, or for a random number of answers of the models, and
// reports whether the program runs still.
func randomMoment(rng *rand.Rand, calls int, answered, ended <-chan struct{}) bool {
	if rng.IntN(3) == 0 {
		select {
		case <-ended:
			return false
		case <-time.After(time.Duration(rng.Int64N(int64(700 * time.Millisecond)))):
			return true
		}
	}
	for range 1 + rng.IntN(calls) {
		select {
		case <-ended:
			return false
		case <-answered:
		}
	}
	return true
}

// kill kills a process of a run, and reports whether there was one.
func (x *replKills) kill(host int, v victim) bool {
	pid := host
	if v != victimHost {
		if pid = replProcess(host, v); pid == 0 {
			return false
		}
	}
	if syscall.Kill(pid, syscall.SIGKILL) != nil {
		return false
	}
	x.kills[v].Add(1)
	return true
}

// replProcess returns the guard of an engine or the engine below a program, 0 if there is none.
func replProcess(parent int, v victim) int {
	for _, child := range childrenOf(parent) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		name, _, _ := strings.Cut(string(line), "\x00")
		if is := strings.Contains(filepath.Base(name), "guard"); is == (v == victimGuard) && (is ||
			strings.Contains(filepath.Base(name), "python")) {
			return child
		}
		if found := replProcess(child, v); found != 0 {
			return found
		}
	}
	return 0
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		raw, _ := os.ReadFile(f)
		for _, field := range strings.Fields(string(raw)) {
			if n, err := strconv.Atoi(field); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// TestKilledEngine kills the engine or its guard within a batch of sub-calls: the block is run
// again in the same process, and the model does not notice.
func TestKilledEngine(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]victim{"guard": victimGuard, "engine": victimEngine} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLongBed(t, &longtask.Server{Question: longQuestion()}, longtask.Spec{Seed: 6, Lines: 200})
			var process atomic.Pointer[os.Process]
			var x replKills
			started := make(chan struct{})
			b.server.OnAnswer(func(model string, number int) {
				<-started
				// The kernel lists children reliably only while no thread begins or ends.
				for model == "sub" && number == 3 && !x.kill(process.Load().Pid, v) && t.Context().Err() == nil {
					runtime.Gosched()
				}
			})
			var out bytes.Buffer
			cmd := b.next()
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			process.Store(cmd.Process)
			close(started)
			if err := cmd.Wait(); err != nil || x.done() != 1 {
				t.Fatalf("%d kills, run: %v\n%s", x.done(), err, out.String())
			}
			if n := b.checkEnd(); n != 0 || b.requests() != b.calls {
				t.Errorf("%d requests, %d with an unknown outcome, want %d", b.requests(), n, b.calls)
			}
		})
	}
}
