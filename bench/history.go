package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// loopHistory: what it takes to look at a loop of 10,000 iterations, each view by a
// process of its own, alternating with `perdure version` of the same program.
func loopHistory(b *bench, round int) error {
	const looks = 20
	n := cmp.Or(b.n, config.MaxIterationsCap)
	dir := filepath.Join(b.dir, fmt.Sprintf("history-%d", round))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // measured and done with
	program, err := b.program(dir)
	if err != nil {
		return err
	}
	if err := b.inChild("loop-history-fill", "-n", fmt.Sprint(n), dir); err != nil { // its memory would count as theirs
		return err
	}
	if err := b.disk(); err != nil {
		return err
	}
	for _, view := range []string{"version", "loop list", "loop status", "loop status --quality",
		"loop status --regressions", "loop status --persistence", "loop status --json", "loop report",
		"loop report --format html", "loop report --json", "loop status --quality --full", "loop status --json --full"} {
		var took []time.Duration
		most := int64(0)
		for range looks {
			once, kib, err := b.process(dir, program, strings.Fields(view)...)
			if err != nil {
				return err
			}
			took, most = append(took, once), max(most, kib)
		}
		if err := b.print("loop-history", "perdure "+view+", start of the process included", round,
			quantiles(took, map[string]any{"iterations": n, "memory_mib": most >> 10})); err != nil {
			return err
		}
	}
	return nil
}

// inChild runs another benchmark of this program to its end.
func (b *bench) inChild(args ...string) error {
	cmd, out, err := b.child(args...)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, out)
	return errors.Join(err, cmd.Wait())
}

// loopHistoryFill is the child that makes the history, in a folder.
func loopHistoryFill(b *bench, _ int) error {
	return b.fillHistory(filepath.Join(b.args[0], ".perdure"), b.n)
}

// fillHistory makes a paused loop of n iterations, every hundredth with a
// regression.
func (b *bench) fillHistory(dir string, n int) error {
	s, err := perdure.Open(b.ctx, perdure.Config{Dir: dir, DSN: b.dsn})
	if err != nil {
		return err
	}
	defer s.Close()
	l := record.Beginning{Loop: record.Loop{Place: ":" + dir, Status: record.Paused, Step: "next", Iteration: n,
		State: json.RawMessage(`{"reason":"asked to"}`)}}
	began := time.Now().Add(-time.Duration(n) * time.Minute)
	for i := range n + 1 {
		started, quality := began.Add(time.Duration(i)*time.Minute), 20+i*37%70
		ended := started.Add(time.Minute)
		o := state.Outcome{Iteration: i, Timestamp: ended, Quality: &quality, After: workspace.ID(fmt.Sprintf("%040x", i)),
			Changed: 20, AgentText: strings.Repeat(sentence, 5),
			Check: state.Check{Command: "go test ./...", Exit: 1, Output: strings.Repeat(sentence+"\n", 20),
				Counts: testreport.Counts{Tests: 150, Executed: 150, Passed: 130, Failed: 20}}}
		for f := range 20 {
			o.Artifacts = append(o.Artifacts, fmt.Sprintf("internal/parser/file%d.go", f))
			o.Check.Failing = append(o.Check.Failing, fmt.Sprintf("example.com/parser/TestPart%d", f))
			o.Check.Messages = append(o.Check.Messages, sentence)
		}
		if i%100 == 99 {
			o.Regressions = []regression.Regression{
				{Type: "test_failure", Severity: "high", Text: sentence, Tests: o.Check.Failing[:3]}}
			o.Recoveries = []state.Recovery{{Iteration: i, Attempt: 1, Diagnosis: state.TaskComplexity, Confidence: 70,
				Why: sentence, Outcome: "retried"}}
		}
		raw, err := json.Marshal(&o)
		if err != nil {
			return err
		}
		l.Iterations = append(l.Iterations, record.Iteration{Number: i, Status: record.IterationKept, Quality: &quality,
			Data: raw, StartedAt: started, EndedAt: &ended})
	}
	config, err := json.Marshal(config.Config{Task: "Make the tests pass", Until: "go test ./...", Agent: "claude",
		Workspace: dir, MaxIterations: config.MaxIterationsCap})
	if err != nil {
		return err
	}
	_, err = s.CreateTree(b.ctx, perdure.TreeSpec{Kind: perdure.KindLoop, Name: "make-the-tests-pass", Config: config,
		InTx: l.InTx, Root: perdure.TaskSpec{Prompt: "Make the tests pass"}})
	return err
}
