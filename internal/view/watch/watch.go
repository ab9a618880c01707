// Package watch is the full-screen view of trees while they run: their tasks to
// fold and unfold, cost, time left, and the log of events.
//
// Its cost does not depend on the size of a tree. Rows are loaded when they come
// into sight, in pages; a look at the tree asks for its counters, the newest
// events and the rows in sight, one look after the other and never for more
// than a twentieth of the time; the screen is drawn when something changed.
package watch

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Config says what to show and where.
type Config struct {
	// Client is required.
	Client *client.Client
	// Tree is shown at first; empty shows the list of trees.
	Tree perdure.TreeID
	// Input and Output are the terminal's; required by Run.
	Input  io.Reader
	Output io.Writer
	// Width and Height are the size of the screen in cells where Output is no
	// terminal that knows it.
	Width, Height int
	// Environ has TERM and its like.
	Environ []string
	// Color: the user wants colours.
	Color bool
	// Daemon: a daemon runs what is retried.
	Daemon bool
	// Every is the least time between two looks at the store. 0: 500 ms.
	Every time.Duration
}

const (
	defaultEvery = 500 * time.Millisecond
	// framesPerSecond bounds how often the screen is drawn.
	framesPerSecond = 15
	// idleShare: a look that took a while is followed by so many times that.
	idleShare = 20
)

// Run shows the view until the user leaves it (then it returns nil) or ctx ends
// (then its error). Everything it started has ended when it returns.
func Run(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, cfg)
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(cfg.Input), tea.WithOutput(cfg.Output),
		tea.WithEnvironment(cfg.Environ), tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond)}
	if cfg.Width > 0 && cfg.Height > 0 {
		options = append(options, tea.WithWindowSize(cfg.Width, cfg.Height))
	}
	p := tea.NewProgram(m, options...)
	_, err := p.Run()
	if cause := ctx.Err(); cause != nil && errors.Is(err, tea.ErrProgramKilled) {
		err = cause
	}
	cancel()
	m.requests.close()
	return err
}

// requests are the requests under way. They end before the view does, because
// what answers them may be closed then.
type requests struct {
	mu     sync.Mutex // guards closed, and Add against Wait
	closed bool
	wg     sync.WaitGroup
}

// begin counts a request; false when it is too late for one.
func (r *requests) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.wg.Add(1)
	return true
}

func (r *requests) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wg.Wait()
}
