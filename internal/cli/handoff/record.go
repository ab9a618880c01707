package handoff

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	// build sets the arguments in the operation; nil sets its text.
	build func(op *ledger.Op, args []string)
}

func partialFlag(cmd *cobra.Command, op *ledger.Op) {
	cmd.Flags().StringVar(&op.Partial, "partial", "", "`TEXT` progress of the current step")
}

// workVerbs returns the commands that record steps, decisions and plans.
func workVerbs() []verb {
	return []verb{
		{kind: ledger.OpStep, use: "step DONE", short: "Record a completed step with its files",
			long: "Record a completed step with the source files that it created and modified; ignored files and build output " +
				"are skipped. The step is removed from the pending ones: that of --pending, else the current step, else the " +
				"one with the same text. The current step is cleared, or set with --current.",
			example: "perdure handoff step \"Created DarkModeToggle\" --created src/DarkModeToggle.tsx --modified src/App.tsx",
			least:   1, most: -1, what: "the completed step",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				f := cmd.Flags()
				f.StringArrayVar(&op.Created, "created", nil, "`FILE` source file that the step created; repeatable")
				f.StringArrayVar(&op.Modified, "modified", nil, "`FILE` source file that the step changed; repeatable")
				f.StringVar(&op.Pending, "pending", "", "`STEP` pending step that is completed, by number or text")
				f.StringVar(&op.Current, "current", "", "`STEP` next current step")
				f.BoolVar(&op.RunAgain, "run-again", false,
					"the result is not in files (a deployment, a call): the next agent has to run it again")
			}},
		{kind: ledger.OpDecide, use: "decide DECISION", short: "Record a decision and its reason",
			long:    "Record a decision that the next agent has to respect, and its reason.",
			example: "perdure handoff decide \"CSS variables\" --because \"no runtime style calculation\"",
			least:   1, most: -1, what: "the decision",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().StringVar(&op.Because, "because", "", "`TEXT` reason")
			}},
		{kind: ledger.OpCurrent, use: "current STEP", short: "Set the current step",
			long:    "Set the current step and its progress.",
			example: "perdure handoff current \"Wire toggle to ThemeContext\" --partial \"useTheme is imported\"",
			least:   1, most: -1, what: "the step", flags: partialFlag},
		{kind: ledger.OpPending, use: "pending STEP...", short: "Add, replace or remove pending steps",
			long:    "Add pending steps, replace them all, or remove some by number or text.",
			example: "perdure handoff pending \"Write unit tests\" \"Write E2E test\"\n perdure handoff pending --remove 2",
			least:   0, most: -1, what: "the steps",
			build: func(op *ledger.Op, args []string) { op.Steps = args },
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().BoolVar(&op.Replace, "replace", false, "replace all pending steps")
				cmd.Flags().BoolVar(&op.Remove, "remove", false, "remove pending steps, by number or text")
			}},
		{kind: ledger.OpNext, use: "next ACTION", short: "Set the next action, in one sentence with a path",
			long:    "Set the first action of the next agent, in one sentence with a path.",
			example: "perdure handoff next \"Implement onClick in src/DarkModeToggle.tsx\"",
			least:   1, most: -1, what: "the action"},
		{kind: ledger.OpPhase, use: "phase PHASE", short: "Set the phase of the work",
			long:    "Set the phase of the work: " + strings.Join(ledger.Phases(), ", ") + ".",
			example: "perdure handoff phase verification",
			least:   1, most: 1, what: "one phase",
			build: func(op *ledger.Op, args []string) { op.Phase = handoff.Phase(args[0]) }},
		{kind: ledger.OpTried, use: "tried APPROACH", short: "Record a failed approach",
			long: "Record an approach that failed, so that it is not tried again.",
			example: "perdure handoff tried \"CSS-in-JS theme\" --outcome \"flashes on load\" " +
				"--because \"styles come after paint\"",
			least: 1, most: -1, what: "the approach",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().StringVar(&op.Outcome, "outcome", "", "`TEXT` outcome")
				cmd.Flags().StringVar(&op.Because, "because", "", "`TEXT` reason of the failure")
			}},
		{kind: ledger.OpForbid, use: "forbid WHAT", short: "Record what must not be done",
			long:    "Record what must not be done, or allow it again with --remove, by number or text.",
			example: "perdure handoff forbid \"Do not touch src/legacy\"",
			least:   1, most: -1, what: "the forbidden action",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().BoolVar(&op.Remove, "remove", false, "allow it again")
			}},
		{kind: ledger.OpBlock, use: "block BLOCKER", short: "Record a blocker",
			long:    "Record a blocker of the work.",
			example: "perdure handoff block \"the API key is missing\"",
			least:   1, most: -1, what: "the blocker"},
		{kind: ledger.OpUnblock, use: "unblock BLOCKER", short: "Remove a blocker, by number or text",
			example: "perdure handoff unblock 1",
			least:   1, most: -1, what: "the blocker"},
	}
}

