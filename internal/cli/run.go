package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/handoff"
	"github.com/perdure/perdure/internal/text/human"
)

func (a *app) newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "PROMPT" [--context PATH]…`,
		Short: "Answer a prompt over any amount of context",
		Long: "Answer a prompt over any amount of context. What does not fit the model is split into parts; each part " +
			"is a durable task, and the answers of the parts become one. The tree's ID is printed first, progress " +
			"goes to standard error, the answer to standard output.\n\n" +
			"Without a model that was configured, builtin:extract finds the passages of the context that matter and " +
			"quotes them with file and line; it needs no network. Others are openai:NAME (any OpenAI-compatible " +
			"server with --base-url, the key from OPENAI_API_KEY), exec:COMMAND (any program: the prompt on its " +
			"standard input, the answer on its standard output) and mock:SCRIPT.\n\n" +
			"Ctrl-C stops cleanly, a second one at once; perdure resume goes on either way.",
		Example: `perdure run "Where is the lease renewed?" --context .
			perdure run "Summarize the incident" --context logs/*.txt --model openai:gpt-4o-mini --budget-tokens 500000
			git log -p | perdure run "What changed in the API?" --context - --model "exec:ollama run llama3"`,
		GroupID: env.GroupRun,
		Args:    env.Arguments(1, 1, "one prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, &f, client.TreeRequest{Prompt: args[0], Name: f.name}, false)
		},
	}
	cmd.Flags().StringArrayVarP(&f.contexts, "context", "c", nil,
		"a file, folder or pattern (quoted), or - for standard input; may be `given` several times")
	f.register(cmd)
	return cmd
}

func (a *app) newBatchCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `batch PATTERN "PROMPT with {file}"`,
		Short: "Answer a prompt once for each file",
		Long: "Answer a prompt once for each file that a pattern matches: one task a file, {file} in the prompt is " +
			"the file's name. Everything else is as with perdure run.",
		Example: `perdure batch "src/**/*.go" "List what {file} exports" --model openai:gpt-4o-mini`,
		GroupID: env.GroupRun,
		Args:    env.Arguments(2, 2, "a pattern and one prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.contexts = []string{args[0]}
			return a.run(cmd, &f, client.TreeRequest{Prompt: args[1], Name: f.name}, true)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, req client.TreeRequest, batch bool) error {
	ctx := cmd.Context()
	if strings.TrimSpace(req.Prompt) == "" {
		return env.UsageError("say what is to be answered", "the prompt is empty")
	}
	l, err := a.Load(cmd)
	if err != nil {
		return err
	}
	if req.Config, err = f.config(a, cmd, l, batch); err != nil {
		return err
	}
	why := env.Execute
	if f.detach {
		why = env.Detach
	}
	return a.With(ctx, l, why, func(b *env.Backend) error {
		id, err := a.launch(ctx, b, f, req)
		if err != nil {
			return err
		}
		if f.detach {
			a.Note("the daemon runs it; `perdure status %s` shows how far it is", id)
			if f.json {
				return a.PrintJSON(launched{Tree: id})
			}
			return nil
		}
		return a.attend(ctx, b, []perdure.TreeID{id}, f.json)
	})
}

// launched is what run --detach --json prints.
type launched struct {
	Tree perdure.TreeID `json:"tree_id"`
}

// launch uploads the context and makes the tree. Its ID is the first line on
// standard error.
func (a *app) launch(ctx context.Context, b *env.Backend, f *runFlags, req client.TreeRequest) (perdure.TreeID, error) {
	var report client.ContextReport
	var err error
	if len(f.contexts) > 0 {
		if report, err = a.upload(ctx, b, f); err != nil {
			return "", err
		}
		req.ContextID = report.ID
	}
	if b.Local != nil {
		req.Owner = b.Local.SessionID()
	}
	tree, err := b.CreateTree(ctx, req)
	if err != nil {
		return "", err
	}
	if b.Local != nil {
		b.Local.Own(tree.ID)
	}
	a.Err.Write([]byte(string(tree.ID) + "\n")) //nolint:errcheck // the stream keeps its error
	if len(f.contexts) > 0 {
		a.tellContext(report)
	}
	a.tellModel(tree)
	if unfinished := handoff.Unfinished(a.Cwd, a.Getenv); unfinished != "" {
		a.Note("%s", unfinished)
	}
	return tree.ID, nil
}

