// Package schema implements the command schema, which prints the published JSON
// Schemas.
package schema

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/text/nearest"
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

// Command makes the command.
func Command(e *env.Env) *cobra.Command {
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
		GroupID:   env.GroupManage,
		Args:      env.Arguments(0, 1, "one name"),
		ValidArgs: Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				e.Printf("%s\n", strings.Join(Names(), "\n"))
				return nil
			}
			text, err := schema.FS.ReadFile(args[0] + ".json")
			if err != nil {
				return unknownSchema(args[0])
			}
			e.Printf("%s", text)
			return nil
		},
	}
}

func unknownSchema(name string) error {
	names := Names()
	hint := "there are " + strings.Join(names, ", ")
	if near, ok := nearest.Word(name, names); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &perdure.Error{Code: perdure.CodeNotFound, Msg: fmt.Sprintf("there is no schema %q", name), Hint: hint}
}
