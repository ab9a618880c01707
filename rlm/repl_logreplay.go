package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// LogReplayer runs the code of logs of recursive language models again.
type LogReplayer struct {
	// Python, Hidden and Unsandboxed are as in [ExecutorConfig].
	Python      string
	Hidden      []string
	Unsandboxed bool
	// Contexts are the contexts of the runs, for a log that has none: one for all, or one for each.
	Contexts []string
}

// LogReplay is what came of running the code of a log again.
type LogReplay struct {
	// Model is the model that wrote the code of the first run, "" if the log does not say.
	Model      string `json:"model,omitempty"`
	Iterations int    `json:"iterations"`
	// Blocks counts the blocks that were run again, Calls their sub-calls in the log.
	Blocks int `json:"blocks"`
	Calls  int `json:"calls"`
	// Runs are the runs of the log, Differences the blocks that did something else than what is in it.
	Runs        []LogRun        `json:"runs"`
	Differences []LogDifference `json:"differences"`
	// TornLine is the number of a last line that is cut off and was left out, 0 without one.
	TornLine int `json:"torn_line,omitempty"`
	// WithoutContext is set if the log of a run has no context and none was given.
	WithoutContext bool `json:"without_context,omitempty"`
}

// LogRun is a run of a log: the iterations from a question to its answer.
type LogRun struct {
	Run         int    `json:"run"`  // from 1
	Line        int    `json:"line"` // of its first iteration, from 1
	Model       string `json:"model,omitempty"`
	Iterations  int    `json:"iterations"`
	Blocks      int    `json:"blocks"`
	Calls       int    `json:"calls"`
	Differences int    `json:"differences"`
	// Continues is set if the run has the variables of the one before it.
	Continues bool   `json:"continues,omitempty"`
	Answer    string `json:"answer,omitempty"`
}

// LogDifference is a block that did something else when it was run again.
type LogDifference struct {
	Run       int    `json:"run"`  // from 1
	Line      int    `json:"line"` // of the log, from 1
	Iteration int    `json:"iteration"`
	Block     int    `json:"block"` // of the iteration, from 0
	Turn      int    `json:"-"`     // the place of the iteration in the log, from 1
	What      string `json:"what"`
	// Recorded and New are what differs, as the log and the new run have it; both are empty if there
	// is nothing to compare.
	Recorded string `json:"recorded,omitempty"`
	New      string `json:"new,omitempty"`
}

// String returns the difference with what is recorded and new.
func (d *LogDifference) String() string {
	if d.Recorded == d.New {
		return d.What
	}
	return fmt.Sprintf("%s (recorded %s, new %s)", d.What, d.Recorded, d.New)
}

// Replay runs the code of a log again, with the sub-calls' answers that the log has, and
// compares the output of each block with the log. It asks no model. A log that is not of the
// format is an error with CodeInvalid that names the line.
func (p *LogReplayer) Replay(ctx context.Context, log io.Reader) (report LogReplay, err error) {
	x := &logReplay{p: p, in: trajectory.NewReader(log)}
	x.report.Differences, x.report.Runs = []LogDifference{}, []LogRun{}
	defer func() { err = errors.Join(err, x.close()) }()
	for {
		it, err := x.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = x.iteration(ctx, it)
		}
		if err != nil {
			return x.report, logError(err)
		}
	}
	x.report.TornLine = x.in.Torn()
	if x.report.Iterations == 0 {
		return x.report, logError(&trajectory.LineError{Line: max(x.in.Line(), 1), Msg: "the log has no iterations"})
	}
	if n, runs := len(p.Contexts), len(x.report.Runs); n > 1 && n != runs {
		return x.report, invalid(fmt.Sprintf("%d contexts were given, and the log has %d runs", n, runs),
			"give one context for all runs, or one for each")
	}
	x.report.Model = x.report.Runs[0].Model
	return x.report, nil
}

// logReplay is a replay that is under way.
type logReplay struct {
	p      *LogReplayer
	in     *trajectory.Reader
	report LogReplay
	engine python.Engine
	// session runs the code of the run, nil before its first block, material is its context.
	session  engine.Session
	material *logContext
	rules    *engine.Reference
	setUp    bool
	contexts int // of the session: the numbers of the variables context_0, context_1, …
}

// close ends the session.
func (x *logReplay) close() error {
	if x.session == nil {
		return nil
	}
	err := x.session.Close()
	x.session = nil
	return err
}

// run returns the run that is replayed.
func (x *logReplay) run() *LogRun { return &x.report.Runs[len(x.report.Runs)-1] }

// iteration runs the blocks of an iteration.
func (x *logReplay) iteration(ctx context.Context, it *trajectory.Iteration) error {
	if x.in.Run() > len(x.report.Runs) {
		if err := x.begin(ctx, it); err != nil {
			return err
		}
	}
	x.report.Iterations++
	x.run().Iterations++
	for i := range it.CodeBlocks {
		if err := x.block(ctx, it, i); err != nil {
			return err
		}
	}
	if it.FinalAnswer != nil {
		x.run().Answer = it.FinalAnswer.Text
	}
	return nil
}