// eventVerbs returns the commands that record events.
func eventVerbs() []verb {
	return []verb{
		{kind: ledger.OpContext, use: "context", short: "Record the use of the agent's context",
			long: "Record the use of the agent's context. From 75% the checkpoint is marked as one before a context limit; " +
				"from 90% stop after the current step and resume with a new session; the exit status is then 8.",
			example: "perdure handoff context --used 78%",
			most:    0, what: "no arguments",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().Var((*fraction)(&op.Used), "used", "`PART` used part, such as 78% or 0.78")
				cmd.Flags().StringVar(&op.Source, "source", "", "`ORIGIN` origin of the number: reported, observed or estimated")
				partialFlag(cmd, op)
			}},
		{kind: ledger.OpSave, use: "save", short: "Write the checkpoint now",
			long:    "Write the checkpoint now, with the progress of the current step.",
			example: "perdure handoff save --partial \"half of the tests are ported\"",
			most:    0, what: "no arguments",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().StringVar((*string)(&op.Reason), "reason", string(handoff.ReasonManual),
					"`REASON` manual or periodic")
				partialFlag(cmd, op)
			}},
		{kind: ledger.OpFail, use: "fail REASON", short: "Record a failure of the work",
			long: "Record a failure of the work; the reason becomes a blocker. The claim is released, so that another agent " +
				"can continue.",
			example: "perdure handoff fail \"jest hangs after 3 retries\"",
			least:   1, most: -1, what: "the reason", flags: partialFlag},
		{kind: ledger.OpRateLimit, use: "rate-limit [MESSAGE]", short: "Record that a rate limit stopped the work",
			long:    "Record that a rate limit stopped the work, its end, and the progress of the current step.",
			example: "perdure handoff rate-limit --until 2026-02-28T11:00:00Z --partial \"handler is written\"",
			most:    -1, what: "the message of the limit",
			flags: func(cmd *cobra.Command, op *ledger.Op) {
				cmd.Flags().Var((*instant)(&op.Until), "until", "`TIME` end of the limit: a time, or a duration such as 10m")
				partialFlag(cmd, op)
			}},
		{kind: ledger.OpDone, use: "done [REMARK]", short: "End the work and remove its checkpoint",
			long: "End the work. The checkpoint in the file becomes null; `perdure handoff log` shows the ledger for another " +
				"30 days.",
			example: "perdure handoff done",
			most:    -1, what: "a remark"},
	}
}

func (c *commands) recordCommands() []*cobra.Command {
	cmds := []*cobra.Command{c.newStartCommand(), c.newReassignCommand()}
	for _, v := range append(workVerbs(), eventVerbs()...) {
		op := ledger.Op{Kind: v.kind}
		cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example,
			Args: env.Arguments(v.least, v.most, v.what),
			RunE: func(cmd *cobra.Command, args []string) error {
				if v.build != nil {
					v.build(&op, args)
				} else {
					op.Text = strings.Join(args, " ")
				}
				return c.record(cmd, op)
			}}
		if v.flags != nil {
			v.flags(cmd, &op)
		}
		c.workFlags(cmd)
		cmds = append(cmds, cmd)
	}
	return cmds
}

