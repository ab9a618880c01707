package loop

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/text/human"
)

// inCleanCopy says what takes long and prints nothing.
const inCleanCopy = "checking the result in a clean copy"

// stillEvery is how often a ticker writes a line without a terminal.
const stillEvery = 15 * time.Second

// ticker shows for how long something takes that prints nothing: on a terminal in one line
// that changes each second, elsewhere in a new line every 15 seconds.
type ticker struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex // guards the following
	text  string     // empty while nothing is shown
	since time.Time
	last  time.Time // of the last line
	drawn bool      // on the terminal
}

// run shows the progress until done is closed.
func (t *ticker) run(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			t.stop()
			return
		case <-tick.C:
			t.show()
		}
	}
}

// start begins to show a text. It ends with the next call of stop.
func (t *ticker) start(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text, t.since, t.last = text, time.Now(), time.Now()
}

// stop ends the text and erases it from the terminal.
func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drawn {
		fmt.Fprint(t.w, "\r\x1b[K")
	}
	t.text, t.drawn = "", false
}

func (t *ticker) show() {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := human.Duration(time.Since(t.since).Truncate(time.Second))
	switch {
	case t.text == "":
	case t.terminal:
		fmt.Fprintf(t.w, "\r\x1b[K%s (%s)", t.text, took)
		t.drawn = true
	case time.Since(t.last) >= stillEvery:
		fmt.Fprintf(t.w, "%s (%s)\n", t.text, took)
		t.last = time.Now()
	}
}
