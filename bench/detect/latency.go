package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
)

// The sizes that are asked for: lines of the workspace, of an ordinary change and
// of one that is far too large.
const (
	workspaceLines = 1_000_000
	ordinaryDiff   = 1_000
	largeDiff      = 20_000
)

// latency times the check of a loop after an iteration and after a tool call, in a
// workspace of real code: the one of Go's own library.
type latency struct {
	out    io.Writer
	root   string
	names  []string
	files  *workspace.Workspace
	random *rand.Rand
	edits  int // numbers what is written
	last   workspace.ID
}

// timed is one measurement with its parts.
type timed struct {
	whole, snapshot, diff, detect time.Duration
	used, usedToDetect            time.Duration // of the processors, whatever else they did
}

func latencies(ctx context.Context, out io.Writer, samples int) (err error) {
	root, err := os.MkdirTemp("", "perdure-latency-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	l := &latency{out: out, root: filepath.Join(root, "work"), random: rand.New(rand.NewPCG(5, 4))}
	lines, err := l.fill(ctx)
	if err != nil {
		return err
	}
	if l.files, err = workspace.Open(workspace.Config{Root: l.root, Dir: filepath.Join(root, "snapshots")}); err != nil {
		return err
	}
	if l.last, _, err = l.files.Snapshot(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "workspace: %d files, %d lines of code\n", len(l.names), lines); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "\tsamples\tp50 ms\tp95 ms\tp99 ms\tmost ms\t"); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, io.Writer, int) error{l.ordinary, l.large, l.oneFile} {
		if err := measure(ctx, w, samples); err != nil {
			return err
		}
	}
	return w.Flush()
}

// fill copies code of Go's library until the workspace is large enough.
func (l *latency) fill(ctx context.Context) (int, error) {
	goroot, err := run(ctx, "", "go", "env", "GOROOT")
	if err != nil {
		return 0, err
	}
	src := filepath.Join(strings.TrimSpace(goroot), "src")
	lines := 0
	for copied := 0; lines < workspaceLines; copied++ {
		before := lines
		err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
			if err != nil || lines >= workspaceLines {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor") {
				return filepath.SkipDir
			}
			if d.IsDir() || filepath.Ext(path) != ".go" {
				return nil
			}
			rel, err := filepath.Rel(src, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name := filepath.Join(fmt.Sprintf("copy%d", copied), rel)
			lines += bytes.Count(text, []byte("\n"))
			l.names = append(l.names, name)
			return l.write(name, text)
		})
		if err != nil {
			return 0, err
		}
		if lines == before {
			return 0, errors.New("no code in " + src)
		}
	}
	_, err = run(ctx, l.root, "git", "init", "-q")
	return lines, err
}

