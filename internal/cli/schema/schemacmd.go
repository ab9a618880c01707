// Package schema has the command that prints the published schemas. It is part
// of the command line.
package schema

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/schema"
)

// Names lists them in order.
func Names() []string {
	entries, err := schema.FS.ReadDir(".")
	if err != nil {
		return nil // the folder is embedded
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	return names
}

// Command makes the command; arguments makes a check of the number of arguments.
func Command(out io.Writer, group string,
	arguments func(least, most int, what string) cobra.PositionalArgs) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of an output, or list them",
		Long: "Print a JSON Schema (draft 2020-12): of what run, batch and resume print with --json (run-result), of " +
			"check --json (check-report), " +
			"of status --json (status), show --json (task), of var get --json (variable), of a line of var history --json " +
			"(mutation), of events --json (event) and of export (export-line), of the file of prices (prices), and of the " +
			"files of export --layout aiwg and --state: tasks-file, rlm-task-tree, rlm-state, and those of loops: loop-state, " +
			"persistence-extension (what is more in a loop-state where regressions are watched), loop-checkpoint, " +
			"iteration-analytics, " +
			"persistence-hooks; of what passes between hooks of a loop and their handlers (hook-message, hook-reply); of a " +
			"line of tool-calls.jsonl (tool-call); of builder-state.json (builder-state) and of the checkpoint in it, which " +
			"handoff show --json prints (handoff-checkpoint). " +
			"Without a name, list them.",
		GroupID:   group,
		Args:      arguments(0, 1, "one name"),
		ValidArgs: Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(out, strings.Join(Names(), "\n"))
				return err
			}
			text, err := schema.FS.ReadFile(args[0] + ".json")
			if err != nil {
				return unknownSchema(args[0])
			}
			_, err = out.Write(text)
			return err
		},
	}
}

func unknownSchema(name string) error {
	names := Names()
	hint := "there are " + strings.Join(names, ", ")
	if near, ok := config.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &perdure.Error{Code: perdure.CodeNotFound, Msg: fmt.Sprintf("there is no schema %q", name), Hint: hint}
}
