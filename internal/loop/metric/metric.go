package metric

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/coverage"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// Metrics are measures of a workspace. What is nil was not measured; where
// somebody may wonder why, Missing tells.
type Metrics struct {
	// Tests is how many tests the check told of.
	Tests *int `json:"test_count,omitempty"`
	// Coverage is the share of CoveredLines in CodeLines, in percent.
	Coverage     *float64 `json:"coverage_percentage,omitempty"`
	CoveredLines int      `json:"covered_lines,omitempty"`
	CodeLines    int      `json:"code_lines,omitempty"`
	// Profile is the name under which the lines are kept.
	Profile string `json:"coverage_profile,omitempty"`
	// Loss is what the coverage of the baseline lost.
	Loss *Loss `json:"coverage_loss,omitempty"`
	// TypeErrors are those of the type checker; TypeScriptErrors the same, where
	// it is TypeScript's.
	TypeErrors       *int `json:"type_errors,omitempty"`
	TypeScriptErrors *int `json:"typescript_errors,omitempty"`
	LintErrors       *int `json:"lint_errors,omitempty"`
	LintWarnings     *int `json:"lint_warnings,omitempty"`
	// Files is how many files the snapshot has; Lines how many lines those of them
	// that are text and have at most 1 MiB.
	Files *int `json:"file_count,omitempty"`
	Lines *int `json:"line_count,omitempty"`
	// Custom are the numbers of the user's commands, by their names.
	Custom map[string]float64 `json:"custom,omitempty"`
	// Missing says why a metric is not there, by its name: NameCoverage …, or that
	// of the user's.
	Missing map[string]string `json:"missing,omitempty"`
	// TookMS is how long the commands ran, in milliseconds.
	TookMS int64 `json:"took_ms,omitempty"`
}

// The metrics by their names in [Metrics].Missing and [Plan].Why.
const (
	NameCoverage = "coverage"
	NameTypes    = "types"
	NameLint     = "lint"
	NameLines    = "lines"
)

// Told are the metrics as others are told of them: without the name of what is
// kept here.
func (m *Metrics) Told() *Metrics {
	told := *m
	told.Profile = ""
	return &told
}

// miss notes why a metric is not there.
func (m *Metrics) miss(name, why string) {
	if m.Missing == nil {
		m.Missing = make(map[string]string)
	}
	m.Missing[name] = clip(why, maxReason)
}

// autoLimit is how long a check of types or a linter may take that nobody asked
// for.
const autoLimit = 2 * time.Minute

// Plan is how metrics are taken: decided at the baseline, so that what the agent
// does to the project's configuration does not change it. And it is what they are
// compared with.
type Plan struct {
	// First is the first snapshot; Files and Lines are those of it.
	First workspace.ID `json:"first,omitempty"`
	Files int          `json:"files,omitempty"`
	Lines *int         `json:"lines,omitempty"`
	// Types and Lint are the commands that run unasked; Why says why there is none,
	// by metric.
	Types []project.Command `json:"types,omitempty"`
	Lint  []project.Command `json:"lint,omitempty"`
	Why   map[string]string `json:"why,omitempty"`
	// Modules map Go's import paths to folders.
	Modules []coverage.Module `json:"modules,omitempty"`
	// Proven tells that a run with coverage ended as one without does.
	Proven bool `json:"proven,omitempty"`
	// Profile is the baseline's coverage, without lines that hold nothing, and At
	// the snapshot whose lines it tells of.
	Profile string       `json:"profile,omitempty"`
	At      workspace.ID `json:"at,omitempty"`
	// Base are the metrics that everything is compared with.
	Base *Metrics `json:"base,omitempty"`
}

// Off notes that a metric is not taken any more.
func (p *Plan) Off(name, why string) {
	if p.Why == nil {
		p.Why = make(map[string]string)
	}
	p.Why[name] = clip(why, maxReason)
}

// Begin makes the plan of a workspace whose first snapshot is taken: what is
// measured unasked is what the projects nearest to its root are configured for.
func (t *Meter) Begin(ctx context.Context, first workspace.ID) error {
	*t.Plan = Plan{First: first}
	p := t.Plan
	all, err := project.Detect(t.config())
	if err != nil {
		p.Off(NameTypes, err.Error())
		p.Off(NameLint, err.Error())
	}
	const most = 500
	for i := range all {
		if one := &all[i]; one.Module != "" && len(p.Modules) < most {
			p.Modules = append(p.Modules, coverage.Module{Path: one.Module, Dir: one.Dir})
		}
	}
	nearest := 0
	for nearest < len(all) && all[nearest].Dir == all[0].Dir {
		nearest++
	}
	all = all[:nearest]
	p.Types = p.quiet(NameTypes, all, func(p *project.Project) *project.Command { return &p.Types })
	p.Lint = p.quiet(NameLint, all, func(p *project.Project) *project.Command { return &p.Lint })
	return t.firstSize(ctx)
}

