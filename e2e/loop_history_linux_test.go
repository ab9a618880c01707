package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/config"
	looprecord "github.com/perdure/perdure/loop/record"
)

// TestLoopHistory: a loop of PERDURE_ITERATIONS iterations (2,000, or the most that
// may be, 10,000, in the long run) can be shown in bounded memory: 500 MB at the most.
func TestLoopHistory(t *testing.T) {
	t.Parallel()
	n := number(t, "PERDURE_ITERATIONS", 2000, 10_000)
	most := int64(60<<10 + 440<<10*n/config.MaxIterationsCap) // KiB: the program's own, and what grows
	w := newWorkplace(t)
	w.history(n)
	program := filepath.Join(filepath.SplitList(w.path)[0], "perdure")
	for view, want := range map[string]string{
		"loop list":                 fmt.Sprintf("%d of 10000", n),
		"loop status":               fmt.Sprintf("iteration %d of 10000", n),
		"loop status --quality":     "REGRESSION",
		"loop status --regressions": "test_failure",
		"loop status --persistence": "egression",
		"loop status --json":        fmt.Sprintf(`"iteration":%d`, n),
		"loop report":               "# Report of history-",
		"loop report --format html": "<svg",
	} {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			cmd := exec.CommandContext(t.Context(), program, strings.Fields(view)...)
			cmd.Dir, cmd.Env, cmd.Stdout = w.dir, w.command("").Env, &out
			status, kib := measured(t, cmd)
			t.Logf("%d KiB of memory, %d bytes", kib, out.Len())
			if status != 0 || !strings.Contains(out.String(), want) {
				t.Errorf("status %d, %d bytes without %q: %.2000s", status, out.Len(), want, out.String())
			}
			if kib > most {
				t.Errorf("it took %d KiB of memory, at most %d are fine", kib, most)
			}
		})
	}
}

// history makes a paused loop of n iterations, every hundredth with a regression.
func (w *workplace) history(n int) {
	t := w.t
	t.Helper()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	raw := func(v any) json.RawMessage {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const text = "the parser gave 17 where 42 was expected, in the third of the tables"
	l := looprecord.Beginning{Loop: looprecord.Loop{Place: ":" + w.dir, Status: looprecord.Paused, Step: "next",
		Iteration: n, State: raw(map[string]string{"reason": "asked to"})}}
	began := time.Now().Add(-time.Duration(n) * time.Minute)
	for i := range n + 1 {
		started, ended, quality := began.Add(time.Duration(i)*time.Minute), began.Add(time.Duration(i+1)*time.Minute), 20+
			i*37%70
		o := state.Outcome{Iteration: i, Timestamp: ended, Quality: &quality, Changed: 20, AgentText: strings.Repeat(text, 5),
			Check: state.Check{Command: "go test ./...", Exit: 1, Output: strings.Repeat(text+"\n", 20)}}
		for f := range 20 {
			o.Artifacts = append(o.Artifacts, fmt.Sprintf("internal/parser/file%d.go", f))
			o.Check.Failing = append(o.Check.Failing, fmt.Sprintf("example.com/parser/TestPart%d", f))
			o.Check.Messages = append(o.Check.Messages, text)
		}
		if i%100 == 99 {
			o.Regressions = []regression.Regression{
				{Type: "test_failure", Severity: "high", Text: text, Tests: o.Check.Failing[:3]}}
		}
		l.Iterations = append(l.Iterations, looprecord.Iteration{Number: i, Status: looprecord.IterationKept,
			Quality: &quality, Data: raw(&o), StartedAt: started, EndedAt: &ended})
	}
	cfg := config.Config{Task: "Make the tests pass", Until: "go test ./...", Agent: "claude", Workspace: w.dir,
		MaxIterations: config.MaxIterationsCap}
	if _, err := store.CreateTree(t.Context(),
		perdure.TreeSpec{Kind: perdure.KindLoop, Name: "history", Config: raw(&cfg), InTx: l.InTx,
			Root: perdure.TaskSpec{Prompt: cfg.Task}}); err != nil {
		t.Fatal(err)
	}
}
