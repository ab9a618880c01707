package rlm

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestBuildingOfAnIndexIsShownAfterASecond proves that short builds are not shown, and long ones with
// what they have read.
func TestBuildingOfAnIndexIsShownAfterASecond(t *testing.T) {
	t.Parallel()
	var b builds
	one := b.begin(4 << 20)
	one.done.Add(1 << 20)
	if got := b.lines(one.began.Add(999 * time.Millisecond)); len(got) > 0 {
		t.Errorf("too early: %q", got)
	}
	got := b.lines(one.began.Add(time.Second))
	if len(got) != 1 || got[0] != "index of the context, 4.0 MiB, is being built: 25%" {
		t.Errorf("%q", got)
	}
	if b.end(one); len(b.lines(one.began.Add(time.Hour))) > 0 {
		t.Error("it is shown after its end")
	}
}

// TestTasksThatWaitForAnIndexEnd proves that a task does not wait for the index of another one when its
// own time is over.
func TestTasksThatWaitForAnIndexEnd(t *testing.T) {
	t.Parallel()
	r := &run{indexing: make(chan struct{}, 1)}
	r.indexing <- struct{}{} // the other task
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if _, err := new(Executor).indexOf(ctx, r); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
}