// config is for commands of this workspace.
func (t *Meter) config() project.Config {
	return project.Config{Files: os.DirFS(t.Files.Root()), Scratch: t.Scratch, Installed: installed}
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// quiet are the commands that may run unasked.
func (p *Plan) quiet(name string, all []project.Project,
	of func(p *project.Project) *project.Command) []project.Command {
	var list []project.Command
	heavy := ""
	for i := range all {
		switch c := of(&all[i]); {
		case c.Script == "":
		case c.Quiet:
			list = append(list, *c)
		default:
			heavy = c.Script
		}
	}
	switch {
	case len(list) > 0 || p.Why[name] != "":
	case heavy != "":
		p.Off(name, fmt.Sprintf("%q builds the project again, so it is not run unasked: --%s COMMAND does", heavy, name))
	case len(all) == 0:
		p.Off(name, "no project was recognised; --"+name+" COMMAND says how")
	default:
		p.Off(name, "the project is not configured for it; --"+name+" COMMAND says how")
	}
	return list
}

// Checked is what of metrics a run of the completion command gave.
type Checked struct {
	// Tests is nil where they are not known.
	Tests *int
	// Profile is the coverage; nil where there is none, and then Lacks says why.
	Profile *coverage.Profile
	Lacks   string
}

// Take measures what the check did not: of snapshot now, which is that of the
// files that are there. An error is one of the machine, or the context's; that a
// command fails is told in Missing.
func (t *Meter) Take(ctx context.Context, c *Checked, now workspace.ID) (*Metrics, error) {
	m := &Metrics{Tests: c.Tests}
	began := time.Now()
	if err := t.takeCoverage(ctx, m, c); err != nil {
		return nil, err
	}
	for _, take := range []func(context.Context, *Metrics) error{t.takeTypes, t.takeLint, t.takeCustom} {
		if err := take(ctx, m); err != nil {
			return nil, err
		}
	}
	m.TookMS = time.Since(began).Milliseconds()
	return m, t.takeSize(ctx, m, now)
}

func (t *Meter) takeTypes(ctx context.Context, m *Metrics) error {
	found, _, err := t.findings(ctx, m, NameTypes, t.Measures.Types, t.Plan.Types)
	if err != nil || found == nil {
		return err
	}
	m.TypeErrors = found
	script := t.Measures.Types
	if script == config.Auto && len(t.Plan.Types) > 0 {
		script = t.Plan.Types[0].Script
	}
	if slices.Contains(strings.Fields(script), "tsc") {
		m.TypeScriptErrors = found
	}
	return nil
}

func (t *Meter) takeLint(ctx context.Context, m *Metrics) (err error) {
	m.LintErrors, m.LintWarnings, err = t.findings(ctx, m, NameLint, t.Measures.Lint, t.Plan.Lint)
	return err
}

// findings runs what counts type errors or what linters say; nil when that is not
// known.
func (t *Meter) findings(ctx context.Context, m *Metrics, name, way string, commands []project.Command) (found,
	warnings *int, err error) {
	limit := t.Limit
	switch way {
	case config.Off:
		return nil, nil, nil
	case config.Auto:
		if why := t.Plan.Why[name]; why != "" {
			m.miss(name, why)
			return nil, nil, nil
		}
		if limit <= 0 || limit > autoLimit {
			limit = autoLimit
		}
	default:
		commands = []project.Command{
			{Script: way, Dir: ".", Results: []project.Result{{Format: project.FormatLines, Stream: project.Both}}}}
	}
	errorsFound, warningsFound := 0, 0
	for i := range commands {
		e, w, why, err := t.count(ctx, limit, &commands[i])
		if err != nil {
			return nil, nil, err
		}
		if errors.Is(why, errTookTooLong) && way == config.Auto {
			why = fmt.Errorf("%q %w; --%s COMMAND runs it all the same", commands[i].Script, why, name)
			t.Plan.Off(name, why.Error())
		}
		if why != nil {
			m.miss(name, why.Error())
			return nil, nil, nil
		}
		errorsFound, warningsFound = errorsFound+e, warningsFound+w
	}
	return &errorsFound, &warningsFound, nil
}

// errTookTooLong is why a metric is missing whose command was stopped.
var errTookTooLong = errors.New("took too long")

// count runs a command and counts what it found; why tells what kept it from
// that. That nothing was found is believed of a command that succeeds only.
func (t *Meter) count(ctx context.Context, limit time.Duration, c *project.Command) (found, warnings int, why,
	err error) {
	ran, err := t.Run(ctx, c, limit)
	if err != nil {
		return 0, 0, nil, err
	}
	defer ran.Close()
	if ran.TimedOut {
		return 0, 0, fmt.Errorf("%w: it was stopped after %s", errTookTooLong, limit), nil
	}
	from := ran.Both
	if c.Results[0].Stream == project.Stdout {
		from = ran.Stdout
	}
	if _, err := from.Seek(0, 0); err != nil {
		return 0, 0, nil, err
	}
	found, warnings, why = project.CountFindings(c.Results[0].Format, from)
	if ran.Exit != 0 && (why != nil || found+warnings == 0) {
		why = fmt.Errorf("%q ended with exit status %d and told of no finding: %s", clip(c.Script, 200), ran.Exit,
			ran.lastLine())
	}
	return found, warnings, why, nil
}

// takeCustom runs the user's own metrics.
func (t *Meter) takeCustom(ctx context.Context, m *Metrics) error {
	for i := range t.Measures.Metrics {
		c := &t.Measures.Metrics[i]
		ran, err := t.Run(ctx, &project.Command{Script: c.Command, Dir: "."}, t.Limit)
		if err != nil {
			return err
		}
		line, err := ran.result()
		ran.Close()
		if err != nil {
			return err
		}
		value, parseErr := strconv.ParseFloat(line, 64)
		switch {
		case ran.TimedOut:
			m.miss(c.Name, fmt.Sprintf("it was stopped after %s", t.Limit))
		case ran.Exit != 0:
			m.miss(c.Name, fmt.Sprintf("it ended with exit status %d: %s", ran.Exit, ran.lastLine()))
		case parseErr != nil || math.IsNaN(value) || math.IsInf(value, 0):
			m.miss(c.Name, fmt.Sprintf("its last line %q is no number", line))
		default:
			if m.Custom == nil {
				m.Custom = make(map[string]float64, len(t.Measures.Metrics))
			}
			m.Custom[c.Name] = value
		}
	}
	return nil
}
