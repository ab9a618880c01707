package rlm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// logOf returns the log that a tree was imported from, by its root; nil if it was not.
func logOf(tree *perdure.Tree, root *perdure.Task) *logRef {
	n, err := nodeOf(root)
	if tree.Kind != perdure.KindRecord || err != nil {
		return nil
	}
	return n.Log
}

// openLog opens the log of a record.
func openLog(ctx context.Context, s *perdure.Store, l *logRef) (*io.SectionReader, io.Closer, error) {
	blob, err := s.OpenBlob(ctx, l.Hash)
	if err != nil {
		return nil, nil, err
	}
	return io.NewSectionReader(blob, 0, blob.Size()), blob, nil
}

// logTurns returns the turns of a record that was imported from a log.
func logTurns(ctx context.Context, s *perdure.Store, t *perdure.Task, l *logRef) (all []Turn, err error) {
	log, blob, err := openLog(ctx, s, l)
	if err != nil {
		return nil, err
	}
	defer blob.Close() // it was only read
	made, err := subCallsOf(ctx, s, t)
	if err != nil {
		return nil, err
	}
	known := make(map[string]json.RawMessage)
	in := trajectory.NewReader(log)
	for {
		it, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, logError(err)
		}
		one := Turn{Turn: len(all) + 1, State: perdure.Completed, Reply: it.Response, Blocks: []TurnBlock{},
			Usage: perdure.Usage{Calls: 1, UnpricedCalls: 1}}
		for i := range it.CodeBlocks {
			sub := made[[2]int{one.Turn, i}]
			b := logTurnBlock(&it.CodeBlocks[i], it.Timestamp.Time, known)
			b.SubCalls = sub.tasks
			if b.State == perdure.Failed {
				one.State = perdure.Failed
			}
			one.Blocks = append(one.Blocks, b)
			one.SubCalls += sub.tasks
			addUsage(&one.Usage, &sub.usage)
		}
		all = append(all, one)
	}
}

// logTurnBlock is a block of a log. known are the variables of the blocks before it.
func logTurnBlock(b *trajectory.CodeBlock, at time.Time, known map[string]json.RawMessage) TurnBlock {
	r := &b.Result
	const most = 1 << 20
	out := TurnBlock{State: perdure.Completed, Code: b.Code, Output: clip.Bytes(r.Stdout, most),
		OutputBytes: int64(len(r.Stdout)), Failure: failureOf(r.Stderr), StartedAt: at}
	if out.Failure != "" {
		out.State = perdure.Failed
	}
	if r.FinalAnswer != nil {
		out.Final = r.FinalAnswer.Text
	}
	for name, value := range r.Locals {
		if !isContext(name) && !bytes.Equal(known[name], value) {
			out.Variables = append(out.Variables, name)
		}
		known[name] = value
	}
	slices.Sort(out.Variables)
	end := at
	if r.ExecutionTime != nil {
		const mostSeconds = 1e9
		end = at.Add(time.Duration(min(max(*r.ExecutionTime, 0), mostSeconds) * float64(time.Second)))
	}
	out.EndedAt = &end
	return out
}

// failureOf returns the exception in the last line of what a block wrote to the standard error,
// "" if there is none: warnings are written there too.
func failureOf(stderr string) string {
	last := clip.LastLine(stderr)
	if !regexp.MustCompile(`^[A-Za-z_][\w.]*(: |:?$)`).MatchString(last) {
		return ""
	}
	return last
}

// copyLog writes the log of a record as it was imported.
func (l *Log) copyLog(ctx context.Context, ref *logRef, w io.Writer) error {
	log, blob, err := openLog(ctx, l.Store, ref)
	if err != nil {
		return err
	}
	defer blob.Close() // it was only read
	if !l.WithoutContext {
		_, err = io.Copy(w, log)
		return err
	}
	in := trajectory.NewReader(log)
	var out *trajectory.Writer
	run := 1
	for {
		it, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return logError(err)
		}
		if out == nil {
			m := in.Metadata()
			if m == nil {
				m = &trajectory.Metadata{Timestamp: it.Timestamp}
			}
			if out, err = trajectory.NewWriter(w, m); err != nil {
				return err
			}
		}
		if in.Run() > run {
			run = in.Run()
			if err := out.Begin(in.Metadata()); err != nil {
				return err
			}
		}
		for i := range it.CodeBlocks {
			for name := range it.CodeBlocks[i].Result.Locals {
				if isContext(name) {
					delete(it.CodeBlocks[i].Result.Locals, name)
				}
			}
		}
		if err := out.Write(it); err != nil {
			return err
		}
	}
}

// replayLog runs the code of the log of a record again.
func (e *Executor) replayLog(ctx context.Context, ref *logRef, report *Replay, root perdure.TaskID) error {
	log, blob, err := openLog(ctx, e.cfg.Store, ref)
	if err != nil {
		return err
	}
	defer blob.Close() // it was only read
	p := &LogReplayer{Python: e.cfg.Python, Hidden: append([]string{e.cfg.Store.Dir()}, e.cfg.Hidden...),
		Unsandboxed: e.cfg.Unsandboxed}
	r, err := p.Replay(ctx, log)
	report.Tasks, report.Blocks = 1, r.Blocks
	for _, d := range r.Differences {
		report.Differences = append(report.Differences, Difference{root, d.Turn, d.Block, d.String()})
	}
	return err
}
