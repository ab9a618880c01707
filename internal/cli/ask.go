package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
)

func (a *app) newAskCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `ask TREE "PROMPT"`,
		Short: "Ask a further question about the context of a run",
		Long: "Ask a further question about the context of a run that has ended, as a new tree. The context is not read or " +
			"stored again, and the new tree begins with a copy of the first one's variables. With planner repl it also goes " +
			"on with the conversation: the model sees its earlier code and output, and what the code had bound is there. " +
			"Model, planner and limits are those of the first tree; flags change them. The output is that of `perdure run`.",
		Example: "perdure ask tree-1a2b3c4d \"And which of them are tested?\"\n perdure ask tree-1a2b3c4d \"Why?\" --model " +
			"openai:NAME --budget-usd 2",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(2, 2, "a tree and a prompt"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, &f, args[0], args[1])
		},
	}
	f.register(a, cmd)
	env.ExecutesStored(cmd)
	for _, name := range runSettings() {
		cmd.Flags().Lookup(strings.ReplaceAll(name, "_", "-")).DefValue = "" // as the tree has it
	}
	for _, name := range readingFlags() {
		cmd.Flags().Lookup(name).Hidden = true
	}
	return cmd
}

// readingFlags returns the flags about how files are read. A further question reads none.
func readingFlags() []string { return []string{"encoding", "max-file-size", "no-ignore", "pre"} }

// checkReading refuses flags about how files are read.
func checkReading(cmd *cobra.Command, tree string) error {
	for _, name := range readingFlags() {
		if env.Changed(cmd, name) {
			return env.UsageError("leave it out, or start a new tree with `perdure run \"PROMPT\" -c PATH`",
				"--%s has no effect here: the context of tree %q is not read again", name, tree)
		}
	}
	return nil
}

// ask creates the tree of a further question, and follows it.
func (a *app) ask(cmd *cobra.Command, f *runFlags, tree, prompt string) error {
	if strings.TrimSpace(prompt) == "" {
		return env.UsageError("perdure ask TREE \"PROMPT\"", "prompt is empty")
	}
	if err := env.CheckTree(tree); err != nil {
		return err
	}
	if err := checkReading(cmd, tree); err != nil {
		return err
	}
	l, err := a.Load(cmd)
	if err != nil {
		return err
	}
	req := client.TreeRequest{Ask: perdure.TreeID(tree), Prompt: prompt, Name: f.name}
	if req.Config, err = f.changes(a, cmd, l); err != nil {
		return err
	}
	return a.start(cmd.Context(), l, f, req)
}

// configMembers returns the members of a configuration that a flag sets.
func configMembers(flag string) []string {
	switch flag {
	case "sub-model":
		return []string{"sub_model", "sub_models"}
	case "model":
		return []string{"model", "base_url"}
	case "max-output-tokens":
		return []string{"answer_tokens"}
	case "overlap":
		return []string{"overlap_tokens", "overlap_percent"}
	case "agent":
		return []string{"agent", "agents"}
	case "var":
		return []string{"variables", "session"}
	case "tool", "param", "header":
		return []string{flag + "s"}
	}
	return []string{strings.ReplaceAll(flag, "-", "_")}
}

// changes returns the members of the configuration that flags set.
func (f *runFlags) changes(a *app, cmd *cobra.Command, l *config.Loaded) (json.RawMessage, error) {
	raw, err := f.encode(a, cmd, l, false)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var given []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		given = append(given, configMembers(flag.Name)...)
	})
	if !env.Changed(cmd, "sub-model") {
		given = slices.DeleteFunc(given, func(name string) bool { return name == "sub_model" })
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(given, name) })
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}
