package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/perdure/perdure"
)

// roleEnv makes the test binary run a role of a test instead of the tests: its name, and
// the store's folder.
const roleEnv = "PERDURE_E2E_ROLE"

// dsnEnv is the address of the store's database, when it is a server's.
const dsnEnv = "PERDURE_E2E_DSN"

// playRole runs the role of a child process.
func playRole(role string) error {
	name, dir, _ := strings.Cut(role, " ")
	cfg := perdure.Config{Dir: dir, DSN: os.Getenv(dsnEnv)}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch name {
	case "work":
		return onStore(ctx, cfg, func(ctx context.Context, s *perdure.Store) error { return work(ctx, s, 4) })
	case "steps":
		return onStore(ctx, cfg, recordSteps)
	case "execute":
		return onStore(ctx, cfg, execute)
	case "write":
		return onStore(ctx, cfg, writeSingly)
	case "hold":
		return onStore(ctx, cfg, hold)
	case "acknowledge":
		return workAndAcknowledge(ctx, dir)
	case "snapshots":
		return snapshotAndAcknowledge(ctx, dir)
	case "sloppy":
		return sloppy(ctx, dir)
	case "measure":
		return measure(dir)
	case "variables":
		return onStore(ctx, cfg, changeVariables)
	case "increment":
		return onStore(ctx, cfg, incrementVariable)
	default:
		return fmt.Errorf("no role %q", name)
	}
}

func onStore(ctx context.Context, cfg perdure.Config, do func(context.Context, *perdure.Store) error) error {
	s, err := perdure.Open(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, s), s.Close())
}

// execute runs one tree after another until it is interrupted. It prints "some"
// after the first, and in the end how many tasks that were; it does no single writes.
func execute(ctx context.Context, s *perdure.Store) error {
	ended := make(chan error, 1)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { ended <- work(working, s, 16) }()
	fmt.Fprintln(os.Stdout, "ready")
	sh, trees := shape{fan: 10, depth: 2}, 0
	err := func() error {
		for ctx.Err() == nil {
			tree, err := s.CreateTree(working, perdure.TreeSpec{Kind: kindShape, Root: perdure.TaskSpec{Prompt: sh.prompt()}})
			if err != nil {
				return err
			}
			if err := awaitEnd(ctx, s, tree.ID); err != nil {
				return err
			}
			if trees++; trees == 1 {
				fmt.Fprintln(os.Stdout, "some")
			}
		}
		return nil
	}()
	stop()
	fmt.Fprintln(os.Stdout, "did", trees*sh.nodes()+1, 0)
	return errors.Join(err, <-ended)
}

// awaitEnd waits until a tree is terminal, or ctx ends.
func awaitEnd(ctx context.Context, s *perdure.Store, id perdure.TreeID) error {
	for {
		changed := s.Changed()
		tree, err := s.Tree(context.WithoutCancel(ctx), id)
		if err != nil || tree.State.Terminal() {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// writeSingly does one write after another until it is interrupted. It prints
// "some" after ten, and in the end how many there were and the longest.
func writeSingly(ctx context.Context, s *perdure.Store) error {
	fmt.Fprintln(os.Stdout, "ready")
	n, longest := 0, time.Duration(0)
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := s.CreateTree(context.WithoutCancel(ctx), perdure.TreeSpec{Kind: "written"}); err != nil {
			return err
		}
		longest = max(longest, time.Since(begun))
		if n++; n == 10 {
			fmt.Fprintln(os.Stdout, "some")
		}
	}
	fmt.Fprintln(os.Stdout, "did", n, int64(longest))
	return nil
}

// hold claims a task, prints its process ID, and keeps the task.
func hold(ctx context.Context, s *perdure.Store) error {
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		return err
	}
	leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 1})
	if err != nil || len(leases) != 1 {
		return fmt.Errorf("claimed %d tasks: %w", len(leases), err)
	}
	fmt.Fprintln(os.Stdout, "held by", os.Getpid())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// acknowledge prints a durable fact, with one write.
func acknowledge(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "ACK "+format+"\n", args...)
}

// workAndAcknowledge runs operations of every kind and acknowledges each durable one:
// first one after another in a small store, then concurrently and so many that the log is
// checkpointed repeatedly.
func workAndAcknowledge(ctx context.Context, dir string) (err error) {
	s, err := perdure.Open(ctx, perdure.Config{Dir: dir, PollInterval: time.Millisecond})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	acknowledge("open")
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		return err
	}
	w := &witness{s: s, ss: ss}
	for i := range 4 {
		if err := w.tree(ctx, fmt.Sprint("small ", i)); err != nil {
			return err
		}
	}
	for i := range 3 {
		if err := w.burst(ctx, i); err != nil {
			return err
		}
		if err := logIsMoved(ctx, dir); err != nil {
			return err
		}
	}
	acknowledge("end")
	return nil
}

// witness works on a store and acknowledges durable facts.
type witness struct {
	s  *perdure.Store
	ss *perdure.Session
}