func (l *latency) write(name string, text []byte) error {
	path := filepath.Join(l.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// processorTime is what the threads of this process have used of the processors;
// 0 where Linux does not report it. On a machine that is not at rest it says more than a
// clock.
func processorTime() time.Duration {
	names, _ := filepath.Glob("/proc/self/task/*/schedstat")
	sum := int64(0)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += n
	}
	return time.Duration(sum)
}

// edit changes about so many lines of a text: it writes statements into blocks, and
// takes lines of comments away.
func (l *latency) edit(text []byte, most int) ([]byte, int) {
	var b bytes.Buffer
	changed := 0
	for line := range bytes.Lines(text) {
		l.edits++
		trimmed := bytes.TrimSpace(line)
		switch {
		case changed >= most || len(line) == 0 || line[0] != '\t':
			b.Write(line)
		case bytes.HasPrefix(trimmed, []byte("// ")) && l.edits%3 == 0:
			changed++
		case bytes.HasPrefix(trimmed, []byte("if ")) && bytes.HasSuffix(trimmed, []byte("{")):
			b.Write(line)
			fmt.Fprintf(&b, "\t\tvar edited%d = %d\n\t\t_ = edited%d\n", l.edits, l.edits, l.edits)
			changed += 2
		default:
			b.Write(line)
		}
	}
	return b.Bytes(), changed
}

// change edits files, each by about so many lines, until as many are changed in all.
func (l *latency) change(lines, perFile int) error {
	for tries := 0; lines > 0 && tries < 10*len(l.names); tries++ {
		name := l.names[l.random.IntN(len(l.names))]
		text, err := os.ReadFile(filepath.Join(l.root, name))
		if err != nil {
			return err
		}
		now, changed := l.edit(text, min(perFile, lines))
		if changed == 0 {
			continue
		}
		if err := l.write(name, now); err != nil {
			return err
		}
		lines -= changed
	}
	return nil
}

// check is what a loop does after an iteration: a snapshot, what changed, and the
// detectors.
func (l *latency) check(ctx context.Context) (timed, error) {
	var t timed
	began, used := time.Now(), processorTime()
	id, _, err := l.files.Snapshot(ctx)
	if err != nil {
		return t, err
	}
	t.snapshot = time.Since(began)
	changes, err := l.files.Diff(ctx, l.last, id)
	if err != nil {
		return t, err
	}
	t.diff = time.Since(began) - t.snapshot
	toDetect := processorTime()
	between := &evidence.Between{From: l.last, To: id, Changes: changes}
	if _, err := evidence.Run(ctx, l.files, between, detect.Input{}); err != nil {
		return t, err
	}
	t.whole = time.Since(began)
	t.detect = t.whole - t.snapshot - t.diff
	t.used, t.usedToDetect = processorTime()-used, processorTime()-toDetect
	l.last = id
	return t, nil
}

func (l *latency) ordinary(ctx context.Context, w io.Writer, samples int) error {
	return l.sample(ctx, w, fmt.Sprintf("after an iteration, %d lines", ordinaryDiff), samples,
		func() error { return l.change(ordinaryDiff, 50) })
}

func (l *latency) large(ctx context.Context, w io.Writer, samples int) error {
	few := max(samples/10, 5)
	err := l.sample(ctx, w, fmt.Sprintf("%d lines, many files", largeDiff), few,
		func() error { return l.change(largeDiff, 100) })
	if err != nil {
		return err
	}
	n := 0
	return l.sample(ctx, w, fmt.Sprintf("%d lines, all tests of one file renamed and rewritten", largeDiff/2), few,
		func() error {
			n++
			return l.write("rewritten_test.go", manyTests(n, largeDiff/2))
		})
}

// manyTests is a file of tests, each of five lines, that differs with n.
func manyTests(n, lines int) []byte {
	var b bytes.Buffer
	b.WriteString("package work\n\nimport \"testing\"\n\n")
	for i := range lines / 5 {
		fmt.Fprintf(&b, "func TestWork%dOf%d(t *testing.T) {\n\tif got := work(%d, %d); got != %d {\n"+
			"\t\tt.Errorf(\"got %%d\", got)\n\t}\n}\n", i, n, i, n, i*n)
	}
	return b.Bytes()
}

// sample makes changes and times their checks.
func (l *latency) sample(ctx context.Context, w io.Writer, title string, samples int, change func() error) error {
	var all []timed
	for range samples + 1 {
		if err := change(); err != nil {
			return err
		}
		t, err := l.check(ctx)
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	all = all[1:] // the first one warms up
	for _, part := range []struct {
		name string
		of   func(t timed) time.Duration
	}{
		{title, func(t timed) time.Duration { return t.whole }},
		{"  time of processors", func(t timed) time.Duration { return t.used }},
		{"  of it the snapshot", func(t timed) time.Duration { return t.snapshot }},
		{"  of it what changed", func(t timed) time.Duration { return t.diff }},
		{"  of it the detectors", func(t timed) time.Duration { return t.detect }},
		{"  of it the detectors, time of processors", func(t timed) time.Duration { return t.usedToDetect }},
	} {
		var times []time.Duration
		for _, t := range all {
			times = append(times, part.of(t))
		}
		if err := row(w, part.name, times); err != nil {
			return err
		}
	}
	return nil
}

// oneFile times what is done after a tool call: the tests and signs of one file.
func (l *latency) oneFile(ctx context.Context, w io.Writer, samples int) error {
	var times []time.Duration
	runtime.GC()
	for range 5 * samples {
		name := l.names[l.random.IntN(len(l.names))]
		text, err := os.ReadFile(filepath.Join(l.root, name))
		if err != nil {
			return err
		}
		now, _ := l.edit(text, 20)
		name = filepath.ToSlash(name)
		change := detect.Change{Old: detect.Version{Path: name, Content: text}, New: detect.Version{Path: name, Content: now}}
		began := time.Now()
		if _, err := detect.Run(ctx, &detect.Input{Changes: single(change)}); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	return row(w, "after a tool call, 20 lines of one file", times)
}

func single(c detect.Change) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) { yield(c, nil) }
}

func row(w io.Writer, title string, times []time.Duration) error {
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[min(len(times)-1, int(share*float64(len(times))))].Microseconds()) / 1000
	}
	_, err := fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", title, len(times), at(0.5), at(0.95), at(0.99), at(1))
	return err
}