// record records operations and prints the state of the checkpoint.
func (c *commands) record(cmd *cobra.Command, ops ...ledger.Op) error {
	for i := range ops {
		if err := ops[i].Check(); err != nil {
			return err
		}
		c.anchor(ops[i].Created)
		c.anchor(ops[i].Modified)
	}
	return c.on(cmd, env.Write, func(ctx context.Context, r *ledger.Recorder) error {
		u, err := r.Apply(ctx, ops...)
		if err != nil {
			return err
		}
		if err := c.release(ctx, r, u, ops); err != nil {
			return err
		}
		return c.printUpdate(r, u)
	})
}

// anchor makes paths absolute.
func (c *commands) anchor(paths []string) {
	for i := range paths {
		paths[i] = c.Path(paths[i])
	}
}

// release releases the claim after a failure or a reassignment.
func (c *commands) release(ctx context.Context, r *ledger.Recorder, u *ledger.Update, ops []ledger.Op) error {
	for _, op := range ops {
		if (op.Kind == ledger.OpFail || op.Kind == ledger.OpReassign) && r.Token != "" {
			return r.Release(ctx, u.Task.ID)
		}
	}
	return nil
}

// recorded is the output as JSON.
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

// printUpdate prints the state of the work after a write.
func (c *commands) printUpdate(r *ledger.Recorder, u *ledger.Update) error {
	notes := u.Notes
	for _, path := range u.Left {
		notes = append(notes, path+" is skipped: ignored or build output")
	}
	size := 0
	if u.Checkpoint != nil {
		raw, err := u.Checkpoint.Compact()
		if err != nil {
			return err
		}
		size = len(raw)
	}
	out := recorded{u.Handoff.ID, u.Task.ID, r.Location.File, u.Handoff.Version, u.Checkpoint == nil, size,
		u.Checkpoint, append([]string{}, notes...)}
	err := c.Print(out, func() {
		c.notes(notes)
		task, l := c.Out.Bold(human.OneLine(u.Task.ID)), &u.Ledger
		if u.Checkpoint == nil {
			c.Printf("%s is done; ledger %s is kept (%s)\n", task, u.Handoff.ID, human.Count(u.Handoff.Version, "record"))
			return
		}
		c.Printf("%s: %s, %d pending, %s; checkpoint %d of %d bytes\n", task,
			human.Count(len(l.CompletedSteps), "completed step"), len(l.PendingSteps),
			human.Count(len(l.Decisions), "decision"), size, handoff.DefaultLimit)
	})
	if err == nil && u.Stop {
		err = &env.Exit{Status: env.StatusNewSession}
	}
	return err
}

func (c *commands) batch(cmd *cobra.Command, name string) error {
	if info, err := os.Stat(c.Path(name)); name != "-" && err == nil && info.IsDir() {
		return env.UsageError("name a file, or - for standard input", "--batch %q is a folder", name)
	}
	in, err := c.OpenFile(name)
	if err != nil {
		return env.NotFound("", "read batch: %s", err)
	}
	defer in.Close()
	ops, err := ledger.ReadOps(in)
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		return env.UsageError("", "read batch: no operations")
	}
	return c.record(cmd, ops...)
}

// fraction is a flag such as 78% or 0.78.
type fraction float64

// Set parses the text of a flag.
func (f *fraction) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		msg := strconv.Quote(text) + " is not a part between 0% and 100%"
		if err == nil && !percent && v > 1 && v <= 100 {
			msg += "; did you mean " + text + "%?"
		}
		return env.UsageError("", "%s", msg)
	}
	*f = fraction(v)
	return nil
}

// String returns the text.
func (f *fraction) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*f)*100, 'f', -1, 64) + "%"
}

// Type returns the value's name for the help.
func (f *fraction) Type() string { return "PART" }

// instant is a flag: a time, or a duration from now.
type instant time.Time

// Set parses the text of a flag.
func (t *instant) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil {
		*t = instant(time.Now().Add(d).UTC().Truncate(time.Second))
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return env.UsageError("", "%q is not a time such as 2026-02-28T11:00:00Z, or a duration such as 10m", text)
	}
	*t = instant(at.UTC())
	return nil
}

// String returns the text.
func (t *instant) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return time.Time(*t).Format(time.RFC3339)
}

// Type returns the value's name for the help.
func (t *instant) Type() string { return "TIME" }
