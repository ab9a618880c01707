package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/perdure/perdure"
)

// roleEnv makes the test binary play a part in a test instead of running tests:
// the name of the role, and the store's folder.
const roleEnv = "PERDURE_E2E_ROLE"

// playRole does what a child process of a test is for.
func playRole(role string) error {
	name, dir, _ := strings.Cut(role, " ")
	ctx := context.Background()
	switch name {
	case "acknowledge":
		return workAndAcknowledge(ctx, dir)
	case "sloppy":
		return sloppy(ctx, dir)
	default:
		return fmt.Errorf("no role %q", name)
	}
}

// acknowledge tells a fact that is durable, with one write.
func acknowledge(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "ACK "+format+"\n", args...)
}

// workAndAcknowledge does a bit of everything and tells each thing that is
// durable: first in a small store and one after another, then several at once
// and so much that the log is moved into the database again and again.
func workAndAcknowledge(ctx context.Context, dir string) (err error) {
	s, err := perdure.Open(ctx, perdure.Config{Dir: dir, LookEvery: time.Millisecond})
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

// witness works on a store and tells what is durable.
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

// logIsMoved moves all of the log into the database, so that the next
// write begins it anew.
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
		if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &log, &moved); err != nil {
			return err
		}
		if log == moved {
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
	tree, err := w.s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Contexts: []string{c.ID}, Root: perdure.TaskSpec{Prompt: prompt}})
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
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "perdure.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	defer db.Close()
	for i := range 8 {
		id := fmt.Sprintf("ctx-%016d", i)
		_, err := db.ExecContext(ctx, `INSERT INTO context (id, pack, manifest, files, bytes, tokens, created_at) VALUES ($1, '', '', 0, 0, 0, 1)`, id)
		if err != nil {
			return err
		}
		acknowledge("context %s", id)
	}
	return nil
}
