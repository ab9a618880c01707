package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// coder is a model that replies with one block of code, and then ends; it answers sub-calls
// after a delay.
type coder struct {
	code          string
	delay         time.Duration
	flying, peak  atomic.Int64
	first, second atomic.Int64 // when the code was sent, and when it had run, in nanoseconds
	// measure, when set, is called while the engine that has run the code is there.
	measure func()
}

// Resolve returns the model under any name.
func (c *coder) Resolve(string, rlm.ModelOptions) (model.Model, error) { return c, nil }

// Generate answers.
func (c *coder) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	text := "ok"
	switch {
	case strings.HasPrefix(req.Prompt, "q "):
		if n := c.flying.Add(1); n > c.peak.Load() {
			c.peak.Store(n)
		}
		defer c.flying.Add(-1)
		select {
		case <-time.After(c.delay):
		case <-ctx.Done():
			return nil, model.Canceled(ctx)
		}
	case len(req.Messages) == 0:
		c.first.Store(time.Now().UnixNano())
		text = "```repl\n" + c.code + "\n```"
	default:
		c.second.Store(time.Now().UnixNano())
		if c.measure != nil {
			c.measure()
		}
		text = "FINAL(done)"
	}
	return &model.Response{Text: text, Tries: 1, CostMicros: new(int64)}, nil
}

// replRun runs code, and returns how long the code took from the reply to the next request.
func (b *bench) replRun(s *perdure.Store, c *coder, slots int, contextID string) (time.Duration, error) {
	e, err := rlm.New(rlm.ExecutorConfig{Store: s, Resolver: c,
		Do: func(l, child *perdure.Lease) { b.worker.Do(l, child) }})
	if err != nil {
		return 0, err
	}
	config, err := json.Marshal(map[string]any{"planner": rlm.PlannerRepl, "model": "bench", "max_nodes": 100_000})
	if err == nil {
		err = workingRuns(b, s, slots, e, func() error {
			tree, err := e.Launch(b.ctx, rlm.LaunchRequest{Prompt: "Count.", Config: config, ContextID: contextID})
			if err != nil {
				return err
			}
			return waitForTree(b.ctx, s, tree.ID)
		})
	}
	return time.Duration(c.second.Load() - c.first.Load()), errors.Join(err, e.Close())
}

// waitForTree waits until a tree is completed. It looks now and then, as a client does: looking
// after each change would take a part of what is measured.
func waitForTree(ctx context.Context, s *perdure.Store, id perdure.TreeID) error {
	for {
		tree, err := s.Tree(ctx, id)
		switch {
		case err != nil || tree.State == perdure.Completed:
			return err
		case tree.State.Terminal():
			return fmt.Errorf("the tree is %s", tree.State)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// repl: sub-calls of the code of a REPL, one after another and in a batch.
func repl(b *bench, round int) error {
	const slots = 64
	n := cmp.Or(b.n, 1000)
	s, err := b.begin("repl")
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is written after the last result
	took, err := b.replRun(s, &coder{code: fmt.Sprintf("for i in range(%d): llm_query('q %%d' %% i)", n)}, slots, "")
	if err != nil {
		return err
	}
	each := took.Seconds() * 1000 / float64(n)
	err = b.print("repl", "sub-calls one after another, answered at once", round, map[string]any{"calls": n,
		"ms_each": rounded(each), "flushes_of_f": rounded(each / 1000 * b.f)})
	if err != nil {
		return err
	}
	batch := &coder{delay: 100 * time.Millisecond,
		code: fmt.Sprintf("r = llm_query_batched(['q %%d' %% i for i in range(%d)])", n)}
	if took, err = b.replRun(s, batch, slots, ""); err != nil {
		return err
	}
	err = b.print("repl", "one batch at concurrency 64, answered after 100 ms", round, map[string]any{"calls": n,
		"s": rounded(took.Seconds()), "peak_in_flight": batch.peak.Load(),
		"mean_in_flight": rounded(float64(n) * batch.delay.Seconds() / took.Seconds())})
	if err != nil {
		return err
	}
	for _, next := range []func(int) error{b.replLog, b.replStart, b.replLarge} {
		if err := next(round); err != nil {
			return err
		}
	}
	return nil
}

// replLog: what a run keeps that asks about its whole context once.
func (b *bench) replLog(round int) error {
	const size = 20 << 20
	s, err := b.open("repl-log")
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it is closed twice
	path := filepath.Join(b.dir, "context.txt")
	if err := os.WriteFile(path, mixedLines(size), 0o600); err != nil {
		return err
	}
	c, err := rlm.PutContext(b.ctx, s, b.dir, "context.txt")
	if err != nil {
		return err
	}
	code := "n = 50_000\nparts = [context[i:i + n] for i in range(0, len(context), n)]\n" +
		"r = llm_query_batched(['q ' + p for p in parts])\nprint(len(r))"
	if _, err := b.replRun(s, &coder{code: code}, 8, c.ID); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	kept, err := sizeOfFolder(filepath.Join(b.dir, "repl-log"))
	if err != nil {
		return err
	}
	return b.print("repl", "the store of a run whose code asks about all of its context in 50,000 "+
		"characters each", round,
		map[string]any{"context_mb": size / 1e6, "store_mb": rounded(float64(kept) / 1e6),
			"ratio": rounded(float64(kept) / size)})
}

// mixedLines are lines of text of which no two are the same.
func mixedLines(size int) []byte {
	out := make([]byte, 0, size+100)
	for i := 0; len(out) < size; i++ {
		out = fmt.Appendf(out, "2026-%02d-%02d user%03d: order %d was %s by clerk %d of the "+
			"hall\n", i%12+1, i%28+1, i*7919%500,
			i*104729%1_000_003, []string{"received", "refused", "paid", "lost"}[i*31%4], i*13%97)
	}
	return out[:size]
}

func sizeOfFolder(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
