package e2e

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// variablesEnv holds the seed of the operations and how many are acknowledged.
const variablesEnv = "PERDURE_E2E_VARIABLES"

// changeVariables continues with random operations and acknowledges each.
func changeVariables(ctx context.Context, s *perdure.Store) error {
	var seed uint64
	var acked int
	if _, err := fmt.Sscan(os.Getenv(variablesEnv), &seed, &acked); err != nil {
		return err
	}
	return statetest.Continue(ctx, s, seed, acked, func(n int) { fmt.Fprintln(os.Stdout, n) })
}

// TestVariableKills kills a process that changes variables, creates checkpoints and rolls
// back, PERDURE_CRASH_KILLS/6 times: the store has all acknowledged operations, and at
// most one more.
func TestVariableKills(t *testing.T) {
	t.Parallel()
	kills, seed := kills(t)/6, seed(t)
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		acked := 0
		for range kills {
			acked = killVariables(t, cfg, seed, acked, acked+1+rng.IntN(60))
		}
		t.Logf("%d operations", acked)
	})
}

// killVariables lets a process go on until it acknowledged so many operations
// and kills it then, and returns how many it had acknowledged.
func killVariables(t *testing.T, cfg perdure.Config, seed, acked, until int) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleEnv+"=variables "+cfg.Dir, dsnEnv+"="+cfg.DSN,
		fmt.Sprintf("%s=%d %d", variablesEnv, seed, acked))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		if acked = n; n == until {
			_ = cmd.Process.Kill() // it may have ended just now
		}
	}
	if err := cmd.Wait(); err != nil && !killed(err) {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return acked
}

// increments is how often each process increments the variable.
func increments() int { return effort.Of(100, 1000) }

func counter() perdure.StateRef { return perdure.StateRef{Scope: perdure.ScopeGlobal} }

func incrementVariable(ctx context.Context, s *perdure.Store) error {
	for range increments() {
		if _, err := s.IncrVar(ctx, counter(), "count", "1", perdure.Cause{}); err != nil {
			return err
		}
	}
	return nil
}

// TestIncrementsOfProcesses lets 8 processes increment one variable many times
// each: none is lost, and the history has every one of them.
func TestIncrementsOfProcesses(t *testing.T) {
	t.Parallel()
	const processes = 8
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s := testdb.Open(t, cfg)
		running := make([]*exec.Cmd, processes)
		errs := make([]strings.Builder, processes)
		for i := range running {
			running[i] = exec.CommandContext(t.Context(), self)
			running[i].Env = append(os.Environ(), roleEnv+"=increment "+cfg.Dir, dsnEnv+"="+cfg.DSN)
			running[i].Stderr = &errs[i]
			if err := running[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		for i, cmd := range running {
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, &errs[i])
			}
		}
		v, err := s.Var(t.Context(), counter(), "count")
		if err != nil || string(v.Value) != strconv.Itoa(processes*increments()) {
			t.Errorf("the variable is %s, want %d, %v", v.Value, processes*increments(), err)
		}
		info, err := s.State(t.Context(), counter())
		if err != nil || info.Mutations != int64(processes*increments()) {
			t.Errorf("%d mutations, %v", info.Mutations, err)
		}
	})
}
