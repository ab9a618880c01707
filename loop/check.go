package loop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/check/coverage"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/workspace"
)

const (
	// maxFailing is how many names of failing tests are kept, and maxMessage how
	// much of what each says, in bytes.
	maxFailing = 50
	maxMessage = 600
)

// checked is what one run of the completion command came to.
type checked struct {
	state.Check
	command project.Command
	at      *metric.Runner // where it ran
	// report is nil where the exit status is all the evidence.
	report *testreport.Report
	// profile is the coverage of the run; nil where there is none, and then lacks
	// says why.
	profile *coverage.Profile
	lacks   string
}

// checkWork runs the completion command in the workspace and keeps what its tests
// came to; with covers also their coverage, where that can be had in one run.
func (r *run) checkWork(ctx context.Context, baseline *testreport.Report, covers bool) (*checked, error) {
	here, err := r.runner()
	if err != nil {
		return nil, err
	}
	c, err := r.checkAt(ctx, here, baseline, covers)
	if err != nil || c.report == nil {
		return c, err
	}
	return c, r.keepResults(ctx, &c.Check, c.report)
}

// checkAt runs the completion command in a folder and reads what its tests came
// to. Tests that passed in the baseline and fail now are run once more: what then
// passes is flaky. An error is one of the machine, never of the check.
func (r *run) checkAt(ctx context.Context, at *metric.Runner, baseline *testreport.Report, covers bool) (*checked,
	error) {
	command := r.command(at, covers)
	c, err := r.measured(ctx, at, &command)
	if err != nil || c.report == nil {
		return c, err
	}
	if baseline != nil {
		c.report = testreport.Align(baseline, c.report)
	}
	if baseline != nil && c.Exit != 0 && command.Stops != "" {
		c.report = testreport.MarkNotRun(baseline, c.report, command.Stops == project.StopsInside,
			"the command ended after a failure without running it")
	}
	if err := r.runAgain(ctx, c, baseline); err != nil {
		return nil, err
	}
	report := c.report
	c.Counts, c.Failing, c.Messages = report.Counts(), nil, nil
	for _, t := range report.Failing() {
		if len(c.Failing) < maxFailing {
			c.Failing = append(c.Failing, t.ID)
			c.Messages = append(c.Messages, clip.Bytes(t.Message, maxMessage))
		}
	}
	for _, b := range report.Broken {
		if len(c.Broken) < maxFailing {
			c.Broken = append(c.Broken, strings.TrimSpace(b.Suite+": "+string(b.Kind)+"\n"+clip.Bytes(b.Message, maxMessage)))
		}
	}
	if !report.Complete {
		c.Incomplete = report.Reason // an exit status alone is not proof
	}
	c.Passed = !c.TimedOut && report.Complete && len(report.Broken) == 0 && (c.Exit == 0 || c.Counts.Flaky > 0) &&
		len(report.Failing()) == 0
	return c, nil
}

// command is the completion command with the places of its results.
func (r *run) command(at *metric.Runner, covers bool) project.Command {
	return project.Measure(r.cfg.Until, project.Config{Files: os.DirFS(at.Root), Scratch: at.Scratch,
		Installed: installed, WithCoverage: covers})
}

// cheapRepeat is the time of a check that runs twice before the first iteration, even if no
// name of a test looks unstable.
const cheapRepeat = 20 * time.Second

// repeatFirst runs the check of the baseline a second time, which shows the tests whose
// names differ from run to run.
func (r *run) repeatFirst(ctx context.Context, c *checked) error {
	if c.report == nil || !c.report.Complete || len(c.report.Tests) == 0 ||
		c.TookMS > cheapRepeat.Milliseconds() && !c.report.LooksUnstable() {
		return nil
	}
	command := r.command(c.at, false)
	second, err := r.measured(ctx, c.at, &command)
	if err != nil || second.report == nil {
		return err
	}
	c.report = testreport.MarkUnstable(c.report, second.report, time.Now())
	r.change.Blobs = slices.DeleteFunc(r.change.Blobs, func(b perdure.BlobRef) bool { return b.Hash == c.Results })
	return r.keepResults(ctx, &c.Check, c.report)
}

