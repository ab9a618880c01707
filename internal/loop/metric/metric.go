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
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// Metrics are measurements of a workspace. A nil metric was not measured; Missing has the
// reason if users may expect it.
type Metrics struct {
	// Tests is the number of tests that the check reported.
	Tests *int `json:"test_count,omitempty"`
	// Coverage is CoveredLines in percent of CodeLines.
	Coverage     *float64 `json:"coverage_percentage,omitempty"`
	CoveredLines int      `json:"covered_lines,omitempty"`
	CodeLines    int      `json:"code_lines,omitempty"`
	// Profile is the name under which the covered lines are stored.
	Profile string `json:"coverage_profile,omitempty"`
	// Loss is the coverage lost since the baseline.
	Loss *Loss `json:"coverage_loss,omitempty"`
	// TypeErrors are the errors of the type checker; TypeScriptErrors the same number if it
	// is TypeScript's.
	TypeErrors       *int `json:"type_errors,omitempty"`
	TypeScriptErrors *int `json:"typescript_errors,omitempty"`
	LintErrors       *int `json:"lint_errors,omitempty"`
	LintWarnings     *int `json:"lint_warnings,omitempty"`
	// Files is the number of files in the snapshot; Lines the number of lines in its text
	// files of at most 1 MiB.
	Files *int `json:"file_count,omitempty"`
	Lines *int `json:"line_count,omitempty"`
	// Custom are the numbers of the user's commands, by name.
	Custom map[string]float64 `json:"custom,omitempty"`
	// Missing is why a metric is absent, by its name: NameCoverage and so on, or that of a
	// user's metric.
	Missing map[string]string `json:"missing,omitempty"`
	// TookMS is the time that the commands took, in milliseconds.
	TookMS int64 `json:"took_ms,omitempty"`
}

// Names of metrics in [Metrics].Missing and [Plan].Why.
const (
	NameCoverage = "coverage"
	NameTypes    = "types"
	NameLint     = "lint"
	NameLines    = "lines"
)

// Told returns the metrics for users, without the internal name of the profile.
func (m *Metrics) Told() *Metrics {
	told := *m
	told.Profile = ""
	return &told
}

// miss records why a metric is absent.
func (m *Metrics) miss(name, why string) {
	if m.Missing == nil {
		m.Missing = make(map[string]string)
	}
	m.Missing[name] = clip.Bytes(why, maxReason)
}

// autoLimit is the time limit of a type checker or linter that the user did not
// configure.
const autoLimit = 2 * time.Minute

// Plan records how metrics are measured and what they are compared with. It is made at
// the baseline, so that changes of the agent to the project's configuration do not affect
// it.
type Plan struct {
	// First is the first snapshot; Files and Lines are its numbers.
	First workspace.ID `json:"first,omitempty"`
	Files int          `json:"files,omitempty"`
	Lines *int         `json:"lines,omitempty"`
	// Types and Lint are the commands that run without configuration; Why is the reason if
	// there is none, by metric.
	Types []project.Command `json:"types,omitempty"`
	Lint  []project.Command `json:"lint,omitempty"`
	Why   map[string]string `json:"why,omitempty"`
	// Modules map Go import paths to folders.
	Modules []coverage.Module `json:"modules,omitempty"`
	// Proven is set once a run with coverage ended like one without.
	Proven bool `json:"proven,omitempty"`
	// Profile is the baseline's coverage, without blank lines, and At the snapshot that its
	// line numbers refer to.
	Profile string       `json:"profile,omitempty"`
	At      workspace.ID `json:"at,omitempty"`
	// Base are the metrics that later ones are compared with.
	Base *Metrics `json:"base,omitempty"`
}

// Off switches a metric off, with the reason.
func (p *Plan) Off(name, why string) {
	if p.Why == nil {
		p.Why = make(map[string]string)
	}
	p.Why[name] = clip.Bytes(why, maxReason)
}

// Begin makes the plan of a workspace after its first snapshot. Without configuration it
// measures what the projects nearest to the root are set up for.
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

// config returns the configuration for commands of this workspace.
func (t *Meter) config() project.Config {
	return project.Config{Files: os.DirFS(t.Files.Root()), Scratch: t.Scratch, Installed: installed}
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// quiet returns the commands that may run without configuration.
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
		p.Off(name, fmt.Sprintf("%q builds the project again, so it does not run by default: set it with --%s COMMAND",
			heavy, name))
	case len(all) == 0:
		p.Off(name, "no project was recognised; set a command with --"+name+" COMMAND")
	default:
		p.Off(name, "the project does not configure it; set a command with --"+name+" COMMAND")
	}
	return list
}

// Checked are the metrics that a run of the completion command provides.
type Checked struct {
	// Tests is nil if the number is not known.
	Tests *int
	// Profile is the coverage; if it is nil, Lacks is the reason.
	Profile *coverage.Profile
	Lacks   string
}

// Take measures what the check did not, in the workspace files, which equal snapshot now.
// Errors are those of the machine and of the context; a failing command is recorded in
// Missing.
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

// findings counts type errors or linter findings; nil if the number is not known.
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
			why = fmt.Errorf("%q %w; --%s COMMAND runs it without this limit", commands[i].Script, why, name)
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

// errTookTooLong is the reason for a metric whose command was stopped.
var errTookTooLong = errors.New("took too long")

// count runs a command and counts its findings; why is the reason if it cannot. A count
// of zero is accepted only from a command that succeeds.
func (t *Meter) count(ctx context.Context, limit time.Duration, c *project.Command) (found, warnings int, why,
	err error) {
	ran, err := t.Run(ctx, c, limit)
	if err != nil {
		return 0, 0, nil, err
	}
	defer ran.Close()
	if ran.TimedOut {
		return 0, 0, fmt.Errorf("%w: stopped after %s", errTookTooLong, limit), nil
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
		why = fmt.Errorf("%q failed with exit status %d and no findings: %s", clip.Bytes(c.Script, 200), ran.Exit,
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
			m.miss(c.Name, fmt.Sprintf("stopped after %s", t.Limit))
		case ran.Exit != 0:
			m.miss(c.Name, fmt.Sprintf("failed with exit status %d: %s", ran.Exit, ran.lastLine()))
		case parseErr != nil || math.IsNaN(value) || math.IsInf(value, 0):
			m.miss(c.Name, fmt.Sprintf("the last line %q is not a number", line))
		default:
			if m.Custom == nil {
				m.Custom = make(map[string]float64, len(t.Measures.Metrics))
			}
			m.Custom[c.Name] = value
		}
	}
	return nil
}
