package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/handoff"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "PROMPT" [--context PATH]…`,
		Short: "Answer a prompt over any amount of context",
		Long: "Answer a prompt over any amount of context. A context that does not fit the model is split into parts; each " +
			"part is a durable task, and their answers are merged. The tree's ID and the progress go to standard error, " +
			"the answer to standard output.\n\n" +
			"The default model, builtin:extract, quotes the relevant passages with file and line and needs no network. " +
			"openai:NAME is any OpenAI-compatible server (--base-url, OPENAI_API_KEY), anthropic:NAME the Anthropic API " +
			"(ANTHROPIC_API_KEY), exec:COMMAND any program that reads the prompt from standard input and writes the answer " +
			"to standard output, mock:SCRIPT a file with answers for tests.\n\n" +
			"Ctrl-C waits for running model calls, a second Ctrl-C does not. `perdure resume` continues either way.",
		Example: `perdure run "Where is the lease renewed?" --context .
			perdure run "Summarize the incident" --context "logs/*.txt" --model openai:gpt-4o
			git log -p | perdure run "What changed in the API?" --context - --model "exec:ollama run llama3"`,
		GroupID: env.GroupRun,
		Args:    a.checkPrompt,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, &f, client.TreeRequest{Prompt: args[0], Name: f.name}, false)
		},
	}
	f.registerContext(cmd)
	f.register(a, cmd)
	return cmd
}

// checkPrompt checks that there is one prompt. Files next to it were meant as the context: the flag was left out,
// or the shell has expanded a pattern behind it.
func (a *app) checkPrompt(cmd *cobra.Command, args []string) error {
	var prompts, files []string
	for _, arg := range args {
		if _, err := os.Stat(a.Path(arg)); err == nil {
			files = append(files, arg)
		} else {
			prompts = append(prompts, arg)
		}
	}
	if len(prompts) != 1 || len(files) == 0 {
		return env.Arguments(1, 1, "one prompt")(cmd, args)
	}
	hint := fmt.Sprintf("perdure run %q --context %q", prompts[0], files[0])
	if len(files) > 1 {
		hint += " and so on, or --context 'PATTERN' in quotes"
	}
	return env.UsageError(hint, "a file is read with --context: %q is no prompt", files[0])
}

// registerContext adds the flag of the context.
func (f *runFlags) registerContext(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.contexts, "context", "c", nil,
		"`PATH` file, folder or quoted glob to read, or - for standard input; repeatable")
}

func (a *app) newBatchCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `batch GLOB "PROMPT with {file}"`,
		Short: "Answer a prompt for each of many files",
		Long: "Answer a prompt for each file that a glob matches, one task a file. {file} in the prompt is replaced by the " +
			"file's name. Models, limits and results are those of `perdure run`.",
		Example: `perdure batch "src/**/*.go" "List what {file} exports" --model openai:gpt-4o-mini`,
		GroupID: env.GroupRun,
		Args:    env.Arguments(2, 2, "a glob and a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkOrder(args); err != nil {
				return err
			}
			f.contexts = []string{args[0]}
			return a.run(cmd, &f, client.TreeRequest{Prompt: args[1], Name: f.name}, true)
		},
	}
	f.register(a, cmd)
	return cmd
}

// checkOrder returns an error if the prompt stands before the glob.
func (a *app) checkOrder(args []string) error {
	_, noFirst := os.Stat(a.Path(args[0]))
	_, noSecond := os.Stat(a.Path(args[1]))
	isGlob := strings.ContainsAny(args[1], "*?[") && !strings.Contains(args[1], " ")
	if noFirst == nil || !strings.Contains(args[0], " ") || noSecond != nil && !isGlob {
		return nil
	}
	return env.UsageError(fmt.Sprintf("perdure batch %q %q", args[1], args[0]),
		"the files come first and the prompt second: %q is no file", args[0])
}

// fileForPrompt returns an error if the prompt is the path of a file: the user wrote the prompt
// after --context, or left it out. A word that happens to be a file's name is a prompt.
func (a *app) fileForPrompt(prompt string, f *runFlags) error {
	if _, err := os.Stat(a.Path(prompt)); err != nil {
		return nil //nolint:nilerr // it is a prompt
	}
	for _, c := range f.contexts {
		if _, err := os.Stat(a.Path(c)); err != nil && strings.Contains(c, " ") {
			return env.UsageError(fmt.Sprintf("perdure run %q --context %q", c, prompt),
				"the prompt %q is a file, and the context %q is none", prompt, c)
		}
	}
	if len(f.contexts) == 0 && strings.ContainsAny(prompt, "./") {
		return env.UsageError(fmt.Sprintf("perdure run \"PROMPT\" --context %q", prompt), "the prompt %q is a file", prompt)
	}
	return nil
}

func (a *app) run(cmd *cobra.Command, f *runFlags, req client.TreeRequest, batch bool) error {
	ctx := cmd.Context()
	if strings.TrimSpace(req.Prompt) == "" {
		return env.UsageError("perdure run \"PROMPT\"", "prompt is empty")
	}
	if err := a.fileForPrompt(req.Prompt, f); err != nil && !batch {
		return err
	}
	l, err := a.Load(cmd)
	if err != nil {
		return err
	}
	if req.Config, err = f.config(a, cmd, l, batch); err != nil {
		return err
	}
	return a.start(ctx, l, f, req)
}

// start creates a tree and follows it, or says what it would take.
func (a *app) start(ctx context.Context, l *config.Loaded, f *runFlags, req client.TreeRequest) error {
	if f.dryRun {
		return a.dryRun(ctx, l, f, req)
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
			a.Note("the daemon runs it; `perdure status %s` shows its progress", id)
			return a.Print(launched{Tree: id}, func() {})
		}
		return a.attend(ctx, b, []perdure.TreeID{id})
	})
}

