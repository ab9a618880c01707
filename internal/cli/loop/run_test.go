package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/cli/env"
	settings "github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// fixes is an agent that makes the failing test pass in one turn.
func fixes(in int) func(dir string, n int) error {
	return func(dir string, n int) error {
		if n < in {
			return os.WriteFile(filepath.Join(dir, fmt.Sprint("try", n)), nil, 0o600)
		}
		return os.WriteFile(filepath.Join(dir, "tests", "b"), []byte("pass"), 0o600)
	}
}

// cheats is an agent that deletes a test.
func cheats(dir string, _ int) error { return os.Remove(filepath.Join(dir, "tests", "a")) }

// Flags override the settings, and the names of the given ones are kept.
func TestRunTakesSettings(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.ok("run", "Fix it", "--until", check, "--detach", "--json", "--timeout", "1h", "--keep-last", "--select",
		"highest_quality", "--idle-timeout", "0s")
	row, cfg := p.last()
	want := config.Config{Task: "Fix it", Until: check, Workspace: p.dir, Agent: "settled", MaxIterations: 7,
		Timeout: time.Hour, IdleTimeout: -1, CheckTimeout: 3 * time.Minute, MaxRetries: 4, QualityThreshold: 5,
		KeepLast: true, Selection: config.HighestQuality, Detection: config.DetectionStandard, StandardFrom: 3,
		AggressiveFrom: 5, PlateauPercent: 5, SnapshotRisky: "all", DetectionBudget: 500 * time.Millisecond,
		OverheadPercent: 10, MutationPercent: 20, HeldOutGap: 20, Approver: perdure.ApproverAny,
		Permission: agent.PermissionEdits, Given: []string{"until", "timeout", "idle_timeout", "selection", "keep_last"}}
	want.Measures, want.Reinforcement = cfg.Measures, cfg.Reinforcement
	want.Sealed = config.SealCompletion
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Error(diff)
	}
	var said struct {
		Loop string         `json:"loop_id"`
		Tree perdure.TreeID `json:"tree_id"`
	}
	if err := json.Unmarshal([]byte(p.out.take()), &said); err != nil || said.Tree != row.Tree ||
		!strings.HasPrefix(said.Loop, "fix-it-") {
		t.Errorf("it says %+v, %v", said, err)
	}
	p.says(said.Loop, "`perdure loop status "+said.Loop)
}

// A flag of 0 or false overrides the settings.
func TestRunTakesZeros(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.set(map[string]any{"best_output": false, "enabled": false, "require_verification": true,
		"auto_escalate_on_critical": false, "detection_latency_budget": "1s"})
	p.ok("run", "Fix it", "--until", check, "--detach", "--max-retries", "0", "--quality-threshold", "0",
		"--keep-last=false", "--plain=false", "--workspace", "tests")
	_, cfg := p.last()
	if cfg.MaxRetries != -1 || cfg.QualityThreshold != -1 || cfg.KeepLast || cfg.Plain || !cfg.RequireVerification ||
		!cfg.RetryCritical || cfg.DetectionBudget != time.Second ||
		cfg.Workspace != filepath.Join(p.dir, "tests") {
		t.Errorf("it is to do %+v", cfg)
	}
}

// Bad input is refused before a store is created.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.Opener = func(context.Context, *settings.Loaded, env.Purpose) (*env.Backend, error) {
		t.Error("a store is opened")
		return nil, errors.New("no store")
	}
	p.refuses(perdure.CodeInvalid, "--until required", "run", "x")
	p.refuses(perdure.CodeInvalid, "task is missing", "run", " ", "--until", "true")
	p.refuses(perdure.CodeInvalid, "must be one of highest_quality_verified", "run", "x",
		"--until", "true", "--select", "luckiest")
	p.refuses(perdure.CodeInvalid, "--max-iterations is 10001", "run", "x", "--until", "true", "--max-iterations", "10001")
	p.refuses(perdure.CodeInvalid, "--model is \"opus\", but the agent is a program", "run", "x", "--until", "true",
		"--agent", "exec:sh agent.sh", "--model", "opus")
	p.refuses("", "takes one task, got 0", "run", "--until", "true")
	p.refuses("", "none of the others can be", "run", "x", "--until", "true", "--detach", "--no-wait")
	p.set(map[string]any{"agent": ""})
	p.refuses(perdure.CodeInvalid, "--agent required", "run", "x", "--until", "true")
}

// A long task is read from standard input.
func TestRunTaskFromInput(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.Stdin = strings.NewReader("# Fix it\n\nAll of it.\n")
	p.ok("run", "-", "--until", check, "--detach")
	if _, cfg := p.last(); cfg.Task != "# Fix it\n\nAll of it." {
		t.Errorf("the task is %q", cfg.Task)
	}
	p.Stdin = strings.NewReader(strings.Repeat("x", config.MaxTaskBytes+1))
	p.refuses(perdure.CodeInvalid, "task has 262145 bytes, the limit is 262144", "run", "-", "--until", check)
	p.Stdin = strings.NewReader("\n")
	p.refuses(perdure.CodeInvalid, "task is missing", "run", "-", "--until", check)
}

