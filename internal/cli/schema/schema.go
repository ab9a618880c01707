// Package schema implements the command schema, which prints the published JSON
// Schemas.
package schema

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/schema"
)

// Names returns the names of the schemas in order.
func Names() []string {
	entries, _ := schema.FS.ReadDir(".") // does not fail: the folder is embedded
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	return names
}

// Command returns the command.
func Command(e *env.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print a JSON Schema, or list the schemas",
		Long: "Print a JSON Schema (draft 2020-12), or list the schemas.\n\n" +
			"Outputs: run-result (run, batch and resume --json), run-estimate (with --dry-run), check-report (check --json), " +
			"status (status --json), task (show --json), variable (var get --json), mutation (a line of var history " +
			"--json), event (a line of events --json), meter-summary (meter --json), export-line (a line of export), " +
			"log-report (verify-log --json).\n" +
			"Files: prices, tasks-file, task-record, rlm-task-tree, rlm-state and state-checkpoint (export --layout aiwg and " +
			"--state), builder-state and handoff-checkpoint (its checkpoint; handoff show --json), rlm-log-line (a line of " +
			"export --format rlm-jsonl).\n" +
			"Loops: loop-state with persistence-extension (its fields on supervision), loop-checkpoint, iteration-analytics, " +
			"persistence-hooks, hook-message and hook-reply (to and from handlers), tool-call (a line of tool-calls.jsonl).",
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
				unknown := env.Unknown("schema", args[0], Names())
				unknown.Code = perdure.CodeNotFound
				return unknown
			}
			e.Printf("%s", text)
			return nil
		},
	}
}