// begin begins a run: with the variables of the one before it, if its first block has a further context
// after the first one.
func (x *logReplay) begin(ctx context.Context, it *trajectory.Iteration) error {
	run := LogRun{Run: x.in.Run(), Line: x.in.Line()}
	if m := x.in.Metadata(); m != nil && m.RootModel != nil {
		run.Model = *m.RootModel
	}
	var first *trajectory.CodeBlock
	if len(it.CodeBlocks) > 0 {
		first = &it.CodeBlocks[0]
	}
	if added := addedContext(first, x.contexts); x.session != nil && added != nil {
		run.Continues = true
		x.report.Runs = append(x.report.Runs, run)
		x.contexts++
		return x.session.Set(ctx, added)
	}
	x.report.Runs = append(x.report.Runs, run)
	return x.close()
}

// start starts the engine for the first block of a run.
func (x *logReplay) start(ctx context.Context, it *trajectory.Iteration, i int) error {
	m := x.in.Metadata()
	if m != nil && m.EnvironmentKwargs["engine"] == EngineStarlark {
		return invalid("the code of the log is Starlark", "use `perdure replay TREE` for runs of your own")
	}
	var err error
	if x.material, err = x.context(it, i); err != nil {
		return &trajectory.LineError{Line: x.in.Line(), Msg: err.Error()}
	}
	x.rules, x.contexts, x.setUp = rulesOf(m), 1, false
	if x.rules != nil && x.material != nil {
		x.material.given = len(x.p.Contexts) > 0
		x.rules.Context = x.material.form(x.rules.Environment)
	}
	if x.material == nil {
		x.report.WithoutContext = true
	}
	const threads = 64 // code asks models in threads of its own
	x.session, err = x.engine.Start(ctx, python.Config{KeepNames: x.rules == nil, Reference: x.rules,
		Program: x.p.Python, Hidden: x.p.Hidden, Unsandboxed: x.p.Unsandboxed,
		Limits: engine.Limits{Processes: threads}, Contents: engine.Contents{Text: x.material.file()}})
	return logEngineError(err)
}

// context returns the context of the run: a given one, or that of its first block.
func (x *logReplay) context(it *trajectory.Iteration, i int) (*logContext, error) {
	n := len(x.p.Contexts)
	if n == 0 {
		return contextOf(&it.CodeBlocks[i])
	}
	c := &logContext{text: x.p.Contexts[min(len(x.report.Runs), n)-1], plain: true}
	c.plain = !isValueContext(it) || !json.Valid([]byte(c.text))
	return c, nil
}

// isValueContext reports whether the first messages say that the context is a list or a dictionary.
func isValueContext(it *trajectory.Iteration) bool {
	kinds := regexp.MustCompile(`Your context is a (list|dict)\b`)
	return slices.ContainsFunc(it.Prompt, func(m trajectory.Message) bool { return kinds.MatchString(m.Content) })
}

// rulesOf returns the rules by which the code of a log ran, nil for those of this program.
func rulesOf(m *trajectory.Metadata) *engine.Reference {
	environment := "local"
	if m != nil && m.EnvironmentType != nil {
		environment = *m.EnvironmentType
	}
	switch environment {
	case "perdure":
		return nil
	case "docker", "modal", "prime", "daytona", "e2b":
		return &engine.Reference{Environment: "remote"}
	case "ipython":
		return &engine.Reference{Environment: environment}
	}
	return &engine.Reference{Environment: "local"}
}

// block runs a block of an iteration, and notes how it differs.
func (x *logReplay) block(ctx context.Context, it *trajectory.Iteration, i int) error {
	b := &logBlock{it: it, b: &it.CodeBlocks[i], rules: x.rules}
	if x.session == nil { // a run without code needs no engine
		if err := x.start(ctx, it, i); err != nil {
			return err
		}
	}
	b.s, b.context, b.first, b.rules = x.session, x.material, !x.setUp, x.rules
	x.setUp = true
	d, err := b.run(ctx, uint64(x.report.Blocks)) //nolint:gosec // a count
	if err != nil {
		return logEngineError(fmt.Errorf("line %d, block %d: %w", x.in.Line(), i+1, err))
	}
	run := x.run()
	run.Blocks++
	x.report.Blocks++
	run.Calls += len(b.b.Result.Calls)
	x.report.Calls += len(b.b.Result.Calls)
	if d == nil {
		return nil
	}
	if x.material == nil && strings.Contains(d.New, "name 'context") {
		return &trajectory.LineError{Line: x.in.Line(), Msg: fmt.Sprintf("block %d reads the context, which the log does "+
			"not have", i+1), Hint: "give it: perdure replay --file LOG --context FILE"}
	}
	run.Differences++
	d.Run, d.Line, d.Iteration, d.Block, d.Turn = run.Run, x.in.Line(), it.Iteration, i, x.report.Iterations
	x.report.Differences = append(x.report.Differences, *d)
	return nil
}

// logError is an error of reading a log.
func logError(err error) error {
	if bad, ok := errors.AsType[*trajectory.LineError](err); ok {
		hint := bad.Hint
		if hint == "" {
			hint = "each line is a metadata or an iteration in the form of the reference implementation"
		}
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "read log", Msg: bad.Error(), Hint: hint}
	}
	return err
}

// logEngineError is an error of the engine.
func logEngineError(err error) error {
	if f, ok := isEngine(err); ok {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "run the code of the log", Msg: err.Error(), Hint: f.Hint}
	}
	return err
}
