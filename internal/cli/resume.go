package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newResumeCommand() *cobra.Command {
	var flags changeFlags
	cmd := &cobra.Command{
		Use:   "resume [TREE]",
		Short: "Continue interrupted trees, and finish partial ones",
		Long: "Continue a tree whose process was stopped or killed, or take up the missing parts of one that ended as " +
			"partial or failed. Without an argument, continue all unfinished trees. Finished tasks keep their results, and no " +
			"finished model call is repeated; what was merged without the missing parts is merged again.\n\n" +
			"Flags replace what the tree was created with, from now on. Budgets are those of the whole tree: what was used " +
			"counts. The output is that of `perdure run`, with --json one object a line. The exit status is 3 if parts are " +
			"still missing, or if a budget pays for none of them, and 5 if another process executes the tree.",
		Example: "perdure resume\n perdure resume tree-1a2b3c4d --budget-calls 500 --json\n" +
			" perdure resume tree-1a2b3c4d --model openai:gpt-4o",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			changes, err := flags.changes(a, cmd, l)
			if err != nil {
				return err
			}
			if len(args) == 0 && len(changes) > 0 {
				return env.UsageError("perdure resume TREE …; `perdure status` lists trees",
					"limits and models are changed of one tree, and none is named")
			}
			if !env.HasStore(l) { // env.Execute would create one
				return a.NoStore(l)
			}
			return a.With(cmd.Context(), l, env.Execute, func(b *env.Backend) error {
				return a.resume(cmd.Context(), b, args, changes)
			})
		},
	}
	env.ExecutesStored(cmd)
	flags.register(cmd)
	env.SettingFlags(cmd, "concurrency", "repl_python", "repl_unsandboxed")
	a.JSONFlag(cmd)
	env.GroupFlags(cmd,
		env.FlagGroup{Title: "Limits of the tree", Flags: "budget-usd budget-tokens budget-calls timeout max-nodes"},
		env.FlagGroup{Title: "Model of new requests",
			Flags: "model sub-model base-url param header context-window max-output-tokens max-attempts search-replies " +
				"patience max-wait"},
		env.FlagGroup{Title: "Other", Flags: "concurrency repl-python repl-unsandboxed json trust"})
	return cmd
}

// changeSettings returns the settings with flags that change a tree.
func changeSettings() []string {
	return []string{"model", "sub_model", "base_url", "max_attempts", "budget_usd", "budget_tokens", "budget_calls",
		"max_nodes", "patience", "max_wait"}
}

// changeFlags are the flags that change a tree when it is resumed, in addition to those of
// settings.
type changeFlags struct {
	timeout string
	replies int
	window  int
	answer  int
	paramFlags
}

func (f *changeFlags) register(cmd *cobra.Command) {
	env.SettingFlags(cmd, changeSettings()...)
	cmd.Flags().StringVar(&f.timeout, "timeout", "", "`TIME` maximum time from now on, such as 30m")
	cmd.Flags().IntVar(&f.replies, "search-replies", 0, "`N` maximum replies of the model in planner search")
	cmd.Flags().IntVar(&f.answer, "max-output-tokens", 0, "`N` maximum tokens of an answer; answers that were cut are "+
		"asked for again")
	cmd.Flags().IntVar(&f.window, "context-window", 0, "`N` tokens that the model reads and writes at once, with planner "+
		"repl")
	f.paramFlags.register(cmd.Flags())
	for _, name := range changeSettings() {
		f := cmd.Flags().Lookup(strings.ReplaceAll(name, "_", "-"))
		f.DefValue = "" // as the tree has it
	}
}

// changes returns the flags given as an object for the API, nil for none.
func (f *changeFlags) changes(a *app, cmd *cobra.Command, l *config.Loaded) (json.RawMessage, error) {
	limit, err := env.ParseDuration("timeout", f.timeout)
	if err != nil {
		return nil, err
	}
	given := make(map[string]any)
	for name, value := range map[string]any{"model": a.anchor(l.Model), "sub_model": a.anchor(l.SubModel),
		"base_url": a.baseURL(l), "max_attempts": l.MaxAttempts, "budget_usd": l.BudgetUSD,
		"budget_tokens": l.BudgetTokens, "budget_calls": l.BudgetCalls, "max_nodes": l.MaxNodes,
		"timeout": rlm.Duration(limit), "search_replies": f.replies, "patience": rlm.Duration(l.Patience),
		"max_wait": rlm.Duration(l.MaxWait), "context_window": f.window} {
		if env.Changed(cmd, strings.ReplaceAll(name, "_", "-")) {
			given[name] = value
		}
	}
	if env.Changed(cmd, "max-output-tokens") {
		given["answer_tokens"] = f.answer
	}
	var c rlm.Config
	if a.nameModels(cmd, l, &c); c.SubModels != nil {
		given["sub_models"] = c.SubModels
	}
	if err := f.paramFlags.addTo(a, &c); err != nil {
		return nil, err
	}
	if c.Params != "" {
		given["params"] = c.Params
	}
	if c.Headers != "" {
		given["headers"] = c.Headers
	}
	if given["model"] != nil || given["sub_model"] != nil {
		if err := checkBaseURL(cmd, l); err != nil {
			return nil, err
		}
		if url := a.baseURL(l); url != "" { // otherwise that of the tree
			given["base_url"] = url
		}
	}
	if len(given) == 0 {
		return nil, nil
	}
	return json.Marshal(given)
}

