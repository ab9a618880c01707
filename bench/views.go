package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/view/export"
)

// grown makes a tree of about n tasks in three levels that ended, each leaf
// with a priced call. The leaves run when all tasks are there. It says which tree
// it is when it begins, to begun if that is not nil.
func grown(b *bench, s *perdure.Store, n int, begun chan<- perdure.TreeID) (perdure.Tree, error) {
	width := 1
	for width*width+width < n {
		width++
	}
	root := make([]perdure.TaskSpec, width)
	leaves := make([]perdure.TaskSpec, width)
	for i := range width {
		root[i].Priority = 1
		root[i].Prompt = fmt.Sprintf("[branch %d of %d] %s", i+1, width, prompt)
		leaves[i].Prompt = fmt.Sprintf("[part %d of %d] %s", i+1, width, prompt)
	}
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		t := &l.Task
		switch {
		case t.Attempts == 1 && t.Depth < 2 && l.Fence() == 1:
			specs := leaves
			if t.Depth == 0 {
				specs = root
			}
			_, err := l.Spawn(ctx, specs)
			return err
		case t.Depth == 2:
			if err := priced(ctx, l); err != nil {
				return err
			}
		}
		return complete(ctx, l)
	})
	made := int64(1 + width + width*width)
	tree, err := create(b, s)
	if err != nil {
		return tree, err
	}
	if begun != nil {
		begun <- tree.ID
	}
	return tree, working(b, s, 64, h, func() error { return waitFor(b, s, tree.ID, made) })
}

// priced makes a call of a leaf.
func priced(ctx context.Context, l *perdure.Lease) error {
	name := fmt.Sprintf("openai:model-%d", l.Task.ID%3)
	c, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: name, RequestHash: "bench"})
	if err != nil {
		return err
	}
	cost := int64(120)
	return l.SettleCall(ctx, c.ID, perdure.CallResult{Response: "an answer", Tries: 1, InputTokens: 800,
		OutputTokens: 120, CostMicros: &cost})
}

// inProcess is a client of a store's API in this process.
func inProcess(s *perdure.Store) (*client.Client, func(), error) {
	transport := &inproc.Transport{Handler: server.New(server.Config{Store: s})}
	c, err := client.New(client.Config{Transport: transport})
	return c, transport.Close, err
}

// views measures what people look at, over a large tree.
func views(b *bench, round int) error {
	n := cmp.Or(b.n, 100_000)
	s, err := b.open("views")
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := grown(b, s, n, nil)
	if err != nil {
		return err
	}
	c, stop, err := inProcess(s)
	if err != nil {
		return err
	}
	defer stop()
	rows := func(q client.OutlineQuery) func() (map[string]any, error) {
		return func() (map[string]any, error) {
			rows, err := c.Outline(b.ctx, q)
			return map[string]any{"rows": len(rows)}, err
		}
	}
	for _, m := range []struct {
		name, workload string
		do             func() (map[string]any, error)
	}{
		{"survey", "report of one tree as data, in process", func() (map[string]any, error) {
			r, err := c.Report(b.ctx, tree.ID)
			raw, _ := json.Marshal(r) // decoded just now
			return map[string]any{"bytes": len(raw)}, err
		}},
		{"outline", "first page of 100 rows below the root", rows(client.OutlineQuery{Tree: tree.ID, Parent: tree.Root})},
		{"find", "search of a text that no task has", rows(client.OutlineQuery{Tree: tree.ID, Text: "no task has it"})},
		{"export", "export of one tree to nowhere", func() (map[string]any, error) {
			return map[string]any{}, export.Write(b.ctx, s, io.Discard, export.Config{Tree: tree.ID})
		}},
	} {
		start := time.Now()
		values, err := m.do()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		values["wall_s"], values["tasks"], values["rss_mib"] = rounded(time.Since(start).Seconds()), n, rss()
		if err := b.print(m.name, m.workload, round, values); err != nil {
			return err
		}
	}
	return nil
}
