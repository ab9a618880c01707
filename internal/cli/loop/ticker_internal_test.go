package loop

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTicker: a ticker shows the elapsed time, on a terminal in one line that it erases,
// elsewhere every 15 seconds, and nothing when it is stopped.
func TestTicker(t *testing.T) {
	t.Parallel()
	for terminal, want := range map[bool]string{
		true:  "\r\x1b[Ka check (1.0s)\r\x1b[Ka check (2.0s)\r\x1b[K",
		false: "a check (15s)\na check (30s)\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var b bytes.Buffer
			w := &ticker{w: &b, terminal: terminal, width: 14}
			done := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { w.run(done) })
			wait := 2500 * time.Millisecond
			if !terminal {
				wait = 40 * time.Second
			}
			w.start("a check", time.Now())
			<-time.After(wait)
			w.stop()
			<-time.After(time.Minute)
			close(done)
			wg.Wait()
			if b.String() != want {
				t.Errorf("%q, want %q", b.String(), want)
			}
		})
	}
}
