package handoff

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
)

func (c *commands) newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the work checkpoint",
		Long: "Show the completed steps, decisions and pending steps. With --json, print the checkpoint of the file. " +
			"`perdure handoff log` prints the whole ledger.",
		Example: "perdure handoff show",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: c.reading(func(ctx context.Context, r *ledger.Recorder) error {
			v, err := r.Look(ctx)
			if err != nil {
				return err
			}
			if !v.Open() {
				return v.Nothing("show work")
			}
			shown := v.Shown
			if shown == nil || v.Behind {
				shown = new(handoff.Project(v.Ledger, 0))
			}
			return c.Print(shown, func() {
				c.notes(v.Notes)
				c.Printf("%s", c.overview(v))
			})
		}),
	}
	c.workFlags(cmd)
	return cmd
}

// overview returns the ledger as text.
func (c *commands) overview(v *ledger.View) string {
	var b strings.Builder
	l := &v.Ledger
	fmt.Fprintf(&b, "%s  %s\n", c.Out.Bold(human.OneLine(v.Task.ID)), human.OneLine(string(l.Phase)))
	if l.Title != "" {
		fmt.Fprintf(&b, "%s\n", human.OneLine(l.Title))
	}
	const unnamed = "an unnamed agent"
	fmt.Fprintf(&b, "by %s, %s, %s", human.OneLine(cmp.Or(l.Metadata.CreatedBy, unnamed)),
		human.Stamp(l.Metadata.LastUpdatedAt), human.OneLine(string(l.Metadata.Reason)))
	if h := v.Handoff; h.ExpiresAt != nil && h.ExpiresAt.After(time.Now()) {
		fmt.Fprintf(&b, "; claimed by %s until %s", human.OneLine(cmp.Or(h.Agent, unnamed)), human.Stamp(*h.ExpiresAt))
	}
	b.WriteString("\n")
	section(&b, "Error", c.shown(nonEmpty(l.Error)...))
	section(&b, "Next", c.shown(nonEmpty(l.NextAction)...))
	if s := l.CurrentStep; s != nil {
		section(&b, "Current", []string{strings.TrimSpace(c.styled(s.Description, s.PartialWork))})
	}
	numbered(&b, "Blockers", c.shown(l.Blockers...))
	numbered(&b, "Not allowed", c.shown(l.NotAllowed...))
	numbered(&b, "Pending", c.shown(l.PendingSteps...))
	var done, decided, tried, checks []string
	for _, s := range l.CompletedSteps {
		files := append(append([]string{}, s.FilesCreated...), s.FilesModified...)
		text := s.Step
		if s.RunAgain {
			text += " (run again)"
		}
		done = append(done, c.styled(text, strings.Join(files, " ")))
	}
	for _, d := range l.Decisions {
		decided = append(decided, c.styled(d.Decision, d.Rationale))
	}
	for _, f := range l.FailedApproaches {
		tried = append(tried, c.styled(f.What, f.Outcome, f.Why))
	}
	for _, r := range l.Verification.Results {
		checks = append(checks, fmt.Sprintf("%s: %s (%s)", r.Activity, r.Status, cmp.Or(string(r.RanBy), "unknown")))
	}
	numbered(&b, "Done", done)
	numbered(&b, "Decided", decided)
	numbered(&b, "Failed approaches", tried)
	section(&b, "Verification", c.shown(append(nonEmpty(l.Verification.ContractRef), checks...)...))
	return b.String()
}

// shown returns the entries, each on one line and safe for the output.
func (c *commands) shown(entries ...string) []string {
	list := make([]string, len(entries))
	for i, entry := range entries {
		list[i] = c.Out.Safe(clip.OneLine(entry))
	}
	return list
}

// styled returns an entry as [commands.shown] does, with its details faint.
func (c *commands) styled(entry string, details ...string) string {
	return c.shown(entry)[0] + c.Out.Dim(suffix(c.shown(details...)...))
}

// suffix returns the parts that are not empty, each after a dash.
func suffix(parts ...string) string {
	all := ""
	for _, part := range nonEmpty(parts...) {
		all += " — " + part
	}
	return all
}

func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// maxShown bounds each list of show.
const maxShown = 20

func numbered(b *strings.Builder, title string, lines []string) {
	first := max(0, len(lines)-maxShown)
	var list []string
	if first > 0 {
		list = append(list, fmt.Sprintf("… %d earlier", first))
	}
	for i := first; i < len(lines); i++ {
		list = append(list, fmt.Sprintf("%d. %s", i+1, lines[i]))
	}
	section(b, title, list)
}

