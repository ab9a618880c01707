package starlark

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"runtime/metrics"
	"strings"
	"time"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// limits are those of the code.
type limits struct {
	memory int64 // bytes on the heap
	cpu    int64 // seconds of processor time of a block
	value  int   // longest value that is handed out
	// request and answer are the longest request of the host, and final answer.
	request, answer int
}

// looks is how often the limits are looked at while a block runs.
const looks = 5 * time.Millisecond

// watch cancels a thread when it exceeds a limit, until stop is called.
func (l *limits) watch(thread *starlark.Thread) (stop func()) {
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(looks)
		defer tick.Stop()
		began := processorTime()
		for {
			select {
			case <-stopping:
				return
			case <-tick.C:
			}
			if l.memory > 0 && heap() > uint64(l.memory) { //nolint:gosec // positive
				thread.Cancel(fmt.Sprintf("the code used more than %d MiB of memory", l.memory>>20))
			}
			if l.cpu > 0 && processorTime()-began > time.Duration(l.cpu)*time.Second {
				thread.Cancel(fmt.Sprintf("the block used more than %d s of processor time", l.cpu))
			}
		}
	}()
	return func() {
		close(stopping)
		<-stopped
	}
}

const (
	// maxDepth is how deep functions call each other; stepsBetween is how often it is looked at.
	maxDepth     = 10_000
	stepsBetween = 10_000
)

// limitDepth cancels a thread whose functions call each other too deep: the process would end
// when its stack is full.
func limitDepth(thread *starlark.Thread) {
	thread.SetMaxExecutionSteps(stepsBetween)
	thread.OnMaxSteps = func(t *starlark.Thread) {
		if t.CallStackDepth() > maxDepth {
			t.Cancel(fmt.Sprintf("functions call each other more than %d deep", maxDepth))
			return
		}
		t.SetMaxExecutionSteps(t.Steps + stepsBetween)
	}
}

// heap returns the bytes of objects that are in use, or not collected yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// output is what the code prints: its beginning, its length and its hash.
type output struct {
	limit int
	kept  strings.Builder
	bytes int64
	hash  hash.Hash
}

func newOutput(limit int) output { return output{limit: limit, hash: sha256.New()} }

func (o *output) clear() {
	o.kept.Reset()
	o.bytes = 0
	o.hash.Reset()
}

func (o *output) write(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	whole := o.bytes == int64(o.kept.Len())
	o.bytes += int64(len(text))
	o.hash.Write([]byte(text))
	if !whole {
		return
	}
	if room := o.limit - o.kept.Len(); room < len(text) {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:max(room, 0)]
	}
	o.kept.WriteString(text)
}

// end returns what was printed, the length of the whole and its hash.
func (o *output) end() (text string, length int64, sum string) {
	return o.kept.String(), o.bytes, hex.EncodeToString(o.hash.Sum(nil))
}