// scratch is a folder for results, outside of the agent's files, and of the workspace if there is one:
// a check that cleans the workspace must not remove its own results.
func (r *run) scratch() (string, error) {
	temp := filepath.Join(cmp.Or(r.e.copyDir(&r.l.Tree), r.e.dir(&r.l.Tree)), tempName)
	return temp, workspace.Wrap("make folder for the check", temp, os.MkdirAll(temp, 0o700))
}

// runner runs commands in the workspace: the check, the metrics, the scorer. They can
// run code that the agent wrote, so they get the variables of the allow-list and of
// loop.env, and no key of a vendor.
func (r *run) runner() (*metric.Runner, error) {
	temp, err := r.scratch()
	return &metric.Runner{Root: r.files.Root(), Scratch: temp, Hold: r.e.cfg.Hold, Sandbox: r.hiding.sandbox,
		Env: r.checkEnv(environ.Base(os.Environ(), r.cfg.Env))}, err
}

// checkEnv adds the variable that marks the check as part of a loop. Commands that are
// for users only are refused where it is set, because the agent may have written the
// code that the check runs.
func (r *run) checkEnv(env []string) []string {
	return append(slices.Clip(env), VarCheck+"="+ID(&r.l.Tree))
}

// VarCheck is set, to the loop's ID, where its check runs.
const VarCheck = "PERDURE_CHECK"

// compareWork is checkWork compared with the baseline, with the command as the user wrote it.
func (r *run) compareWork(ctx context.Context) (state.Check, error) {
	baseline, err := r.baselineResults(ctx)
	if err != nil {
		return state.Check{}, err
	}
	c, err := r.checkWork(ctx, baseline, false)
	if err != nil {
		return state.Check{}, err
	}
	return c.Check, nil
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// runAgain repeats the tests that got worse, or all tests if the runner cannot select
// tests. It does not measure coverage, even if the first run did.
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
	var tests []testreport.Test
	for _, t := range c.report.Tests {
		if worse[t.ID] {
			tests = append(tests, t)
		}
	}
	if len(tests) == 0 {
		return nil
	}
	unstable := slices.ContainsFunc(tests, func(t testreport.Test) bool { return t.Varies != "" })
	again, ok := c.command.Again(tests)
	if !ok || unstable { // they cannot be selected by name
		again = c.command
	}
	second, err := r.measured(ctx, c.at, &again)
	if err != nil || second.report == nil {
		return err
	}
	c.report = testreport.MarkFlaky(c.report, second.report)
	return nil
}

// measured runs a command and reads its results.
func (r *run) measured(ctx context.Context, at *metric.Runner, command *project.Command) (*checked, error) {
	c := &checked{Check: state.Check{Command: r.cfg.Until}, command: *command, at: at, lacks: command.NoCoverage}
	if err := command.Clear(at.Root); err != nil {
		return c, fail("check", "old results cannot be removed: %s", err)
	}
	r.keepCopies(ctx)
	ran, err := at.Run(ctx, command, r.cfg.CheckTimeout)
	if err != nil {
		return c, err
	}
	defer ran.Close()
	before := workspace.ID("")
	if at.Root == r.files.Root() {
		before = r.snapshotChecked(ctx)
	}
	if err := r.afterProgram(ctx, "the check", before); err != nil {
		return c, err
	}
	c.Exit, c.TimedOut, c.TookMS, c.Output = ran.Exit, ran.TimedOut, time.Since(ran.Began).Milliseconds(), ran.End
	found, err := command.Collect(at.Root, ran.Began)
	if err != nil {
		c.report, c.lacks = r.readable(nil, err), err.Error()
	} else {
		c.report = r.readable(ran.Results(at.Root, command, found))
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

// readable passes a report on, and says why there is none.
func (r *run) readable(report *testreport.Report, err error) *testreport.Report {
	if err != nil {
		r.e.cfg.Logger.Warn("test results cannot be read", "tree_id", string(r.l.Tree.ID), "error", err)
		return nil
	}
	return report
}

// keepResults puts the whole results aside; the record has their beginning.
func (r *run) keepResults(ctx context.Context, c *state.Check, report *testreport.Report) error {
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
