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
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newShowCommand() *cobra.Command {
	var byNode bool
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show a task with its model calls",
		Long: "Show a task: state, prompt, result, error, times, cost and model calls; with planner repl also " +
			"the turns with their code and output. With --node the argument is a node " +
			"ID, which exported tree files contain; it looks like a task ID but differs.",
		Example: "perdure show task-0007\n perdure show task-0007 --json | jq .calls",
		GroupID: env.GroupInspect,
		Args:    env.Arguments(1, 1, "one task"),
		RunE: a.Run(env.Read, func(ctx context.Context, b *env.Backend, args []string) error {
			t, err := readTask(ctx, b, args[0], byNode)
			if err != nil {
				return err
			}
			tree, err := b.Tree(ctx, t.Tree)
			if err != nil {
				return err
			}
			return a.Print(t, func() { a.showTask(&t, &tree) })
		}),
	}
	cmd.Flags().BoolVar(&byNode, "node", false, "TASK is a node ID")
	a.JSONFlag(cmd)
	return cmd
}

func readTask(ctx context.Context, b *env.Backend, arg string, byNode bool) (perdure.ShowTask, error) {
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
			return perdure.ShowTask{}, env.UsageError("add --node for a node ID", "%q is not a task ID", arg)
		}
		return perdure.ShowTask{}, err
	}
	return b.Task(ctx, id)
}

// showTask prints a task of a tree.
func (a *app) showTask(t *perdure.ShowTask, tree *perdure.Tree) {
	s := a.Out
	shown := status.OfTask(t.State, t.Partial, t.Skipped)
	a.Printf("%s  %s %s\n", s.Bold(t.ID.String()), s.Mark(shown),
		status.TaskState(shown, t.Attempts, t.Pending > 0))
	row := func(name, value string) {
		if value != "" {
			a.Printf("  %s %s\n", s.Dim(env.Pad(name, 10)), value)
		}
	}
	row("tree", string(t.Tree))
	if t.Parent == 0 {
		row("origin", rlm.Origin(tree.Config))
		model, flags := rlm.Settings(tree.Config)
		row("model", env.OneLine(model, s.Width-13))
		row("flags", human.OneLine(flags))
		if tree.State == perdure.Partial && rlm.CanResume(tree) {
			row("continue", "perdure resume "+string(tree.ID))
		}
	}
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
	row("agent", env.OneLine(t.Agent, s.Width-13))
	row("created", human.Stamp(t.CreatedAt))
	if !t.StartedAt.IsZero() {
		row("started", human.Stamp(t.StartedAt))
	}
	if !t.CompletedAt.IsZero() {
		row("ended", human.Stamp(t.CompletedAt))
	}
	if t.Active > 0 {
		row("ran", human.Duration(t.Active))
	}
	row("usage", status.Usage(t.Usage))
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
	a.showTurns(t.Turns)
}

func children(t *perdure.Task) string {
	if t.State != perdure.Waiting && t.Merge == "" {
		return ""
	}
	text := fmt.Sprintf("%s, if one fails: %s", t.Strategy, t.Policy)
	if t.Merge != "" {
		text += ", merge: " + t.Merge
	}
	if t.Pending > 0 {
		text += fmt.Sprintf(", %d not ended", t.Pending)
	}
	return human.Visible(text)
}

func contextText(c perdure.ContextRef) string {
	if c.Type == "" || c.Type == "none" {
		return ""
	}
	text := fmt.Sprintf("%s of %s, %s", c.Type, c.Source, human.Size(c.Length))
	if c.Type == "slice" {
		text += fmt.Sprintf(", bytes %d to %d", c.Offset, c.Offset+c.Length)
	}
	return human.Visible(fmt.Sprintf("%s, about %s", text, tokens(c.SizeTokens)))
}

func leaseText(l *perdure.LeaseInfo) string {
	text := fmt.Sprintf("%s since %s", l.Session, human.Stamp(l.ClaimedAt))
	if l.Lost {
		text += ", lost: its process has ended"
	}
	return text
}

// section prints text of several lines under a heading.
func (a *app) section(title, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	a.Printf("\n%s\n  %s\n", a.Out.Bold(title), strings.ReplaceAll(a.Out.Safe(text), "\n", "\n  "))
}

func (a *app) showCalls(calls []perdure.Call) {
	if len(calls) == 0 {
		return
	}
	a.Printf("\n%s\n", a.Out.Bold("Calls"))
	for i := range calls {
		c := &calls[i]
		a.Printf("  %s  %s  %s  %s\n", c.ID, env.Pad(string(c.State), 9), env.OneLine(c.Model, 40), a.Out.Dim(callFigures(c)))
		if c.Error != nil {
			a.Printf("    %s\n", env.OneLine(c.Error.Kind+": "+c.Error.Message, a.Out.Width-5))
		}
		if c.Thoughts != "" {
			a.indented("thought: ", c.Thoughts)
		}
		for _, note := range callNotes(c.Data) {
			a.Printf("    %s\n", env.OneLine("note: "+note, a.Out.Width-5))
		}
	}
}

func callFigures(c *perdure.Call) string {
	parts := []string{fmt.Sprintf("attempt %d", c.Attempt)}
	if c.Tries > 1 {
		parts = append(parts, fmt.Sprintf("%d tries", c.Tries))
	}
	tokens := fmt.Sprintf("%s in, %s out", human.Compact(c.InputTokens), human.Compact(c.OutputTokens))
	if c.Estimated {
		tokens += " (estimated)"
	}
	parts = append(parts, tokens)
	if c.CostUSD != nil { // an unknown price is in the usage of the task
		parts = append(parts, human.Dollars(*c.CostUSD))
	}
	if c.EndedAt != nil {
		parts = append(parts, human.Duration(c.EndedAt.Sub(c.StartedAt).Round(time.Millisecond)))
	}
	return strings.Join(parts, ", ")
}

// callNotes returns the notes on a call.
func callNotes(data json.RawMessage) []string {
	var d struct {
		Notes []string `json:"notes"`
	}
	if json.Unmarshal(data, &d) != nil {
		return nil
	}
	return d.Notes
}