// tellModel says who answers when nobody was asked for.
func (a *app) tellModel(tree perdure.Tree) {
	var c struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(tree.Config, &c) == nil && c.Model == "builtin:extract" {
		a.Note("model: builtin:extract quotes passages, it does not write text; --model chooses another")
	}
}

// attend follows trees until they end, executing them when no daemon does, and
// prints their results.
func (a *app) attend(ctx context.Context, b *env.Backend, ids []perdure.TreeID, asJSON bool) error {
	err := a.carryOut(ctx, b, ids)
	if rest := (*restingError)(nil); errors.As(err, &rest) {
		return a.tellResting(ctx, b, rest)
	}
	if errors.Is(err, env.ErrInterrupted) {
		if err := a.tellInterrupted(ctx, b, ids); err != nil {
			return err
		}
	} else if err != nil {
		return a.withResumeHint(err, ids)
	}
	after := context.WithoutCancel(ctx)
	var worst error
	for _, id := range ids {
		if err := a.printResult(after, b, id, asJSON); err != nil && worst == nil {
			worst = err
		} else if err != nil {
			a.PrintError(err)
		}
	}
	return worst
}

// carryOut runs the trees in this process, if no daemon does, and follows them
// until all have ended. After the context ended it waits until nothing runs
// here any more.
func (a *app) carryOut(ctx context.Context, b *env.Backend, ids []perdure.TreeID) error {
	view := newProgressView(a.Err, false)
	defer view.finish()
	if b.Local == nil {
		return a.follow(ctx, b, ids, view)
	}
	return b.Follow(ctx, func(ctx context.Context) error {
		err := a.follow(ctx, b, ids, view)
		if errors.Is(err, env.ErrInterrupted) {
			view.say("perdure: stopping when the calls under way have ended; Ctrl-C again stops at once; `perdure resume` " +
				"goes on either way")
		}
		return err
	})
}

// tellInterrupted says how to go on after Ctrl-C. It returns nil when the trees
// have ended all the same.
func (a *app) tellInterrupted(ctx context.Context, b *env.Backend, ids []perdure.TreeID) error {
	after := context.WithoutCancel(ctx)
	unfinished := 0
	for _, id := range ids {
		s, err := b.Status(after, id)
		if err != nil {
			return a.withResumeHint(err, ids)
		}
		if s.State.Terminal() {
			continue
		}
		unfinished++
		if b.Local == nil {
			a.Note("detached: the daemon goes on with %s; `perdure status %s` shows how far it is, `perdure cancel %s` stops "+
				"it", id, id, id)
			continue
		}
		a.Note("stopped: %d of %s done, nothing is lost; go on with `perdure resume %s`", s.Completed,
			human.Count(s.Total, "task"), id)
	}
	if unfinished == 0 {
		return nil
	}
	return &env.Exit{Status: env.StatusInterrupted}
}

// withResumeHint keeps the error and says how to go on.
func (a *app) withResumeHint(err error, ids []perdure.TreeID) error {
	hint := perdure.HintOf(err)
	if strings.Contains(hint, "perdure resume") || errors.Is(err, perdure.ErrDamaged) {
		return err
	}
	resume := "what is done is kept; go on with `perdure resume`"
	if len(ids) == 1 {
		resume += " (" + string(ids[0]) + ")"
	}
	if hint != "" {
		resume = hint + "; " + resume
	}
	return &perdure.Error{Code: perdure.CodeOf(err), Msg: err.Error(), Hint: resume}
}