func (a *app) resume(ctx context.Context, b *env.Backend, args []string, changes json.RawMessage) error {
	if len(args) == 1 {
		id, err := b.FindTree(ctx, args[0])
		if err != nil {
			return err
		}
		if err := a.recover(ctx, b, id, changes); err != nil {
			return err
		}
		return a.attend(ctx, b, []perdure.TreeID{id})
	}
	all, err := unfinished(ctx, b)
	if err != nil {
		return err
	}
	var mine []perdure.TreeID
	var refused error
	for _, id := range all {
		switch err := a.recover(ctx, b, id, nil); {
		case errors.Is(err, perdure.ErrConflict):
			if refused != nil {
				a.Note("skipped: %v", refused)
			}
			refused = err // returned if no tree is resumed
		case err != nil:
			return err
		default:
			mine = append(mine, id)
		}
	}
	late, err := unprintedTrees(ctx, b)
	if err != nil {
		return err
	}
	mine = append(late, mine...)
	switch {
	case len(mine) == 0 && refused == nil:
		a.Note("no unfinished trees")
		return nil
	case len(mine) == 0:
		return refused
	case refused != nil:
		a.Note("skipped: %v", refused)
	}
	return a.attend(ctx, b, mine)
}

// unfinished returns the trees that have not ended, the oldest first.
func unfinished(ctx context.Context, b *env.Backend) ([]perdure.TreeID, error) {
	var ids []perdure.TreeID
	q := perdure.TreeFilter{Kind: rlm.KindRun, Active: true, Limit: 1000}
	for {
		page, err := b.Trees(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Trees {
			ids = append(ids, t.ID)
		}
		if page.Next == "" {
			slices.Reverse(ids)
			return ids, nil
		}
		q.Before = page.Next
	}
}

// recover prepares a tree to continue, makes it this process's own, unless a daemon
// executes it, and notes its remaining tasks.
func (a *app) recover(ctx context.Context, b *env.Backend, id perdure.TreeID, changes json.RawMessage) error {
	tree, err := resumable(ctx, b, id)
	if err != nil {
		return err
	}
	if b.Local != nil && len(changes) == 0 {
		if err := b.Local.Check(ctx, &tree); err != nil && !ended(tree.State) {
			return err
		}
	}
	r, err := b.Resume(ctx, id, client.ResumeRequest{Changes: changes, Owner: b.Session()})
	if err != nil {
		return err
	}
	if r.State.Terminal() {
		a.Note("%s is already %s", id, r.State)
		return nil
	}
	a.Note("%s: %s", id, recovered(&r))
	b.Own(id)
	return nil
}

// ended reports whether nothing is left to do of a tree.
func ended(s perdure.State) bool { return s == perdure.Completed || s == perdure.Cancelled }

// resumable reads a tree and returns an error if it cannot be resumed.
func resumable(ctx context.Context, b *env.Backend, id perdure.TreeID) (perdure.Tree, error) {
	tree, err := b.Tree(ctx, id)
	switch {
	case err != nil, rlm.IsExecuted(&tree):
		return tree, err
	case tree.Kind == perdure.KindRecord:
		return tree, &perdure.Error{Code: perdure.CodeConflict, Op: "resume",
			Msg:  fmt.Sprintf("tree %q is an imported record, which is not executed", id),
			Hint: "`perdure run` with its prompt starts a new tree"}
	}
	return tree, &perdure.Error{Code: perdure.CodeConflict, Op: "resume", Msg: fmt.Sprintf("%s is a loop", loop.ID(&tree)),
		Hint: "`perdure loop resume " + loop.ID(&tree) + "` continues it"}
}

// recovered returns the text for what is left to do of a tree.
func recovered(r *perdure.RecoverReport) string {
	text := fmt.Sprintf("%d done, %d queued again, %d pending, %d failed permanently", r.Done, r.Requeued, r.Pending,
		r.GivenUp)
	if r.Reopened > 0 {
		text = fmt.Sprintf("%d done, %d to do again", r.Done, r.Reopened)
		if rest := r.Pending - r.Reopened; rest > 0 {
			text += fmt.Sprintf(", %d pending", rest)
		}
	}
	if r.Running > 0 {
		text += fmt.Sprintf(", %d running", r.Running)
	}
	return text
}
