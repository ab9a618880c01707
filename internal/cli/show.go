package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newShowCommand() *cobra.Command {
	var byNode, asJSON bool
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show everything about one task, its calls included",
		Long: "Show everything about one task: state, prompt, result, error, times, cost, and its calls to models. With " +
			"--node the argument is a node ID, as exported tree files have them; the two look alike and differ.",
		Example: "perdure show task-0007\n perdure show task-0007 --json | jq .calls",
		GroupID: groupSee,
		Args:    arguments(1, 1, "one task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.withBackend(cmd.Context(), l, toRead, func(b *backend) error {
				t, err := readTask(cmd.Context(), b, args[0], byNode)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(t)
				}
				a.showTask(&t)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&byNode, "node", false, "TASK is a node ID")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func readTask(ctx context.Context, b *backend, arg string, byNode bool) (perdure.ShowTask, error) {
	if byNode {
		id, err := perdure.ParseNodeID(arg)
		if err != nil {
			return perdure.ShowTask{}, err
		}
		return b.TaskByNode(ctx, id)
	}
	id, err := perdure.ParseTaskID(arg)
	if err != nil {
		if _, nodeErr := perdure.ParseNodeID(arg); nodeErr == nil {
			return perdure.ShowTask{}, env.UsageError("for a node ID add --node", "%q is not a task ID", arg)
		}
		return perdure.ShowTask{}, err
	}
	return b.Task(ctx, id)
}

func (a *app) showTask(t *perdure.ShowTask) {
	s := a.out
	a.printf("%s  %s %s\n", s.bold(t.ID.String()), s.mark(t.State), t.State)
	row := func(name, value string) {
		if value != "" {
			a.printf("  %s %s\n", s.dim(pad(name, 10)), value)
		}
	}
	row("tree", string(t.Tree))
	row("node", t.Node.String())
	if t.Parent != 0 {
		row("parent", fmt.Sprintf("%s, child %d, depth %d", t.Parent, t.Position, t.Depth))
	}
	if t.WaitsFor != 0 {
		row("waits for", t.WaitsFor.String())
	}
	row("attempts", fmt.Sprintf("%d of %d", t.Attempts, t.MaxAttempts))
	row("children", children(&t.Task))
	row("context", contextText(t.Context))
	row("agent", oneLine(t.Agent, s.width-13))
	row("created", stamp(t.CreatedAt))
	if !t.StartedAt.IsZero() {
		row("started", stamp(t.StartedAt))
	}
	if !t.CompletedAt.IsZero() {
		row("ended", stamp(t.CompletedAt))
	}
	if t.Active > 0 {
		row("ran", duration(t.Active))
	}
	row("usage", usage(t.Usage))
	if t.Lease != nil {
		row("lease", leaseText(t.Lease))
	}
	a.section("Prompt", t.Prompt)
	if t.Error != nil {
		a.section("Error", t.Error.Kind+": "+t.Error.Message)
	}
	a.section("Result", t.Result)
	a.showDetails(&t.Task)
	if t.State != perdure.Completed {
		a.section("Output so far", t.Output)
	}
	a.showCalls(t.Calls)
}

func children(t *perdure.Task) string {
	if t.State != perdure.Waiting && t.Merge == "" {
		return ""
	}
	text := fmt.Sprintf("%s, when one fails: %s", t.Strategy, t.Policy)
	if t.Merge != "" {
		text += ", merge: " + t.Merge
	}
	if t.Pending > 0 {
		text += fmt.Sprintf(", %d not ended", t.Pending)
	}
	return visible(text)
}

func contextText(c perdure.ContextRef) string {
	if c.Type == "" || c.Type == "none" {
		return ""
	}
	text := fmt.Sprintf("%s of %s", c.Type, c.Source)
	if c.Type == "slice" {
		text += fmt.Sprintf(", bytes %d to %d", c.Offset, c.Offset+c.Length)
	}
	return visible(fmt.Sprintf("%s, about %s tokens", text, compact(c.SizeTokens)))
}

func leaseText(l *perdure.LeaseInfo) string {
	text := fmt.Sprintf("%s since %s", l.Session, stamp(l.ClaimedAt))
	if l.Lost {
		text += ", lost: its process is gone"
	}
	return text
}

// section prints a text of several lines under a heading.
func (a *app) section(title, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	a.printf("\n%s\n  %s\n", a.out.bold(title), strings.ReplaceAll(a.out.safe(text), "\n", "\n  "))
}

func (a *app) showCalls(calls []perdure.Call) {
	if len(calls) == 0 {
		return
	}
	a.printf("\n%s\n", a.out.bold("Calls"))
	for i := range calls {
		c := &calls[i]
		a.printf("  %s  %s  %s  %s\n", c.ID, pad(string(c.State), 9), oneLine(c.Model, 40), a.out.dim(callFigures(c)))
		if c.Error != nil {
			a.printf("    %s\n", oneLine(c.Error.Kind+": "+c.Error.Message, a.out.width-5))
		}
		for _, note := range callNotes(c.Data) {
			a.printf("    %s\n", oneLine("note: "+note, a.out.width-5))
		}
	}
}

func callFigures(c *perdure.Call) string {
	parts := []string{fmt.Sprintf("attempt %d", c.Attempt)}
	if c.Tries > 1 {
		parts = append(parts, fmt.Sprintf("%d tries", c.Tries))
	}
	tokens := fmt.Sprintf("%s in, %s out", compact(c.InputTokens), compact(c.OutputTokens))
	if c.Estimated {
		tokens += " (estimated)"
	}
	parts = append(parts, tokens)
	if c.CostUSD != nil {
		parts = append(parts, dollars(*c.CostUSD))
	} else {
		parts = append(parts, "price unknown")
	}
	if c.EndedAt != nil {
		parts = append(parts, duration(c.EndedAt.Sub(c.StartedAt).Round(time.Millisecond)))
	}
	return strings.Join(parts, ", ")
}

// callNotes are what was unusual about a call.
func callNotes(data json.RawMessage) []string {
	var d struct {
		Notes []string `json:"notes"`
	}
	if json.Unmarshal(data, &d) != nil {
		return nil
	}
	return d.Notes
}
