package loop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/coverage"
	"github.com/perdure/perdure/internal/guard"
	"github.com/perdure/perdure/internal/project"
	"github.com/perdure/perdure/internal/testreport"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/metric"
)

const (
	// maxOutput is how much of the end of a command's output is kept, in bytes.
	maxOutput = 8 << 10
	// maxParsed is how much output is looked at for test results.
	maxParsed = 1 << 30
	// maxFailing is how many names of failing tests are kept, and maxMessage how
	// much of what each says, in bytes.
	maxFailing = 50
	maxMessage = 600
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

// capped writes a bounded beginning and drops the rest. What cannot be written is
// no fault of who writes it, who is not told.
type capped struct {
	to   io.Writer
	left int64
	err  error // the first one
}

// Write drops what is beyond the bound, and everything after an error.
func (c *capped) Write(p []byte) (int, error) {
	n := min(int64(len(p)), c.left)
	c.left -= n
	if n > 0 && c.err == nil {
		_, c.err = c.to.Write(p[:n])
	}
	return len(p), nil
}

// shared is a writer for several.
type shared struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write hands on one text at a time.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

// checked is what one run of the completion command came to.
type checked struct {
	Check
	command project.Command
	// report is nil where the exit status is all the evidence.
	report *testreport.Report
	// profile is the coverage of the run; nil where there is none, and then lacks
	// says why.
	profile *coverage.Profile
	lacks   string
}

// checkWork runs the completion command and reads what its tests came to; with
// covers also their coverage, where that can be had in one run. Tests that passed
// in the baseline and fail now are run once more: what then passes is flaky. An
// error is one of the machine, never of the check.
func (r *run) checkWork(ctx context.Context, baseline *testreport.Report, covers bool) (*checked, error) {
	temp, err := r.scratch()
	if err != nil {
		return nil, err
	}
	command := project.Measure(r.cfg.Until, project.Config{Files: os.DirFS(r.files.Root()), Scratch: temp, Installed: installed, WithCoverage: covers})
	c, err := r.measured(ctx, &command)
	if err != nil || c.report == nil {
		return c, err
	}
	if baseline != nil && c.Exit != 0 && command.Stops != "" {
		c.report = testreport.MarkNotRun(baseline, c.report, command.Stops == project.StopsInside, "the command ended after a failure without running it")
	}
	if err := r.runAgain(ctx, c, baseline); err != nil {
		return nil, err
	}
	report := c.report
	c.Counts, c.Failing, c.Messages = report.Counts(), nil, nil
	for _, t := range report.Failing() {
		if len(c.Failing) < maxFailing {
			c.Failing = append(c.Failing, t.ID)
			c.Messages = append(c.Messages, clip(t.Message, maxMessage))
		}
	}
	for _, b := range report.Broken {
		if len(c.Broken) < maxFailing {
			c.Broken = append(c.Broken, strings.TrimSpace(b.Suite+": "+string(b.Kind)+"\n"+clip(b.Message, maxMessage)))
		}
	}
	if !report.Complete {
		c.Incomplete = report.Reason // an exit status alone is no proof
	}
	c.Passed = !c.TimedOut && report.Complete && len(report.Broken) == 0 && (c.Exit == 0 || c.Counts.Flaky > 0) && len(report.Failing()) == 0
	return c, r.keepResults(ctx, &c.Check, report)
}

// scratch is a folder for results, outside of the agent's files.
func (r *run) scratch() (string, error) {
	temp := filepath.Join(r.e.dir(&r.l.Tree), "tmp")
	return temp, workspace.Wrap("make folder for the check", temp, os.MkdirAll(temp, 0o700))
}

// compareWork is checkWork beside the baseline, as the user wrote the command.
func (r *run) compareWork(ctx context.Context) (Check, error) {
	baseline, err := r.baselineResults(ctx)
	if err != nil {
		return Check{}, err
	}
	c, err := r.checkWork(ctx, baseline, false)
	if err != nil {
		return Check{}, err
	}
	return c.Check, nil
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// runAgain repeats the tests that got worse, where the runner can be told which;
// without coverage, also when it was taken before.
func (r *run) runAgain(ctx context.Context, c *checked, baseline *testreport.Report) error {
	worse := make(map[string]bool)
	if baseline != nil {
		d := testreport.Compare(baseline, c.report)
		for _, change := range d.NewlyFailing {
			worse[change.ID] = true
		}
	}
	suspects, err := r.suspects(ctx, c)
	if err != nil {
		return err
	}
	for _, id := range suspects {
		worse[id] = true
	}
	var tests []project.Test
	for _, t := range c.report.Tests {
		if worse[t.ID] {
			tests = append(tests, project.Test{ID: t.ID, Suite: t.Suite, Name: t.Name, File: t.File})
		}
	}
	again, ok := c.command.Again(tests)
	if !ok || len(tests) == 0 {
		return nil
	}
	second, err := r.measured(ctx, &again)
	if err != nil || second.report == nil {
		return err
	}
	c.report = testreport.MarkFlaky(c.report, second.report)
	return nil
}

// measured runs a command and reads its results.
func (r *run) measured(ctx context.Context, command *project.Command) (*checked, error) {
	c := &checked{Check: Check{Command: r.cfg.Until}, command: *command, lacks: command.NoCoverage}
	if err := command.Clear(r.files.Root()); err != nil {
		return c, fail("check", "old results cannot be removed: %s", err)
	}
	ran, err := r.capture(ctx, command, r.cfg.CheckTimeout)
	if err != nil {
		return c, err
	}
	defer ran.Close()
	c.Exit, c.TimedOut, c.TookMS, c.Output = ran.Exit, ran.TimedOut, time.Since(ran.Began).Milliseconds(), ran.End
	found, err := command.Collect(r.files.Root(), ran.Began)
	if err != nil {
		c.report, c.lacks = r.readable(nil, err), err.Error()
	} else {
		c.report = r.results(command, found, map[project.Stream]*os.File{project.Stdout: ran.Stdout, project.Both: ran.Both})
	}
	if err == nil && command.Covers() {
		m, err := r.meter()
		if err != nil {
			return c, err
		}
		c.profile, c.lacks = m.Profile(command, found)
	}
	c.Passed, c.Weak = c.Exit == 0 && !c.TimedOut, c.report == nil
	return c, nil
}

// capture runs a command and keeps what it prints in files, the first maxParsed
// bytes of each.
func (r *run) capture(ctx context.Context, c *project.Command, limit time.Duration) (*metric.Ran, error) {
	temp, err := r.scratch()
	if err != nil {
		return nil, err
	}
	const keeping = "keep what the check prints"
	stdout, both, remove, err := outputs(temp)
	if err != nil {
		return nil, workspace.Wrap(keeping, temp, err)
	}
	var end tail
	keptBoth, keptOut := &capped{to: both, left: maxParsed}, &capped{to: stdout, left: maxParsed}
	all := &shared{to: io.MultiWriter(&end, keptBoth)}
	ran := &metric.Ran{Began: time.Now(), Stdout: stdout, Both: both, Close: remove}
	ran.Exit, ran.TimedOut, err = r.command(ctx, c, limit, streams{io.MultiWriter(all, keptOut), all})
	ran.End = end.String()
	if err == nil { // half of the results would be a wrong verdict
		err = workspace.Wrap(keeping, temp, cmp.Or(keptBoth.err, keptOut.err))
	}
	if err != nil {
		remove()
		return nil, err
	}
	return ran, nil
}

// outputs are files for what a command prints.
func outputs(temp string) (stdout, both *os.File, remove func(), err error) {
	if stdout, err = os.CreateTemp(temp, "stdout-*"); err != nil {
		return nil, nil, nil, err
	}
	if both, err = os.CreateTemp(temp, "both-*"); err != nil {
		return nil, nil, nil, errors.Join(err, stdout.Close(), os.Remove(stdout.Name()))
	}
	return stdout, both, func() {
		_ = errors.Join(stdout.Close(), both.Close(), os.Remove(stdout.Name()), os.Remove(both.Name()))
	}, nil
}

// results reads the results of tests; nil when there are none, or when they
// cannot be read.
func (r *run) results(command *project.Command, found []project.Found, printed map[project.Stream]*os.File) *testreport.Report {
	cfg := testreport.Config{Root: r.files.Root()}
	if command.Weak != "" {
		report, err := r.guess(printed[project.Both], cfg)
		return r.readable(report, err)
	}
	var reports []*testreport.Report
	for _, f := range found {
		if project.IsCoverage(f.Format) {
			continue
		}
		var report *testreport.Report
		var err error
		if out := printed[f.Stream]; out != nil {
			if _, err = out.Seek(0, io.SeekStart); err == nil {
				report, err = testreport.Parse(testreport.Format(f.Format), out, cfg)
			}
		} else {
			report, err = testreport.ParseFiles(testreport.Format(f.Format), f.Files, cfg)
		}
		if report = r.readable(report, err); report == nil {
			return nil
		}
		reports = append(reports, report)
	}
	report, err := testreport.Merge(cfg, reports...)
	return r.readable(report, err)
}

// readable passes a report on, and says why there is none.
func (r *run) readable(report *testreport.Report, err error) *testreport.Report {
	if err != nil {
		r.e.cfg.Logger.Warn("test results cannot be read", "tree_id", string(r.l.Tree.ID), "error", err)
		return nil
	}
	return report
}

// guess looks whether a command that is not known printed results all the same.
func (r *run) guess(out *os.File, cfg testreport.Config) (*testreport.Report, error) {
	const head = 64 << 10
	first := make([]byte, head)
	n, err := out.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	format := testreport.Detect(out.Name(), first[:n])
	if format == "" {
		return nil, nil
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return testreport.Parse(format, out, cfg)
}

// keepResults puts the whole results aside; the record has their beginning.
func (r *run) keepResults(ctx context.Context, c *Check, report *testreport.Report) error {
	raw, err := json.Marshal(report)
	if err != nil {
		return err
	}
	c.Results, err = r.saveBlob(ctx, raw)
	return err
}

// savedResults returns results that were put aside; nil for an empty name.
func (r *run) savedResults(ctx context.Context, hash string) (*testreport.Report, error) {
	if hash == "" {
		return nil, nil
	}
	raw, err := r.loadBlob(ctx, hash)
	if err != nil {
		return nil, err
	}
	var report testreport.Report
	return &report, json.Unmarshal(raw, &report)
}

// saveBlob keeps data with the step that is under way.
func (r *run) saveBlob(ctx context.Context, data []byte) (hash string, err error) {
	ref, err := r.e.cfg.Store.PutBlob(ctx, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	r.change.Blobs = append(r.change.Blobs, ref)
	return ref.Hash, nil
}

// loadBlob returns data that was kept.
func (r *run) loadBlob(ctx context.Context, hash string) ([]byte, error) {
	b, err := r.e.cfg.Store.OpenBlob(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
}

// streams are where a command prints.
type streams struct{ out, errs io.Writer }

// command runs a command in the workspace, for at most a time; 0 or less is no
// limit. What it started is gone when it returns.
func (r *run) command(ctx context.Context, c *project.Command, limit time.Duration, to streams) (exit int, timedOut bool, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	dir := filepath.Join(r.files.Root(), filepath.FromSlash(c.Dir))
	env := slices.Concat(os.Environ(), c.Env)
	err = guard.Run(limited, guard.Config{Path: "sh", Args: []string{"-c", c.Script}, Dir: dir, Env: env, Stdout: to.out, Stderr: to.errs, Hold: r.e.cfg.Hold})
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
	_, err = fmt.Fprintf(to.errs, "\nit cannot be run: %s\n", err)
	return statusNotRunnable, false, err
}
