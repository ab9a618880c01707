package loop

import (
	"context"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// maxTaken is how much of an agent's output one turn leaves, in bytes; then it
	// says restLeftOut and nothing more.
	maxTaken    = 4 << 20
	restLeftOut = "[the rest of the output is left out]"
	// maxPart is how much of it is written at once, in bytes.
	maxPart = 256 << 10
)

// output writes the messages of an agent to its task while the agent continues: each
// write flushes the disk, and an agent with many lines would wait for it. Messages that
// arrive during a write go into the next one. It is safe for concurrent use.
type output struct {
	write func(text string) error

	mu      sync.Mutex // guards what follows
	pending strings.Builder
	taken   int // bytes
	closed  bool
	wake    chan struct{} // has a token when text is pending or the output is closed
	done    chan struct{}
}

// newOutput starts an output, which has to be closed.
func newOutput(write func(text string) error) *output {
	o := &output{write: write, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// say adds a line.
func (o *output) say(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text == "" || o.taken > maxTaken || o.closed {
		return
	}
	if o.taken += len(text) + 1; o.taken > maxTaken {
		text = clip.Bytes(text, maxPart) + "\n" + restLeftOut
	}
	o.pending.WriteString(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD") + "\n")
	o.rouse()
}

func (o *output) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close waits until everything is written.
func (o *output) close() {
	o.mu.Lock()
	o.closed = true
	o.rouse()
	o.mu.Unlock()
	<-o.done
}

func (o *output) run() {
	defer close(o.done)
	for range o.wake {
		text, closed := o.take()
		for text != "" {
			part := clip.Prefix(text, maxPart)
			if o.write(part) != nil {
				o.fail()
				break
			}
			text = text[len(part):]
		}
		if closed {
			return
		}
	}
}

func (o *output) take() (text string, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text = o.pending.String()
	o.pending.Reset()
	return text, o.closed
}

// fail gives up: the turn is not worth less for it.
func (o *output) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = maxTaken + 1
}

// outputOf is the output of the task at work.
func (r *run) outputOf(ctx context.Context) *output {
	ctx = context.WithoutCancel(ctx) // output from before the agent was stopped is kept
	return newOutput(func(text string) error { return r.l.AppendOutput(ctx, text) })
}
