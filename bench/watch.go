package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/watch"
)

// watching is how long a view is measured.
const watching = 15 * time.Second

// watchTree measures the full-screen view of a large tree in a process of its
// own: first while the tree runs as fast as it can, then when it has ended.
func watchTree(b *bench, round int) error {
	n := cmp.Or(b.n, 100_000)
	s, err := b.open("watch")
	if err != nil {
		return err
	}
	defer s.Close()
	begun := make(chan perdure.TreeID, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := grown(b, s, n, begun)
		ended <- err
	}()
	id := <-begun
	for p := (perdure.Progress{}); p.Total < int64(n); { // the tree grows first, then its leaves run
		changed := s.Changed()
		if p, err = s.Progress(b.ctx, id); err != nil {
			return err
		}
		select {
		case <-changed:
		case err := <-ended:
			return errors.Join(err, errors.New("the tree ended before it was watched"))
		}
	}
	before, err := s.Progress(b.ctx, id)
	if err != nil {
		return err
	}
	if err := b.watched(id, "a tree that runs", n, round, func() float64 {
		p, err := s.Progress(b.ctx, id)
		if err != nil {
			return 0
		}
		return rounded(float64(p.Completed-before.Completed) / watching.Seconds())
	}); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	return b.watched(id, "a tree that has ended", n, round, func() float64 { return 0 })
}

// watched runs the view for a while.
func (b *bench) watched(id perdure.TreeID, what string, n, round int, rate func() float64) error {
	values, cpu, err := b.valuesOf("watch-child", string(id))
	if err != nil {
		return err
	}
	values["tasks"], values["completed_per_s"] = n, rate()
	values["cpu_percent_of_one_core"] = rounded(100 * cpu.Seconds() / watching.Seconds())
	return b.print("watch", "perdure watch of "+what+", 100 by 40 cells, in a process of its own, start included", round,
		values)
}

// watchChild is the process that watches. Its store is opened as the command
// does.
func watchChild(b *bench, _ int) error {
	if len(b.args) != 1 {
		return errors.New("name a tree")
	}
	begin := time.Now()
	s, err := b.open("watch")
	if err != nil {
		return err
	}
	defer s.Close()
	c, stop, err := inProcess(s)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(b.ctx, watching)
	defer cancel()
	in, keep := io.Pipe()
	defer keep.Close()
	screen := &firstScreen{begin: begin, want: []byte("task-0002")}
	err = watch.Run(ctx, watch.Config{Client: c, Tree: perdure.TreeID(b.args[0]), Input: in, Output: screen,
		Width: 100, Height: 40, Environ: []string{"TERM=xterm-256color"}, Color: true})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"first_screen_s": rounded(screen.took.Seconds()),
		"written_bytes": screen.bytes, "rss_mib": rss()})
}

// firstScreen is a terminal that notes when it saw a text first.
type firstScreen struct {
	begin time.Time
	want  []byte
	seen  []byte
	took  time.Duration
	bytes int
}

// Write looks for the text.
func (f *firstScreen) Write(p []byte) (int, error) {
	f.bytes += len(p)
	if f.took == 0 {
		if f.seen = append(f.seen, p...); bytes.Contains(f.seen, f.want) {
			f.took = time.Since(f.begin)
		}
	}
	return len(p), nil
}