// launched is the output of run --detach --json.
type launched struct {
	Tree perdure.TreeID `json:"tree_id"`
}

// launch uploads the context and creates the tree. It prints the tree's ID as the first
// line on standard error.
func (a *app) launch(ctx context.Context, b *env.Backend, f *runFlags, req client.TreeRequest) (perdure.TreeID, error) {
	report, err := a.upload(ctx, b, f)
	if err != nil {
		return "", err
	}
	req.ContextID = report.ID
	req.Owner = b.Session()
	tree, err := perdure.Tree{}, a.confirm(ctx, b, f, req)
	if err == nil {
		tree, err = b.CreateTree(ctx, req)
	}
	if err != nil {
		a.dropContext(ctx, b, &report)
		return "", err
	}
	b.Own(tree.ID)
	awaitAnswer(b, tree.ID)
	fmt.Fprintln(a.Err, tree.ID)
	a.NoteTrust(b, &tree)
	if len(f.contexts) > 0 {
		a.noteContext(&report)
		a.noteStored(b, &report)
	}
	a.notePlan(&tree)
	if f.execInput == "" && configOf(&tree).ExecInput == rlm.InputText {
		a.Note("programs read the text alone, and the prompt is in $PERDURE_PROMPT; a language model needs " +
			"--exec-input prompt")
	}
	if unfinished := handoff.Unfinished(a.Cwd, a.Getenv); unfinished != "" {
		a.Note("%s", unfinished)
	}
	return tree.ID, nil
}

// modelOf returns the model of a tree, or "".
func modelOf(tree *perdure.Tree) string { return configOf(tree).Model }

// treeConfig is what commands print of the configuration of a tree.
type treeConfig struct {
	Model         string `json:"model"`
	Planner       string `json:"planner"`
	PlannerReason string `json:"planner_reason"`
	ExecInput     string `json:"exec_input"`
}

func configOf(tree *perdure.Tree) (c treeConfig) {
	if json.Unmarshal(tree.Config, &c) != nil {
		return treeConfig{}
	}
	return c
}

// notePlan notes what of the model and the planner the user may not expect.
func (a *app) notePlan(tree *perdure.Tree) {
	c := configOf(tree)
	if c.Model == extract.Name {
		a.Note("model: builtin:extract, which quotes passages; --model selects a model that writes text")
	}
	switch {
	case c.PlannerReason == "":
	case c.Planner == rlm.PlannerSearch:
		a.Note("planner: search, because %s; --planner split reads everything", c.PlannerReason)
	default:
		a.Note("planner: split: %s", c.PlannerReason)
	}
}

// attend follows trees until they end, executes them if no daemon does, and prints
// their results.
func (a *app) attend(ctx context.Context, b *env.Backend, ids []perdure.TreeID) error {
	err := a.carryOut(ctx, b, ids)
	if waiting, ok := errors.AsType[*gatesError](err); ok {
		return a.printGates(ctx, b, waiting)
	}
	if errors.Is(err, env.ErrInterrupted) {
		if err := a.noteInterrupted(ctx, b, ids); err != nil {
			return err
		}
	} else if err != nil {
		return a.withResumeHint(err, ids)
	}
	after := context.WithoutCancel(ctx)
	var worst error
	for _, id := range ids {
		if err := a.printResult(after, b, id); err != nil && worst == nil {
			worst = err
		} else if err != nil {
			a.PrintError(err)
		}
	}
	return worst
}

// carryOut follows trees until all have ended, and executes them if no daemon does.
// After ctx ended it waits for the running tasks.
func (a *app) carryOut(ctx context.Context, b *env.Backend, ids []perdure.TreeID) error {
	view := newProgressView(a.Err, false)
	defer view.finish()
	if b.Local == nil {
		return a.follow(ctx, b, ids, view)
	}
	return b.Follow(ctx, func(ctx context.Context) error {
		err := a.follow(ctx, b, ids, view)
		if errors.Is(err, env.ErrInterrupted) {
			view.say("perdure: stopping after the running calls; press Ctrl-C again to stop at once; `perdure resume` " +
				"continues either way")
		}
		return err
	})
}

// noteInterrupted notes how to continue after Ctrl-C. It returns nil if the trees have
// ended nevertheless.
func (a *app) noteInterrupted(ctx context.Context, b *env.Backend, ids []perdure.TreeID) error {
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
			a.Note("detached: the daemon continues %s; `perdure status %s` shows its progress, `perdure cancel %s` stops it",
				id, id, id)
			continue
		}
		a.Note("stopped: %d of %s done; `perdure resume %s` continues", s.Completed,
			human.Count(s.Total, "task"), id)
	}
	if unfinished == 0 {
		return nil
	}
	return &env.Exit{Status: env.StatusInterrupted}
}

// withResumeHint adds to an error how to continue.
func (a *app) withResumeHint(err error, ids []perdure.TreeID) error {
	hint := perdure.HintOf(err)
	if strings.Contains(hint, "perdure resume") || errors.Is(err, perdure.ErrDamaged) {
		return err
	}
	if hint != "" {
		hint += "; "
	}
	command := "perdure resume"
	if len(ids) == 1 {
		command += " " + string(ids[0])
	}
	return &perdure.Error{Code: perdure.CodeOf(err), Msg: err.Error(),
		Hint: fmt.Sprintf("%sfinished tasks are kept; `%s` continues", hint, command)}
}
