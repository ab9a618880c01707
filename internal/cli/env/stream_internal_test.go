package env

import (
	"io"
	"sync"
	"testing"
)

// TestStreamOfManyGoroutines: a stream reports its error while others write (with -race).
func TestStreamOfManyGoroutines(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Stream{w: w}
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for !s.Stopped() {
				_, _ = s.Write([]byte("x"))
			}
		})
	}
	for !s.Stopped() {
		if err := s.Failed(); err != nil {
			t.Error(err)
		}
	}
	writing.Wait()
	if err := s.Failed(); err != nil {
		t.Errorf("the closed pipe is reported: %v", err)
	}
}
