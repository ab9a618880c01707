package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/schemas"
	"github.com/perdure/perdure/internal/config"
)

// schemaNames lists them in order.
func schemaNames() []string {
	entries, err := schemas.FS.ReadDir(".")
	if err != nil {
		return nil // the folder is embedded
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	return names
}

func (a *app) newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of an output, or list them",
		Long: "Print a JSON Schema (draft 2020-12): of what run, batch and resume print with --json (run-result), " +
			"of status --json (status), show --json (task), of var get --json (variable), of a line of var history --json (mutation), of events --json (event) and of export (export-line), of the file of prices (prices), and of the " +
			"files of export --layout aiwg and --state: tasks-file, rlm-task-tree, rlm-state, and those of loops: loop-state, " +
			"persistence-extension (what is more in a loop-state where regressions are watched), loop-checkpoint, iteration-analytics, " +
			"persistence-hooks; of what passes between hooks of a loop and their handlers (hook-message, hook-reply); of builder-state.json (builder-state) and of the checkpoint in it, which handoff show --json prints (handoff-checkpoint). " +
			"Without a name, list them.",
		GroupID:   groupManage,
		Args:      arguments(0, 1, "one name"),
		ValidArgs: schemaNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				a.printf("%s\n", strings.Join(schemaNames(), "\n"))
				return nil
			}
			text, err := schemas.FS.ReadFile(args[0] + ".json")
			if err != nil {
				return unknownSchema(args[0])
			}
			a.printf("%s", text)
			return nil
		},
	}
}

func unknownSchema(name string) error {
	names := schemaNames()
	hint := "there are " + strings.Join(names, ", ")
	if near, ok := config.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &perdure.Error{Code: perdure.CodeNotFound, Msg: fmt.Sprintf("there is no schema %q", name), Hint: hint}
}
