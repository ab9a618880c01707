package hook

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
)

// answer is what came of one call of a handler.
type answer struct {
	reply Reply
	err   error
}

// invoke calls a handler in a goroutine of its own, so that one that hangs can
// be abandoned. The goroutine then stays in the handler's list until it ends,
// and as long as it is there the handler is not called again: there are never
// more of them than calls that were running at once.
func (r *Runner) invoke(ctx context.Context, h *post, m Message) (Reply, *FaultError) {
	if r.hangs(h) {
		return Reply{}, &FaultError{Kind: FaultHung, Msg: "the handler has not returned from an earlier invocation"}
	}
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.Timeout)
		defer cancel()
	}
	done := make(chan answer, 1) // the goroutine ends also without a receiver
	go call(ctx, h.Handler, m, done)
	select {
	case a := <-done:
		return judged(ctx, a)
	case <-ctx.Done():
	}
	late := time.NewTimer(h.patience)
	defer late.Stop()
	select {
	case a := <-done:
		return judged(ctx, a)
	case <-late.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h.hung = append(h.hung, done)
	return Reply{}, &FaultError{Kind: FaultHung, Msg: "the handler does not return although its time is over",
		Err: ctx.Err()}
}

// hangs reports whether an abandoned call has not returned yet.
func (r *Runner) hangs(h *post) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(h.hung) > 0 {
		select {
		case <-h.hung[0]:
			h.hung = h.hung[1:]
		default:
			return true
		}
	}
	return false
}

// wait waits until abandoned calls have returned, and reports whether
// they have before ctx ended.
func (r *Runner) wait(ctx context.Context, h *post) bool {
	r.mu.Lock()
	hung := h.hung
	r.mu.Unlock()
	for _, done := range hung {
		select {
		case <-done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// call calls a handler and sends what came of it, also of a panic and of
// runtime.Goexit.
func call(ctx context.Context, h Handler, m Message, done chan<- answer) {
	a := answer{err: &FaultError{Kind: FaultPanic, Msg: "the handler ended its goroutine"}}
	defer func() {
		if what := recover(); what != nil {
			a.err = &FaultError{Kind: FaultPanic, Msg: clip.Bytes(fmt.Sprintf("the handler panicked: %v", what), maxFaultBytes),
				Detail: string(debug.Stack())}
		}
		done <- a
	}()
	a.reply, a.err = h.Handle(ctx, m)
}

// judged validates an answer. A reply returned with a fault is used for its
// verdict only.
func judged(ctx context.Context, a answer) (Reply, *FaultError) {
	switch {
	case a.err != nil:
		return a.reply, asFault(ctx, a.err)
	case ctx.Err() != nil:
		return a.reply, stopped(ctx)
	}
	if err := a.reply.validate(); err != nil {
		return a.reply, &FaultError{Kind: FaultReply, Msg: "invalid reply", Err: err}
	}
	return a.reply, nil
}

// closer is the handler as a comparable io.Closer.
func closer(h Handler) (io.Closer, bool) {
	c, ok := h.(io.Closer)
	return c, ok && reflect.TypeOf(h).Comparable()
}
