package handoff

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// verb is a command that records one operation.
type verb struct {
	kind, use, short, long, example string
	least, most                     int
	what                            string
	flags                           func(cmd *cobra.Command, op *ledger.Op)
	// build fills in the operation from the arguments.
	build func(op *ledger.Op, args []string) error
}

func text(op *ledger.Op, args []string) error {
	op.Text = joined(args)
	return nil
}

func partialFlag(cmd *cobra.Command, op *ledger.Op) {
	cmd.Flags().StringVar(&op.Partial, "partial", "", "a `TEXT`: how far the current step is")
}

func verbs() []verb {
	return append(workVerbs(), eventVerbs()...)
}

// workVerbs record what is done, decided and left.
func workVerbs() []verb {
	return []verb{
		{kind: ledger.OpStep, use: "step DONE", short: "Record a step that is done, with the files it touched",
			long: "Record a step that is done, with the source files it created and modified; ignored files and build output " +
				"are left " +
				"out. It takes the step out of the pending ones: the one that --pending names, else the current step's, else " +
				"the one of the same text. The current step is cleared, or set with --current.",
			example: "perdure handoff step \"Created DarkModeToggle\" --created src/DarkModeToggle.tsx --modified src/App.tsx",
			least:   1, most: -1, what: "what was done", build: text,
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				f := cmd.Flags()
				f.StringArrayVar(&op.Created, "created", nil, "a source `FILE` that the step created; may be repeated")
				f.StringArrayVar(&op.Modified, "modified", nil, "a source `FILE` that the step changed; may be repeated")
				f.StringVar(&op.Pending, "pending", "", "the pending `STEP` that this was, by number or text")
				f.StringVar(&op.Current, "current", "", "the `STEP` that is begun now")
				f.BoolVar(&op.RunAgain, "run-again", false,
					"it is not in files (a deployment, a call): who resumes has to run it again")
			}},
		{kind: ledger.OpDecide, use: "decide DECISION", short: "Record a decision and why",
			long:    "Record a decision, which whoever continues is to respect, and why it was made.",
			example: "perdure handoff decide \"CSS variables\" --because \"no runtime style calculation\"",
			least:   1, most: -1, what: "the decision", build: text,
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().StringVar(&op.Because, "because", "", "the `REASON`")
			}},
		{kind: ledger.OpCurrent, use: "current STEP", short: "Say which step is in progress",
			long:    "Say which step is in progress, and how far it is.",
			example: "perdure handoff current \"Wire toggle to ThemeContext\" --partial \"useTheme is imported\"",
			least:   1, most: -1, what: "the step", build: text, flags: partialFlag},
		{kind: ledger.OpPending, use: "pending STEP...", short: "Add, replace or remove pending steps",
			long:    "Add steps that are to be done, replace them all, or remove some by number or text.",
			example: "perdure handoff pending \"Write unit tests\" \"Write E2E test\"\n perdure handoff pending --remove 2",
			least:   0, most: -1, what: "the steps",
			build: func(op *ledger.Op, args []string) error { op.Steps = args; return nil },
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().BoolVar(&op.Replace, "replace", false, "these are the only pending steps")
				cmd.Flags().BoolVar(&op.Remove, "remove", false, "remove them, by number or text")
			}},
		{kind: ledger.OpNext, use: "next ACTION", short: "Say what to do first, in one sentence with a path",
			long:    "Say what whoever continues is to do first, in one sentence with a path.",
			example: "perdure handoff next \"Implement onClick in src/DarkModeToggle.tsx\"",
			least:   1, most: -1, what: "the action", build: text},
		{kind: ledger.OpPhase, use: "phase PHASE", short: "Say which phase the work is in",
			long:    "Say which phase the work is in: " + strings.Join(ledger.Phases(), ", ") + ".",
			example: "perdure handoff phase verification",
			least:   1, most: 1, what: "one phase",
			build: func(op *ledger.Op, args []string) error { op.Phase = handoff.Phase(args[0]); return nil }},
		{kind: ledger.OpTried, use: "tried APPROACH", short: "Record what did not work",
			long: "Record what was tried and did not work, so that nobody tries it again.",
			example: "perdure handoff tried \"CSS-in-JS theme\" --outcome \"flashes on load\" --because \"styles come after " +
				"paint\"",
			least: 1, most: -1, what: "what was tried", build: text,
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().StringVar(&op.Outcome, "outcome", "", "a `TEXT`: what came of it")
				cmd.Flags().StringVar(&op.Because, "because", "", "the `REASON`: why it did not work")
			}},
		{kind: ledger.OpForbid, use: "forbid WHAT", short: "Record what must not be done now",
			long:    "Record what must not be done now, or allow it again with --remove, by number or text.",
			example: "perdure handoff forbid \"Do not touch src/legacy\"",
			least:   1, most: -1, what: "what must not be done", build: text,
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().BoolVar(&op.Remove, "remove", false, "allow it again")
			}},
		{kind: ledger.OpBlock, use: "block BLOCKER", short: "Record what is in the way",
			long:    "Record what is in the way of the work.",
			example: "perdure handoff block \"the API key is missing\"",
			least:   1, most: -1, what: "the blocker", build: text},
		{kind: ledger.OpUnblock, use: "unblock BLOCKER", short: "Remove a blocker, by number or text",
			long:    "Remove a blocker, by number or text.",
			example: "perdure handoff unblock 1",
			least:   1, most: -1, what: "the blocker", build: text},
	}
}