// A loop that this process runs is followed to its end.
func TestRunToTheEnd(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(2))
	p.ok("run", "Fix \x1b[2Jit", "--until", check)
	p.says("fix-2jit-", "snapshot of 2 files", "iteration 1: settled",
		"iteration 1: check fails (1 test), quality", "iteration 2: check passes, quality 100%")
	if got := p.out.take(); !strings.HasPrefix(got, "completed: the check passes after iteration 2") {
		t.Errorf("it ends with %q", got)
	}
	p.ends(env.StatusFailed, "run", "Again", "--until", "false", "--max-iterations", "1", "--json")
	var state struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(p.out.take()), &state); err != nil || state.Status != "failed" {
		t.Errorf("the state is %+v, %v", state, err)
	}
	p.refuses(perdure.CodeConflict, "has ended: failed after 1 iteration", "resume")
}

// With --no-wait, a gate ends the command; the loop continues after the answer.
func TestGateIsAnswered(t *testing.T) {
	t.Parallel()
	p := newProgram(t, cheats)
	p.refuses(perdure.CodeNotFound, "perdure loop run", "answer", "approve")
	p.ends(env.StatusGate, "run", "Cheat", "--until", check, "--no-wait")
	if out := p.out.take(); out != "waiting at gate 1\n" {
		t.Errorf("the result is %q", out)
	}
	p.says("test_deletion", "perdure loop answer reject --loop cheat-")
	p.refuses(perdure.CodeInvalid, "possible answers: ", "answer", "perhaps")
	p.refuses(perdure.CodeNotFound, "there is no gate 2", "answer", "abort", "--gate", "2")
	p.refuses(perdure.CodeInvalid, `"x y"`, "answer", "abort", "--loop", "x y")
	p.ok("answer", "abort", "--reason", "no", "--json")
	row, _ := p.last()
	gates, err := p.client.Gates(t.Context(), row.Tree)
	if err != nil || len(gates) != 1 || gates[0].Answer != "abort" || gates[0].AnsweredBy != env.User() ||
		gates[0].Reason != "no" {
		t.Errorf("gates %+v, %v", gates, err)
	}
	id := string(row.Tree)[len("tree-"):]
	p.refuses(perdure.CodeNotFound, "gate 1 is answered: abort", "answer", "reject", "--gate", "1", "--loop", "cheat-"+id)
	p.out.take()
	p.ends(env.StatusIncomplete, "resume")
	if got := p.out.take(); !strings.HasPrefix(got, "aborted: gate 1 was answered with abort") {
		t.Errorf("it ends with %q", got)
	}
}

// The user is asked at the terminal, again after an unknown answer.
func TestGateAtTheTerminal(t *testing.T) {
	t.Parallel()
	p := newProgram(t, cheats)
	p.set(map[string]any{"notify": map[string]any{"desktop": true}})
	p.Terminal, p.Stdin = terminal, strings.NewReader("\nwhatever\nabort it cheats\n")
	p.ends(env.StatusIncomplete, "run", "Cheat", "--until", check)
	p.says("answer: ", "possible answers: ", "\a")
	row, _ := p.last()
	gates, err := p.client.Gates(t.Context(), row.Tree)
	if err != nil || len(gates) != 1 || gates[0].Answer != "abort" || gates[0].Reason != "it cheats" {
		t.Errorf("gates %+v, %v", gates, err)
	}
}

// Resume applies and prints changes; invalid ones change nothing.
func TestResumeChanges(t *testing.T) {
	t.Parallel()
	var p *program
	p = newProgram(t, func(dir string, n int) error {
		if n == 1 {
			row, _ := p.last()
			_, err := p.client.AskLoop(p.Context(), row.Tree, record.Pause)
			return errors.Join(err, fixes(2)(dir, n))
		}
		return fixes(2)(dir, n)
	})
	p.ends(env.StatusIncomplete, "run", "Fix it", "--until", check, "--max-retries", "2")
	p.says("paused: asked to", "perdure loop resume fix-it-")
	p.refuses(perdure.CodeInvalid, `there is no agent "nobody"`, "resume", "--agent", "nobody")
	p.refuses(perdure.CodeInvalid, "max_iterations is -1", "resume", "--max-iterations", "-1")
	p.refuses("", "until cannot be changed", "resume", "--until", "true")
	if _, cfg := p.last(); cfg.MaxIterations != 7 {
		t.Errorf("a refused change is there: %+v", cfg)
	}
	p.errs.take()
	p.set(map[string]any{"max_iterations": 9, "max_retries": 8})
	p.ok("resume", "--gate-timeout", "90m", "--unattended")
	p.says("perdure: max_iterations 7 -> 9, unattended false -> true, gate_timeout none -> 1h30m\n",
		"iteration 2: check passes")
}

// Pause and abort print how to continue.
func TestPauseAndAbort(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.ok("run", "Fix it", "--until", check, "--detach")
	p.ok("pause", "--now")
	if row, _ := p.last(); row.Control != record.PauseNow {
		t.Errorf("the wish is %q", row.Control)
	}
	p.says("`perdure loop resume fix-it-")
	p.refuses("", "none of the others can be", "abort", "--revert", "--keep")
	p.out.take()
	p.ok("abort", "--revert")
	if got := p.out.take(); !strings.HasPrefix(got, "aborted: the files from before the loop were restored") {
		t.Errorf("it ends with %q", got)
	}
	p.refuses(perdure.CodeConflict, "has ended", "pause")
}
