package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop/record"
)

func (c *commands) newFalseAlarmCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "false-alarm [LOOP] [FINDING]",
		Short: "Mark a finding as a false alarm, or list false alarms",
		Long: "Mark a regression (such as reg-003-1, from `perdure loop status --regressions`) or a finding (its " +
			"fingerprint, or at least six of its first digits) as a false alarm: it does not block this loop again and " +
			"counts in the loop's false_positive_rate. User, time and reason are kept. The answer whitelist at a gate does " +
			"the same and continues. Without a finding, list the false alarms. For findings in all loops, use a waiver " +
			"(docs/check.md).",
		Example: "perdure loop false-alarm reg-003-1 --reason \"the helper moved to another module\"\n" +
			" perdure loop false-alarm fix-tests-1a2b3c4d 5dfbb78ffb9b5387",
		Args: env.Arguments(0, 2, "a loop and a finding, or one of them"),
		RunE: c.Run(env.Read, func(ctx context.Context, b *env.Backend, args []string) error {
			finding, of := "", args
			if n := len(args); n > 0 && isFinding(args[n-1]) {
				finding, of = args[n-1], args[:n-1]
			} else if n == 2 {
				return env.UsageError("write a fingerprint, or an ID such as reg-003-1 from `perdure loop status --regressions`",
					"%q is not a finding", args[1])
			}
			l, err := Find(ctx, b.Client, strings.Join(of, ""))
			if err != nil {
				return err
			}
			if finding != "" {
				return c.markFalseAlarm(ctx, b, l.Tree, finding, reason)
			}
			all, err := b.FalseAlarms(ctx, l.Tree)
			if err != nil {
				return err
			}
			return c.Print(append([]record.FalseAlarm{}, all...), func() { c.showFalseAlarms(all) })
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` reason, kept with the loop")
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) markFalseAlarm(ctx context.Context, b *env.Backend, id perdure.TreeID,
	finding, reason string) error {
	marks, err := marksOf(ctx, b, id, finding)
	if err != nil {
		return err
	}
	for i := range marks {
		marks[i].By, marks[i].Reason = env.User(), reason
	}
	all, fresh, err := b.MarkFalse(ctx, id, marks)
	if err != nil {
		return err
	}
	c.Note("marked %s of %s as a false alarm: %s, %d of them new", finding, name(ctx, b, id),
		human.Count(len(marks), "finding"), fresh)
	return c.Print(all, func() {})
}

// findingName is a regression, or the beginning of a fingerprint.
var findingName = lazyregexp.New(`^(reg-\d+-\d+|[0-9a-f]{6,16})$`)

// isFinding reports whether word is a finding. The digits of a loop are eight.
func isFinding(word string) bool {
	return findingName().MatchString(word) && len(word) != len("1a2b3c4d")
}

// marksOf returns the marks for a regression or a fingerprint, the newest first.
func marksOf(ctx context.Context, b *env.Backend, id perdure.TreeID, finding string) ([]record.FalseAlarm, error) {
	var marks []record.FalseAlarm
	from, page := 1, 100
	var at int
	if n, _ := fmt.Sscanf(finding, "reg-%d-", &at); n == 1 { // it contains its iteration
		from, page = max(at, 1), 1
	}
	for ; ; from += page {
		list, err := b.Iterations(ctx, id, from, page)
		if err != nil {
			return nil, err
		}
		for i := range list {
			o, err := state.ReadOutcome(&list[i])
			if err != nil {
				continue // skip an unreadable one
			}
			if found := o.Marks(finding); len(found) > 0 {
				marks = found
			}
		}
		if len(list) < page || page == 1 {
			break
		}
	}
	if len(marks) == 0 {
		return nil, env.NotFound("`perdure loop status --regressions` lists the regressions",
			"no finding %q in this loop", finding)
	}
	for i := range marks {
		if marks[i].Fingerprint != marks[0].Fingerprint && !strings.HasPrefix(finding, "reg-") {
			return nil, env.UsageError("write more digits", "%q is the beginning of several fingerprints", finding)
		}
	}
	return marks, nil
}

func (c *commands) showFalseAlarms(all []record.FalseAlarm) {
	if len(all) == 0 {
		c.Printf("no false alarms\n")
	}
	for i := range all {
		m := &all[i]
		text := fmt.Sprintf("%s  iteration %d  %s", m.Fingerprint, m.Iteration, m.What)
		if m.By != "" {
			text += ", by " + m.By
		}
		text += ", " + human.Duration(time.Since(m.At)) + " ago"
		if m.Reason != "" {
			text += ": " + m.Reason
		}
		c.Printf("%s\n", c.Out.Safe(clip.OneLine(text)))
	}
}