// eventVerbs record what happens to the work.
func eventVerbs() []verb {
	return []verb{
		{kind: ledger.OpContext, use: "context", short: "Report how much of the context is used",
			long: "Report how much of the agent's context is used. At 75 % the checkpoint is marked as one before a context " +
				"limit; at " +
				"90 % it is time to stop at the next boundary and to resume with a new session.",
			example: "perdure handoff context --used 78%",
			most:    0, what: "no arguments",
			build: func(*ledger.Op, []string) error { return nil },
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().Var((*fraction)(&op.Used), "used", "the `PART` in use, as 78% or 0.78")
				cmd.Flags().StringVar(&op.Source, "source", "", "the `ORIGIN` of the figure: reported or estimated")
				partialFlag(cmd, op)
			}},
		{kind: ledger.OpSave, use: "save", short: "Write the checkpoint now",
			long:    "Write the checkpoint now, with how far the current step is.",
			example: "perdure handoff save --partial \"half of the tests are ported\"",
			most:    0, what: "no arguments",
			build: func(*ledger.Op, []string) error { return nil },
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().StringVar((*string)(&op.Reason), "reason", string(handoff.ReasonManual),
					"the `REASON`: manual or periodic")
				partialFlag(cmd, op)
			}},
		{kind: ledger.OpFail, use: "fail REASON", short: "Record that the work failed, before saying so elsewhere",
			long: "Record that the work failed and why; the reason becomes a blocker. A claim is given back, so that " +
				"another agent can continue.",
			example: "perdure handoff fail \"jest hangs after 3 retries\"",
			least:   1, most: -1, what: "the reason", build: text, flags: partialFlag},
		{kind: ledger.OpRateLimit, use: "rate-limit [MESSAGE]", short: "Record that a rate limit stopped the work",
			long:    "Record that a rate limit stopped the work, until when, and how far the current step is.",
			example: "perdure handoff rate-limit --until 2026-02-28T11:00:00Z --partial \"handler is written\"",
			most:    -1, what: "what the limit said", build: text,
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().Var((*instant)(&op.Until), "until", "when it ends: a `TIME`, or in how long (10m)")
				partialFlag(cmd, op)
			}},
		{kind: ledger.OpDone, use: "done [REMARK]", short: "End the work: the checkpoint goes, the ledger stays",
			long: "End the work. The checkpoint in the file becomes null; `perdure handoff log` still shows everything, " +
				"for 30 days.",
			example: "perdure handoff done",
			most:    -1, what: "a remark", build: text},
	}
}

func (c *commands) recordCommands() []*cobra.Command {
	cmds := []*cobra.Command{c.newStartCommand(), c.newReassignCommand()}
	for _, v := range verbs() {
		var w work
		op := ledger.Op{Kind: v.kind}
		cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example,
			Args: env.Arguments(v.least, v.most, v.what),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := v.build(&op, args); err != nil {
					return err
				}
				return c.record(cmd, &w, op)
			}}
		if v.flags != nil {
			v.flags(cmd, &op)
		}
		c.workFlags(cmd, &w)
		cmds = append(cmds, cmd)
	}
	return cmds
}

