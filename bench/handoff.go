package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
)

const (
	// handoffTasks share the updates, so that a ledger stays at about
	// handoffEntries.
	handoffTasks   = 20
	handoffEntries = 1000
	// The task for which the overhead is computed: its duration and steps.
	taskTime  = time.Minute
	taskSteps = 10
)

// handoffs: updates of a ledger of 1,000 entries, each a process of its own, by turns with
// `perdure version` of the same program; then the same through a daemon.
func handoffs(b *bench, round int) error {
	n := cmp.Or(b.n, 1000)
	dir := filepath.Join(b.dir, fmt.Sprintf("handoff-%d", round))
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // measured and done with
	program, err := b.program(dir)
	if err != nil {
		return err
	}
	workload := "a step with a file, by a process of its own, outside of a repository"
	if err := exec.CommandContext(b.ctx, "git", "init", "-q", dir).Run(); err == nil {
		workload = "a step with a file, by a process of its own, in a git repository"
	}
	if err := b.fillLedgers(dir); err != nil {
		return err
	}
	if err := b.disk(); err != nil {
		return err
	}
	local, err := b.updates(dir, program, n)
	if err != nil {
		return err
	}
	stop, err := b.serve(dir, program)
	if err != nil {
		return err
	}
	served, err := b.updates(dir, program, n)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	var total time.Duration
	for _, took := range local.steps {
		total += took
	}
	share := float64(total) / float64(n) * taskSteps / float64(taskTime) * 100
	for _, w := range []struct {
		name, workload string
		took           []time.Duration
		more           map[string]any
	}{
		{"handoff-update", workload, local.steps,
			map[string]any{"overhead_percent_of_60_s_with_10_steps": rounded(share)}},
		{"handoff-update-without-files", "a decision, by a process of its own", local.decisions, nil},
		{"handoff-version", "perdure version of the same program, by turns with the updates", local.starts, nil},
		{"handoff-update-daemon", workload + ", through a daemon", served.steps, nil},
		{"handoff-update-daemon-without-files", "a decision, by a process of its own, through a daemon", served.decisions,
			nil},
		{"handoff-version-daemon", "perdure version, by turns with them", served.starts, nil},
	} {
		values := map[string]any{"processes": n, "entries": handoffEntries}
		maps.Copy(values, w.more)
		quantiles(w.took, values)
		if err := b.print(w.name, w.workload, round, values); err != nil {
			return err
		}
	}
	return nil
}

// updated is how long each process took.
type updated struct{ steps, decisions, starts []time.Duration }

// updates runs version, a step and a decision by turns, after one of each for all tasks: the first
// command reads a long ledger as a whole.
func (b *bench) updates(dir, program string, n int) (u updated, err error) {
	for i := -handoffTasks; i < n; i++ {
		task := fmt.Sprintf("adhoc:%d", (i+handoffTasks)%handoffTasks)
		for _, c := range []struct {
			to   *[]time.Duration
			args []string
		}{
			{&u.starts, []string{"version"}},
			{&u.steps, []string{"handoff", "step", "--task", task, fmt.Sprintf("Ported part %d of the parser", i),
				"--modified", fmt.Sprintf("src/%d.go", max(i, 0)%100)}},
			{&u.decisions, []string{"handoff", "decide", "--task", task, "Keep the old names", "--because", "callers use them"}},
		} {
			took, _, err := b.process(dir, program, c.args...)
			if err != nil {
				return u, err
			}
			if i >= 0 {
				*c.to = append(*c.to, took)
			}
		}
	}
	return u, nil
}

// serve starts a daemon and returns when it listens; stop ends it.
func (b *bench) serve(dir, program string) (stop func() error, err error) {
	cmd := b.command(dir, program, "serve")
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "listening") {
			return func() error {
				err := cmd.Process.Signal(os.Interrupt)
				_, _ = io.Copy(io.Discard, out) // until it has ended
				return errors.Join(err, cmd.Wait())
			}, nil
		}
	}
	return nil, errors.Join(errors.New("the daemon ended before it listened"), lines.Err(), cmd.Wait())
}

func (b *bench) command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PERDURE_DIR="+filepath.Join(dir, ".perdure"), "PERDURE_STORE="+b.dsn,
		"PERDURE_HANDOFF_TOKEN=")
	return cmd
}

// process runs the program once and returns how long it took, its start included, and the
// most memory that it had in KiB.
func (b *bench) process(dir, program string, args ...string) (took time.Duration, kib int64, err error) {
	cmd := b.command(dir, program, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%v: %w: %s", args, err, errs.String())
	}
	return time.Since(start), maxRSS(cmd.ProcessState), nil
}

// fillLedgers gives each of the tasks a ledger of steps, decisions and what
// comes with them, and the folder the files that they touch.
func (b *bench) fillLedgers(dir string) error {
	var items []string
	for i := range handoffTasks {
		items = append(items, fmt.Sprintf(`{"id": "%d", "description": "Port the parser"}`, i))
	}
	file := filepath.Join(dir, handoff.FileName)
	errs := []error{os.WriteFile(file, []byte(`{"adhocQueue": [`+strings.Join(items, ",\n")+"]}\n"), 0o600)}
	for i := range 100 {
		errs = append(errs, os.WriteFile(filepath.Join(dir, "src", fmt.Sprintf("%d.go", i)),
			[]byte(strings.Repeat("package src\n", 500)), 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s, err := perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(dir, ".perdure"), DSN: b.dsn})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range handoffTasks {
		r := ledger.New(ledger.Config{Ledgers: ledger.NewStore(s), Location: handoff.Location{File: file, Root: dir},
			Folder: dir,
			Place:  handoff.Adhoc(fmt.Sprint(i)), Agent: "bench"})
		const batch = 100
		for first := 0; first < handoffEntries; first += batch {
			if _, err := r.Apply(b.ctx, ledgerOps(first, batch)...); err != nil {
				return err
			}
		}
	}
	return nil
}

func ledgerOps(first, n int) []ledger.Op {
	var ops []ledger.Op
	for i := first; i < first+n; i++ {
		switch i % 4 {
		case 0:
			ops = append(ops, ledger.Op{Kind: ledger.OpDecide, Text: fmt.Sprintf("Decision %d of the port", i),
				Because: "it keeps the callers as they are"})
		case 1:
			ops = append(ops, ledger.Op{Kind: ledger.OpCurrent, Text: fmt.Sprintf("Port part %d of the parser", i),
				Partial: "the table is done"})
		default:
			ops = append(ops, ledger.Op{Kind: ledger.OpStep, Text: fmt.Sprintf("Ported part %d of the parser", i),
				Modified: []string{fmt.Sprintf("src/%d.go", i%100)}})
		}
	}
	return ops
}
