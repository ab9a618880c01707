package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/process/guard"
)

// VerifyConfig configures [Recorder.Verify].
type VerifyConfig struct {
	// ContractFile is the file with the contract. Defaults to the one that is recorded, or else
	// to the usual files.
	ContractFile string
	// Deferred runs the deferred criteria, too.
	Deferred bool
	// Timeout is the limit of each command. Defaults to 10 minutes.
	Timeout time.Duration
	// Output receives the output of the commands; nil discards it.
	Output io.Writer
	// Began is called before each command; can be nil.
	Began func(handoff.Criterion)
	// Dir is the working folder of the commands. Defaults to the root of the work.
	Dir string
}

// Verification is the result of a contract.
type Verification struct {
	Contract *handoff.Contract
	// Results are the results of the criteria with commands.
	Results []handoff.Result
	// Open are the criteria without a command, which an agent or a person checks.
	Open []handoff.Criterion
	*Update
}

// Passed reports whether every criterion that was run passed and none is open. A verifiable
// contract of which no criterion was run has not passed.
func (v *Verification) Passed() bool {
	for _, r := range v.Results {
		if r.Status != handoff.StatusPassed {
			return false
		}
	}
	return len(v.Open) == 0 && (len(v.Results) > 0 || v.Contract.Type != handoff.Verifiable)
}

// Verify runs the criteria of the work's contract that have commands, and
// records their results as run by the engine. A contract that cannot be found is
// an error, never passed.
func (r *Recorder) Verify(ctx context.Context, cfg VerifyConfig) (*Verification, error) {
	view, err := r.Look(ctx)
	if err != nil {
		return nil, err
	}
	if !view.Open() {
		return nil, view.Nothing("verify work")
	}
	contract, err := r.contract(view, cfg.ContractFile)
	if err != nil {
		return nil, err
	}
	out := &Verification{Contract: contract}
	cfg.Timeout, cfg.Dir = cmp.Or(cfg.Timeout, 10*time.Minute), cmp.Or(cfg.Dir, r.Location.Root)
	var ops []Op
	for i, c := range contract.Criteria {
		if c.Timing == handoff.Deferred && !cfg.Deferred {
			continue
		}
		if len(c.Command) == 0 {
			out.Open = append(out.Open, c)
			continue
		}
		status, err := cfg.run(ctx, c)
		if err != nil {
			return nil, err
		}
		op := Op{Kind: OpVerify, Text: activity(c, i), Status: status, RanBy: handoff.RanByEngine}
		out.Results = append(out.Results, handoff.Result{Activity: op.Text, Status: status, RanBy: op.RanBy,
			RunAt: time.Now().UTC()})
		ops = append(ops, op)
	}
	out.Update, err = r.locked(ctx, ops) // not Apply: agents cannot record results of the engine
	return out, err
}

// activity returns a name of a criterion, also for one without a name.
func activity(c handoff.Criterion, i int) string {
	for _, name := range []string{c.Activity, c.Description, c.Pattern} {
		if strings.TrimSpace(name) != "" {
			return name
		}
	}
	return fmt.Sprintf("criterion %d", i+1)
}

// run runs the command of a criterion. Its exit status is the result; a command
// that cannot be started or takes too long has failed.
func (cfg *VerifyConfig) run(ctx context.Context, c handoff.Criterion) (handoff.Status, error) {
	if cfg.Began != nil {
		cfg.Began(c)
	}
	path, args := c.Command[0], c.Command[1:]
	if c.Command.Shell() {
		path, args = "/bin/sh", []string{"-c", c.Command[0]}
		if runtime.GOOS == "windows" {
			path, args = "cmd", []string{"/c", c.Command[0]}
		}
	}
	limited, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	err := guard.Run(limited, guard.Config{Path: path, Args: args, Dir: cfg.Dir, Stdout: cfg.Output, Stderr: cfg.Output})
	switch {
	case ctx.Err() != nil:
		return "", &perdure.Error{Code: perdure.CodeCanceled, Op: "verify work", Err: context.Cause(ctx)}
	case errors.Is(err, guard.ErrNotEntered):
		return "", err
	case err != nil && cfg.Output != nil:
		_, _ = fmt.Fprintf(cfg.Output, "%v\n", err)
	}
	if err != nil {
		return handoff.StatusFailed, nil
	}
	return handoff.StatusPassed, nil
}