// burst runs large trees at once.
func (w *witness) burst(ctx context.Context, number int) error {
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			for n := range 2 {
				text := strings.Repeat(fmt.Sprint("large ", number, i, n), 30_000)
				if errs[i] = w.tree(ctx, text); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// logIsMoved checkpoints the whole log and waits until no reader uses it, so that the
// next write begins it again.
func logIsMoved(ctx context.Context, dir string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "perdure.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		var busy, log, moved int
		if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(RESTART)").Scan(&busy, &log, &moved); err != nil {
			return err
		}
		if busy == 0 && log == moved {
			return nil
		}
		<-tick.C
	}
}

// tree runs one tree from its creation to its end.
func (w *witness) tree(ctx context.Context, prompt string) error {
	pack, err := w.s.PutBlob(ctx, strings.NewReader("pack of "+prompt))
	if err != nil {
		return err
	}
	acknowledge("blob %s %d", pack.Hash, pack.Size)
	c, err := w.s.PutContext(ctx, perdure.ContextSpec{Pack: pack, Manifest: pack})
	if err != nil {
		return err
	}
	acknowledge("context %s", c.ID)
	tree, err := w.s.CreateTree(ctx,
		perdure.TreeSpec{Kind: "run", Contexts: []string{c.ID}, Root: perdure.TaskSpec{Prompt: prompt}})
	if err != nil {
		return err
	}
	acknowledge("tree %s", tree.ID)
	root, err := w.claim(ctx, tree)
	if err != nil {
		return err
	}
	ids, err := root.Spawn(ctx, []perdure.TaskSpec{{Prompt: prompt}, {Priority: -1}, {Priority: -2}})
	if err != nil {
		return err
	}
	for _, id := range ids {
		acknowledge("task %s", id)
	}
	for _, end := range []func(context.Context, *perdure.Lease, string) error{w.complete, w.fail, w.cancel, w.complete} {
		l, err := w.claim(ctx, tree)
		if err != nil {
			return err
		}
		if err := end(ctx, l, prompt); err != nil {
			return err
		}
	}
	return nil
}

func (w *witness) claim(ctx context.Context, tree perdure.Tree) (*perdure.Lease, error) {
	leases, err := w.ss.Claim(ctx, perdure.ClaimRequest{Max: 1, Trees: []perdure.TreeID{tree.ID}})
	if err != nil || len(leases) != 1 {
		return nil, fmt.Errorf("claimed %d tasks: %w", len(leases), err)
	}
	return leases[0], nil
}

func (w *witness) complete(ctx context.Context, l *perdure.Lease, text string) error {
	for i := range 2 {
		c, _, err := l.BeginCall(ctx, perdure.CallSpec{Position: i, Model: "m", RequestHash: "h"})
		if err != nil {
			return err
		}
		acknowledge("begun %s %s", l.Task.ID, c.ID)
		answer := fmt.Sprint("answer-", c.ID)
		if err := l.SettleCall(ctx, c.ID, perdure.CallResult{Response: answer, InputTokens: 3}); err != nil {
			return err
		}
		acknowledge("settled %s %s %s", l.Task.ID, c.ID, answer)
	}
	if l.Task.Depth == 0 && len(text) > 1000 && l.Task.ID%3 == 0 {
		text = strings.Repeat(text, 1+perdure.MaxPayloadBytes/len(text)) // for a blob
	}
	if err := l.Complete(ctx, perdure.Result{Text: text}); err != nil {
		return err
	}
	acknowledge("completed %s %d", l.Task.ID, len(text))
	return nil
}

func (w *witness) fail(ctx context.Context, l *perdure.Lease, text string) error {
	if len(text) > 1000 {
		text = strings.Repeat("output", perdure.MaxPayloadBytes/6)
	}
	if err := l.AppendOutput(ctx, text); err != nil {
		return err
	}
	acknowledge("output %s %d", l.Task.ID, len(text))
	if _, err := l.Fail(ctx, perdure.Failure{Kind: "test"}); err != nil {
		return err
	}
	acknowledge("failed %s", l.Task.ID)
	return nil
}

func (w *witness) cancel(ctx context.Context, l *perdure.Lease, _ string) error {
	if _, err := w.s.CancelTask(ctx, l.Task.ID, "enough"); err != nil {
		return err
	}
	acknowledge("cancelled %s", l.Task.ID)
	return nil
}

// sloppy makes a store, then writes to it as a program without flushes would.
func sloppy(ctx context.Context, dir string) error {
	s, err := perdure.Open(ctx, perdure.Config{Dir: dir})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "perdure.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	defer db.Close()
	for i := range 8 {
		id := fmt.Sprintf("ctx-%016d", i)
		_, err := db.ExecContext(ctx, `INSERT INTO context (id, pack, manifest, files, bytes, tokens, created_at) VALUES `+
			`($1, '', '', 0, 0, 0, 1)`, id)
		if err != nil {
			return err
		}
		acknowledge("context %s", id)
	}
	return nil
}

// measure is the small process of measured.
func measure(report string) error {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, roleEnv+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	_ = cmd.Run() // its status is what is wanted
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("no resource usage")
	}
	return os.WriteFile(report, fmt.Appendf(nil, "%d %d", cmd.ProcessState.ExitCode(), usage.Maxrss), 0o600)
}