func (c *commands) newLogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print the ledger of the work",
		Long: "Print the ledger of the work in order. It is kept for 30 days after `perdure handoff done`. With --json the " +
			"output is one object a line.",
		Example: "perdure handoff log --json",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: c.reading(func(ctx context.Context, r *ledger.Recorder) error {
			v, err := r.Look(ctx)
			switch {
			case err != nil:
				return err
			case v.Handoff.ID != 0:
				return c.log(ctx, r, v)
			case v.Shown != nil:
				return env.NotFound("`perdure handoff show` shows the file's checkpoint, `perdure handoff resume` continues it",
					"no ledger of %q", v.Task.ID)
			}
			return env.NotFound("`perdure handoff start` starts recording", "no ledger of %q", v.Task.ID)
		}),
	}
	c.workFlags(cmd)
	return cmd
}

func (c *commands) log(ctx context.Context, r *ledger.Recorder, v *ledger.View) error {
	return r.Log(ctx, v, func(e *ledger.Entry, adopted []handoff.Change) error {
		return c.Print(e, func() {
			c.Printf("%4d  %s  %s  %s  %s\n", e.Number, human.Stamp(e.Time),
				c.Out.Bold(fmt.Sprintf("%-10s", human.OneLine(e.Kind))), human.OneLine(cmp.Or(e.Source, "-")),
				human.OneLine(summary(e, adopted)))
		})
	})
}

// summary returns an entry, and the changes of another program that it added, as one line.
func summary(e *ledger.Entry, adopted []handoff.Change) string {
	var op ledger.Op
	if json.Unmarshal(e.Data, &op) != nil {
		return string(e.Data)
	}
	var parts []string
	for _, part := range []struct{ before, text string }{{"", op.Text}, {"", string(op.Phase)},
		{"steps ", strings.Join(op.Steps, "; ")}, {"because ", op.Because}, {"outcome ", op.Outcome},
		{"created ", strings.Join(op.Created, " ")}, {"modified ", strings.Join(op.Modified, " ")},
		{"partial ", op.Partial}, {"now ", op.Current}, {"contract ", op.Contract}, {"", string(op.Status)},
		{"run by ", string(op.RanBy)}, {"to ", op.To}} {
		if part.text != "" {
			parts = append(parts, part.before+part.text)
		}
	}
	if op.Used > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of the context used %s", op.Used*100, op.Source))
	}
	for _, mark := range []struct {
		set  bool
		text string
	}{{op.RunAgain, "run again"}, {op.Remove, "removed"}, {op.Replace, "replaces all"}} {
		if mark.set {
			parts = append(parts, mark.text)
		}
	}
	if !op.Until.IsZero() {
		parts = append(parts, "until "+human.Stamp(op.Until))
	}
	if len(op.Theirs) > 0 && len(adopted) == 0 {
		parts = append(parts, "no change by another program")
	}
	for _, change := range adopted {
		parts = append(parts, change.String())
	}
	return strings.Join(parts, ", ")
}

func (c *commands) newStaleCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "stale",
		Short: "Compare files with the checkpoint",
		Long: "Compare the content of each file of the recorded steps with the checkpoint: fresh, changed, deleted, " +
			"missing, new, or unknown if it cannot be compared. With --check the exit status is 3 unless all files are " +
			"fresh.",
		Example: "perdure handoff stale --check",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: c.reading(func(ctx context.Context, r *ledger.Recorder) error {
			v, err := r.Look(ctx)
			if err != nil {
				return err
			}
			verdict, err := r.Staleness(ctx, v)
			if err != nil {
				return err
			}
			err = c.Print(&verdict, func() { c.printVerdict(&verdict) })
			if err == nil && check && verdict.Summary != handoff.AllFresh {
				return &env.Exit{Status: env.StatusIncomplete}
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "exit with status 3 unless all files are fresh")
	c.workFlags(cmd)
	return cmd
}

func (c *commands) printVerdict(v *handoff.Verdict) {
	for _, f := range v.Files {
		c.Printf("%-8s %s\n", f.State, human.OneLine(f.Path))
	}
	if v.Unlisted > 0 {
		c.Printf("%-8s %d more files that the checkpoint does not list\n", handoff.Unknown, v.Unlisted)
	}
	if v.Summary == handoff.Stale {
		c.Printf("%s\n", c.Out.Bold("Checkpoint may be stale — files modified since checkpoint"))
	} else {
		c.Printf("%s\n", c.Out.Bold(string(v.Summary)))
	}
}
