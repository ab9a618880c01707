package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/guard"
	"github.com/perdure/perdure/internal/testreport"
)

const (
	// maxOutput is how much of the end of a command's output is kept, in bytes.
	maxOutput = 8 << 10
	// maxParsed is how much output is looked at for test results.
	maxParsed = 1 << 30
	// maxFailing is how many names of failing tests are kept.
	maxFailing = 50
)

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

// Write keeps the last maxOutput bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - 2*maxOutput; over > 0 {
		t.text = append(t.text[:0], t.text[len(t.text)-maxOutput:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	text := t.text
	if over := len(text) - maxOutput; over > 0 {
		text = text[over:]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "\uFFFD")
}

// capped writes a bounded beginning and drops the rest.
type capped struct {
	to   io.Writer
	left int64
}

// Write drops what is beyond the bound.
func (c *capped) Write(p []byte) (int, error) {
	n := int64(len(p))
	if n > c.left {
		n = c.left
	}
	c.left -= n
	if n > 0 {
		if _, err := c.to.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// checkWork runs the completion command and reads what its tests came to. An
// error is one of the machine, never of the check.
func (r *run) checkWork(ctx context.Context) (Check, *testreport.Report, error) {
	c := Check{Command: r.cfg.Until}
	temp := filepath.Join(r.e.dir(&r.l.Tree), "tmp")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return c, nil, err
	}
	out, err := os.CreateTemp(temp, "check-*")
	if err != nil {
		return c, nil, err
	}
	defer func() { _ = errors.Join(out.Close(), os.Remove(out.Name())) }()
	var end tail
	began := time.Now()
	c.Exit, c.TimedOut, err = r.command(ctx, r.cfg.Until, io.MultiWriter(&end, &capped{out, maxParsed}))
	c.TookMS, c.Output = time.Since(began).Milliseconds(), end.String()
	if err != nil {
		return c, nil, err
	}
	report := r.results(out)
	c.Passed = c.Exit == 0 && !c.TimedOut
	if c.Weak = report == nil; c.Weak {
		return c, nil, nil
	}
	c.Counts = report.Counts()
	for _, t := range report.Failing() {
		if len(c.Failing) < maxFailing {
			c.Failing = append(c.Failing, t.ID)
		}
	}
	if !report.Complete {
		c.Incomplete, c.Passed = report.Reason, false // an exit status alone is no proof
	}
	c.Passed = c.Passed && report.OK()
	return c, report, r.keepResults(ctx, &c, report)
}

// results reads test results from the output; nil when there are none.
func (r *run) results(out *os.File) *testreport.Report {
	const head = 64 << 10
	first := make([]byte, head)
	n, err := out.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	format := testreport.Detect(out.Name(), first[:n])
	if format == "" {
		return nil
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	report, err := testreport.Parse(format, out, testreport.Config{Root: r.files.Root()})
	if err != nil {
		r.e.cfg.Logger.Warn("test results cannot be read", "tree_id", string(r.l.Tree.ID), "error", err)
		return nil
	}
	return report
}

// keepResults puts the whole results aside; the record has their beginning.
func (r *run) keepResults(ctx context.Context, c *Check, report *testreport.Report) error {
	raw, err := json.Marshal(report)
	if err != nil {
		return err
	}
	ref, err := r.e.cfg.Store.PutBlob(ctx, strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	c.Results = ref.Hash
	r.change.Blobs = append(r.change.Blobs, ref)
	return nil
}

// savedResults returns results that were put aside; nil for an empty name.
func (r *run) savedResults(ctx context.Context, hash string) (*testreport.Report, error) {
	if hash == "" {
		return nil, nil
	}
	b, err := r.e.cfg.Store.OpenBlob(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	var report testreport.Report
	err = json.NewDecoder(io.NewSectionReader(b, 0, b.Size())).Decode(&report)
	return &report, err
}

// command runs a command line in the workspace. What it started is gone when it
// returns.
func (r *run) command(ctx context.Context, line string, out io.Writer) (exit int, timedOut bool, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if r.cfg.CheckTimeout > 0 {
		limited, cancel = context.WithTimeout(ctx, r.cfg.CheckTimeout)
	}
	defer cancel()
	err = guard.Run(limited, guard.Config{Path: "sh", Args: []string{"-c", line}, Dir: r.files.Root(), Stdout: out, Stderr: out, Hold: r.e.cfg.Hold})
	if ctx.Err() != nil {
		return 0, false, ctx.Err()
	}
	var ended *guard.ExitError
	switch {
	case err == nil:
		return 0, false, nil
	case limited.Err() != nil:
		return -1, true, nil
	case errors.As(err, &ended):
		return ended.Code, false, nil
	}
	return 0, false, &perdure.Error{Code: perdure.CodeUnavailable, Op: "run check", Msg: fmt.Sprintf("%q cannot be run", line), Err: err}
}
