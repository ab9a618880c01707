package loop

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

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
	width    int // of the terminal, in columns

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

// start begins to show a text about something that began at the given time. It ends with the
// next call of stop. A text that follows another one replaces it.
func (t *ticker) start(text string, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text == "" {
		t.last = time.Now()
	}
	t.text, t.since = text, since
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
	took := human.Duration(max(0, time.Since(t.since)).Truncate(time.Second))
	switch {
	case t.text == "":
	case t.terminal:
		fmt.Fprintf(t.w, "\r\x1b[K%s (%s)", fitted(t.text, t.width-len(took)-len(" ()")), took)
		t.drawn = true
	case time.Since(t.last) >= stillEvery:
		fmt.Fprintf(t.w, "%s (%s)\n", t.text, took)
		t.last = time.Now()
	}
}

// fitted returns a text that needs at most so many columns.
func fitted(text string, columns int) string {
	return ansi.Truncate(text, max(columns, 1), "…")
}
