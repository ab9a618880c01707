package rlm

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/text/human"
)

// builds are the indexes that are being built.
type builds struct {
	mu  sync.Mutex
	all []*build
}

// build is an index that is being built.
type build struct {
	began time.Time
	// total are the bytes of the context, done those that are read.
	total int64
	done  atomic.Int64
}

// begin adds an index of a context of so many bytes.
func (b *builds) begin(total int64) *build {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := &build{began: time.Now(), total: total}
	b.all = append(b.all, one)
	return one
}

// end removes an index.
func (b *builds) end(one *build) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(o *build) bool { return o == one })
}

// Building returns a line for each index that is being built for more than a second: how much of the
// context is read.
func (e *Executor) Building() []string { return e.builds.lines(time.Now()) }

// lines returns the lines of indexes that began more than a second before now.
func (b *builds) lines(now time.Time) (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.all {
		if now.Sub(one.began) >= time.Second {
			lines = append(lines, fmt.Sprintf("index of the context, %s, is being built: %d%%", human.Size(one.total),
				100*one.done.Load()/max(one.total, 1)))
		}
	}
	return lines
}
