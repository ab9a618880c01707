package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newForkCommand() *cobra.Command {
	var at int
	var params paramFlags
	var changed rlm.Config
	cmd := &cobra.Command{
		Use:   "fork TREE --at TURN",
		Short: "Go on from an earlier turn of a REPL as a new tree",
		Long: "Create a tree that goes on from a turn of a run with planner repl: the replies up to it, and their " +
			"sub-calls, are taken over and cost nothing; what follows is new. The other tree does not " +
			"change. --model and --sub-model " +
			"replace the models from then on. The output is that of `perdure run`.",
		Example: "perdure fork tree-1a2b3c4d --at 3\n perdure fork tree-1a2b3c4d --at 3 --model " +
			"openai:NAME",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(1, 1, "one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			if err := params.addTo(a, &changed); err != nil {
				return err
			}
			return a.With(cmd.Context(), l, env.Execute, func(b *env.Backend) error {
				return a.fork(cmd, b, l, args[0], &forkFlags{at, changed.Params, changed.Headers})
			})
		},
	}
	env.ExecutesStored(cmd)
	cmd.Flags().IntVar(&at, "at", 0, "`TURN` last turn that is taken over")
	env.SettingFlags(cmd, "model", "sub_model", "base_url", "concurrency", "repl_python", "repl_unsandboxed")
	for _, name := range []string{"model", "sub-model", "base-url"} {
		cmd.Flags().Lookup(name).DefValue = "" // as the tree has it
	}
	params.register(cmd.Flags())
	a.JSONFlag(cmd)
	return cmd
}

// forkFlags are the flags of a fork, in addition to those of settings.
type forkFlags struct {
	at              int
	params, headers rlm.Fields
}

// fork creates a tree that goes on from a turn of another one, and follows it.
func (a *app) fork(cmd *cobra.Command, b *env.Backend, l *config.Loaded, arg string, f *forkFlags) error {
	ctx := cmd.Context()
	id, err := b.FindTree(ctx, arg)
	if err != nil {
		return err
	}
	if f.at < 1 {
		return env.UsageError("`perdure show TASK` of the root lists the turns", "--at is missing, or is not a turn")
	}
	if err := checkBaseURL(cmd, l); err != nil {
		return err
	}
	req, err := forkRequest(ctx, b, id, func(c *rlm.Config) {
		c.Params, c.Headers = f.params.Over(c.Params), f.headers.Over(c.Headers)
		c.Fork = &rlm.Fork{Tree: id, At: f.at}
		if cmd.Flags().Changed("model") {
			if c.SubModel == c.Model {
				c.SubModel = ""
			}
			c.Model = a.anchor(l.Model)
		}
		if env.Changed(cmd, "sub-model") {
			c.SubModel = a.anchor(l.SubModel)
		}
		a.nameModels(cmd, l, c)
		for _, name := range []string{"model", "sub-model", "base-url"} {
			if url := a.baseURL(l); cmd.Flags().Changed(name) && url != "" { // otherwise that of the tree
				c.BaseURL = url
			}
		}
	})
	if err != nil {
		return err
	}
	req.Owner = b.Session()
	tree, err := b.CreateTree(ctx, req)
	if err != nil {
		return err
	}
	b.Own(tree.ID)
	fmt.Fprintln(a.Err, tree.ID)
	return a.attend(ctx, b, []perdure.TreeID{tree.ID})
}

// forkRequest is the request for a tree like another one, with changes.
func forkRequest(ctx context.Context, b *env.Backend, id perdure.TreeID, change func(*rlm.Config)) (
	client.TreeRequest, error) {
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return client.TreeRequest{}, err
	}
	if tree.Kind == perdure.KindRecord {
		return client.TreeRequest{}, env.UsageError("`perdure run` with its prompt starts a new tree",
			"%s is an imported record, which is not executed", id)
	}
	root, err := b.Task(ctx, tree.Root)
	if err != nil {
		return client.TreeRequest{}, err
	}
	c, err := rlm.ParseConfig(tree.Config)
	if err != nil {
		return client.TreeRequest{}, err
	}
	change(&c)
	req := client.TreeRequest{Kind: tree.Kind, Name: tree.Name, Prompt: root.Prompt, ContextID: root.Context.Source}
	if req.Config, err = json.Marshal(c); err != nil {
		err = fmt.Errorf("encode configuration: %w", err)
	}
	return req, err
}