// record records operations and says what became of the checkpoint.
func (c *commands) record(cmd *cobra.Command, w *work, ops ...ledger.Op) error {
	for i := range ops {
		if err := ops[i].Check(); err != nil {
			return err
		}
		c.anchor(ops[i].Created)
		c.anchor(ops[i].Modified)
	}
	return c.on(cmd, w, true, func(ctx context.Context, r *ledger.Recorder) error {
		u, err := r.Apply(ctx, ops...)
		if err != nil {
			return err
		}
		if err := c.release(ctx, r, u, ops); err != nil {
			return err
		}
		return c.told(w, r, u)
	})
}

// anchor makes paths those of the working directory.
func (c *commands) anchor(paths []string) {
	for i := range paths {
		paths[i] = c.Path(paths[i])
	}
}

// release gives the claim back when the work is somebody else's now.
func (c *commands) release(ctx context.Context, r *ledger.Recorder, u *ledger.Update, ops []ledger.Op) error {
	for _, op := range ops {
		if (op.Kind == ledger.OpFail || op.Kind == ledger.OpReassign) && r.Token != "" {
			return r.Release(ctx, u.Task.ID)
		}
	}
	return nil
}

// recorded is what is printed as JSON.
type recorded struct {
	HandoffID  ledger.ID           `json:"handoff_id"`
	Task       string              `json:"task"`
	File       string              `json:"file"`
	Version    int64               `json:"version"`
	Done       bool                `json:"done"`
	Bytes      int                 `json:"checkpoint_bytes"`
	Checkpoint *handoff.Checkpoint `json:"checkpoint"`
	Notes      []string            `json:"notes"`
}

func (c *commands) told(w *work, r *ledger.Recorder, u *ledger.Update) error {
	notes := u.Notes
	for _, path := range u.Left {
		notes = append(notes, path+" is ignored or build output, and is not listed")
	}
	size := 0
	if u.Checkpoint != nil {
		raw, err := u.Checkpoint.Compact()
		if err != nil {
			return err
		}
		size = len(raw)
	}
	if w.asJSON {
		return c.PrintJSON(recorded{u.Handoff.ID, u.Task.ID, r.Location.File, u.Handoff.Version, u.Checkpoint == nil, size,
			u.Checkpoint, append([]string{}, notes...)})
	}
	c.notes(notes)
	if u.Checkpoint == nil {
		c.Printf("%s is done; the ledger %s keeps what was recorded (%s)\n", c.Out.Bold(human.OneLine(u.Task.ID)),
			u.Handoff.ID,
			plural(int(u.Handoff.Version), "record"))
		return nil
	}
	l := &u.Ledger
	c.Printf("%s: %s, %d pending, %s; checkpoint %d of %d bytes\n", c.Out.Bold(human.OneLine(u.Task.ID)),
		plural(len(l.CompletedSteps), "completed step"),
		len(l.PendingSteps), plural(len(l.Decisions), "decision"), size, handoff.DefaultLimit)
	return nil
}

func (c *commands) batch(cmd *cobra.Command, w *work, name string) error {
	in := c.Stdin
	if name != "-" {
		f, err := os.Open(c.Path(name))
		if err != nil {
			return &perdure.Error{Code: perdure.CodeNotFound, Op: "read batch", Err: err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return env.UsageError("name a file, or - for standard input", "--batch %q is a folder", name)
		}
		in = f
	}
	ops, err := ledger.ReadOps(in)
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "read batch", Msg: "there is no operation in it"}
	}
	return c.record(cmd, w, ops...)
}

// fraction reads 78% or 0.78.
type fraction float64

// Set reads the text of a flag.
func (f *fraction) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		msg := strconv.Quote(text) + " is not a part from 0% to 100%"
		if err == nil && !percent && v > 1 && v <= 100 {
			msg += "; do you mean " + text + "%?"
		}
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: msg}
	}
	*f = fraction(v)
	return nil
}

// String writes the value.
func (f *fraction) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*f)*100, 'f', -1, 64) + "%"
}

// Type names the value in the help.
func (f *fraction) Type() string { return "PART" }

// instant reads a time, or how long from now.
type instant time.Time

// Set reads the text of a flag.
func (t *instant) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil {
		*t = instant(time.Now().Add(d).UTC().Truncate(time.Second))
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return &perdure.Error{Code: perdure.CodeInvalid,
			Msg: strconv.Quote(text) + " is neither a time (2026-02-28T11:00:00Z) nor how long from now (10m)"}
	}
	*t = instant(at.UTC())
	return nil
}

// String writes the value.
func (t *instant) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return time.Time(*t).Format(time.RFC3339)
}

// Type names the value in the help.
func (t *instant) Type() string { return "TIME" }
