package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// rss returns this process's resident memory in MiB.
func rss() float64 { return memoryOf("VmRSS:") }

// memoryOf returns a value of /proc/self/status in MiB, 0 where it is not known: VmRSS: is
// the resident memory, VmHWM: the most that the process has had.
func memoryOf(field string) float64 { return memoryOfProcess("self", field) }

// memoryOfProcess is memoryOf for another process.
func memoryOfProcess(pid, field string) float64 {
	raw, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0
			}
			return rounded(kb / 1024)
		}
	}
	return 0
}

// child runs this program again on the same folder.
func (b *bench) child(args ...string) (*exec.Cmd, *bufio.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(b.ctx, self, args...)
	cmd.Args = append(cmd.Args[:2], append([]string{"-dir", b.dir, "-dsn", b.dsn}, cmd.Args[2:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, bufio.NewReader(out), cmd.Start()
}

// valuesOf runs a child process that prints its values, and returns them with the time of
// the processor that it used.
func (b *bench) valuesOf(args ...string) (values map[string]any, cpu time.Duration, err error) {
	cmd, out, err := b.child(args...)
	if err != nil {
		return nil, 0, err
	}
	err = json.NewDecoder(out).Decode(&values)
	err = errors.Join(err, cmd.Wait())
	return values, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// holder is a child process: it claims so many tasks, says so and waits for its
// death.
func holder(b *bench, _ int) error {
	want, err := strconv.Atoi(b.args[0])
	if err != nil {
		return err
	}
	s, err := b.open("store")
	if err != nil {
		return err
	}
	ss, err := s.OpenSession(b.ctx, "holder")
	if err != nil {
		return err
	}
	for held := 0; held < want; {
		leases, err := ss.Claim(b.ctx, perdure.ClaimRequest{Max: min(2000, want-held)})
		if err != nil || len(leases) == 0 {
			return errors.Join(err, errors.New("nothing to claim"))
		}
		held += len(leases)
	}
	fmt.Println("holding")
	<-b.ctx.Done()
	return nil
}

// kill starts a holder of n tasks and kills it.
func (b *bench) kill(n int) error {
	cmd, out, err := b.child("holder", strconv.Itoa(n))
	if err != nil {
		return err
	}
	if _, err := out.ReadString('\n'); err != nil {
		return err
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	_ = cmd.Wait() // it was killed
	return nil
}

// firstClaim is a child process: it opens the store and claims one task.
func firstClaim(b *bench, _ int) error {
	s, err := b.open("store")
	if err != nil {
		return err
	}
	ss, err := s.OpenSession(b.ctx, "first")
	if err != nil {
		return err
	}
	leases, err := ss.Claim(b.ctx, perdure.ClaimRequest{Max: 1})
	if err != nil || len(leases) != 1 {
		return errors.Join(err, errors.New("nothing to claim"))
	}
	fmt.Println("claimed", leases[0].Fence())
	return s.Close()
}

// restart: kill -9 of the process that ran a share of the stored tasks, then a
// new process from its start to its first claim.
func restart(b *bench, round int) error {
	for _, n := range b.sizes() {
		for _, share := range []float64{0.01, 1} {
			if err := b.restartOne(round, n, max(1, int(share*float64(n)))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) restartOne(round, n, running int) error {
	store := filepath.Join(b.dir, "store")
	if err := os.RemoveAll(store); err != nil {
		return err
	}
	s, err := b.open("store")
	if err != nil {
		return err
	}
	if _, err := fill(b, s, n); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := b.disk(); err != nil {
		return err
	}
	if err := b.kill(running); err != nil {
		return err
	}
	start := time.Now()
	cmd, out, err := b.child("first-claim")
	if err != nil {
		return err
	}
	line, err := out.ReadString('\n')
	took := time.Since(start)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return err
	}
	return b.print("recover", "kill -9 of the only process; start of a new one until its first claim is durable", round,
		map[string]any{"stored": n, "running": running, "ms": rounded(took.Seconds() * 1000),
			"took_over": strings.TrimSpace(line)})
}

// takeover: from the death of a process until another, already running, has
// claimed one of its tasks.
func takeover(b *bench, round int) error {
	const runs = 20
	if err := b.disk(); err != nil {
		return err
	}
	s, ss, err := b.filled("store", 1000)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := claimAll(b, ss); err != nil { // nothing else is left to claim
		return err
	}
	took := make([]time.Duration, runs)
	for i := range took {
		if _, err := fill(b, s, 8); err != nil {
			return err
		}
		if err := b.kill(9); err != nil { // the root is one of them
			return err
		}
		start := time.Now()
		for {
			ready := s.Ready()
			leases, err := ss.Claim(b.ctx, perdure.ClaimRequest{Max: 16})
			if err != nil {
				return err
			}
			if len(leases) > 0 {
				break
			}
			<-ready
		}
		took[i] = time.Since(start)
	}
	return b.print("takeover", "kill -9 of one of two processes; until the other has claimed its tasks", round,
		quantiles(took, map[string]any{"runs": runs}))
}

// lonelyWriter is a child process: it does single writes and prints each time.
func lonelyWriter(b *bench, _ int) error {
	s, err := b.open("store")
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := create(b, s)
	if err != nil {
		return err
	}
	for range 300 {
		start := time.Now()
		if _, err := s.Submit(b.ctx, tree.Root, perdure.TaskSpec{Prompt: prompt}); err != nil {
			return err
		}
		fmt.Println(time.Since(start).Nanoseconds())
		<-time.After(5 * time.Millisecond)
	}
	return nil
}

// contend: single writes of one process while another commits flat out.
func contend(b *bench, round int) error {
	s, err := b.begin("store")
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := fill(b, s, 1)
	if err != nil {
		return err
	}
	cmd, out, err := b.child("writer")
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	flatOut := make(chan error, 1)
	go func() {
		flatOut <- parallel(64, 1<<30, func(int) error {
			select {
			case <-stop:
				return errStopped
			default:
			}
			_, err := s.Submit(b.ctx, tree.Root, perdure.TaskSpec{Prompt: prompt})
			return err
		})
	}()
	var took []time.Duration
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return err
		}
		took = append(took, time.Duration(ns))
	}
	close(stop)
	if err := <-flatOut; !errors.Is(err, errStopped) {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	return b.print("contend", "single writes of one process while 64 callers of another commit flat out", round,
		quantiles(took, map[string]any{"writes": len(took)}))
}

var errStopped = errors.New("stopped")
