package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/testing/longtask"
	"github.com/perdure/perdure/rlm"
)

// replStart: from the launch of a run to the request for its first code, without a context. The
// first run of a process also asks the interpreter where it is.
func (b *bench) replStart(round int) error {
	const runs = 10
	s, err := b.open("repl-start")
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is written after the last result
	var first time.Duration
	var rest []time.Duration
	c := &coder{code: "x = 1"}
	for i := range runs {
		began := time.Now()
		if _, err := b.replRun(s, c, 1, ""); err != nil {
			return err
		}
		took := time.Duration(c.first.Load() - began.UnixNano())
		if i == 0 {
			first = took
			continue
		}
		rest = append(rest, took)
	}
	return b.print("repl", "from the start of a worker to the request for the first code: session, launch and engine",
		round, quantiles(rest, map[string]any{"runs": runs, "first_ms": rounded(first.Seconds() * 1000)}))
}

// replLarge: a context of 1 GB, in a process of its own.
func (b *bench) replLarge(round int) error {
	const size = 1 << 30
	f, err := os.Create(filepath.Join(b.dir, "large.txt"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a temporary file
	_, err = longtask.Generate(f, longtask.Spec{Seed: 1, Bytes: size})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	values, cpu, err := b.valuesOf("repl-child")
	if err != nil {
		return err
	}
	values["cpu_s"] = rounded(cpu.Seconds())
	return b.print("repl", "a context of 1 GB, counted through once and asked about in 100 parts, in a fresh process",
		round, values)
}

// large is code that reads all of a context, and then asks about a hundred parts of it.
const large = `n = context.count('\n')
step = n // 100
parts = [lines('large.txt', 1 + i * step, 20 + i * step) for i in range(100)]
r = llm_query_batched(['q ' + p for p in parts])
print(n, len(r))`

// replChild is a child process: it runs code over a context and prints what it took.
func replChild(b *bench, _ int) error {
	s, err := b.open("repl-large")
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is written after the run
	began := time.Now()
	c, err := rlm.PutContext(b.ctx, s, b.dir, "large.txt")
	if err != nil {
		return err
	}
	packed := time.Now()
	var engines float64
	model := &coder{code: large, measure: func() { engines = peakBelow(os.Getpid()) }}
	took, err := b.replRun(s, model, 8, c.ID)
	if err != nil {
		return err
	}
	host := memoryOf("VmHWM:")
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bytes": c.Bytes, "pack_s": rounded(packed.Sub(began).Seconds()),
		"first_turn_ms": rounded(time.Unix(0, model.first.Load()).Sub(packed).Seconds() * 1000),
		"block_s":       rounded(took.Seconds()), "host_peak_mib": host, "engine_peak_mib": engines,
		"both_peak_mib": rounded(host + engines)})
}

// peakBelow returns the largest resident memory of all processes below a process, in MiB, each
// at its own peak.
func peakBelow(parent int) (mib float64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		words := bufio.NewScanner(strings.NewReader(string(raw)))
		words.Split(bufio.ScanWords)
		for words.Scan() {
			var child int
			if _, err := fmt.Sscan(words.Text(), &child); err == nil {
				mib += memoryOfProcess(words.Text(), "VmHWM:") + peakBelow(child)
			}
		}
	}
	return mib
}
