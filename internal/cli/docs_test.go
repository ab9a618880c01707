package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	schemacmd "github.com/perdure/perdure/internal/cli/schema"
	"github.com/perdure/perdure/internal/config"
	schemas "github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/loop/hook"
)

var update = flag.Bool("update", false, "write docs/cli.md instead of comparing it")

// TestDocsOfCommands: docs/cli.md is generated from the commands.
func TestDocsOfCommands(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "..", "docs", "cli.md")
	got := commandDocs()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/cli.md is not current (-file +commands); go test ./internal/cli -run Docs -update writes it:\n%s",
			diff)
	}
}

// TestDocsOfHooks: docs/operations.md has a row for each hook, and with docs/models.md names each
// section and field of the settings file that no flag sets.
func TestDocsOfHooks(t *testing.T) {
	t.Parallel()
	text := ""
	for _, page := range []string{"operations.md", "models.md"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		text += string(raw)
	}
	for _, row := range hook.Table() {
		if want := fmt.Sprintf("| `%s` | %s |", row.Hook, row.When); !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for _, s := range config.Sections() {
		if !strings.Contains(text, "`"+s.Key+"`") {
			t.Errorf("%s is not described", s.Key)
		}
	}
	for _, field := range []string{"on_fault", "timeout", "base_url", "system", "temperature", "max_output_tokens"} {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("the field %s is not described", field)
		}
	}
}

const docsHead = `# Commands

Generated from the commands; do not edit. --help prints the help of a command, --help-all with all flags.

Results go to standard output, everything else to standard error. With --json, commands print JSON with published schemas
(` + "`perdure schema`" + `): fields can be added, none is renamed. An error of usage is then one line of
JSON on standard error: ` + "`" + `{"error": {"code": "invalid", "message": "…", "hint": "…"}}` + "`" + `.

| Exit status | Meaning |
|---:|---|
| 0 | done |
| 1 | failed |
| 2 | invalid usage or input |
| 3 | finished but incomplete, or findings that block |
| 4 | not found |
| 5 | conflict: another process holds it, or it is in the wrong state |
| 6 | a loop or a run waits at a gate |
| 7 | model, program or daemon unavailable |
| 8 | the agent's context is full: stop after the current step (` + "`perdure handoff context`" + `) |
| 130 | interrupted |

Settings come from flags, environment variables (` + "`PERDURE_…`" + `), ` + "`.perdure/config.yaml`" +
	` and defaults, in this order;
` + "`perdure config`" + ` prints them with their origins. Other variables: ` + "`PERDURE_DIR`" +
	` (the .perdure folder), ` +
	"`PERDURE_SESSION`" + ` (the session of
variables), ` + "`PERDURE_TREE`" + ` and ` + "`PERDURE_TASK`" + ` (the task of a program of a run), ` +
	"`PERDURE_AGENT`" + ` and
` + "`PERDURE_HANDOFF_TOKEN`" + ` (the agent of a handoff, and its claim), ` + "`PERDURE_GATE_TOKEN`" + `
(the token of a gate), ` + "`OPENAI_API_KEY`" + `,
` + "`OPENAI_BASE_URL`" + `, ` + "`ANTHROPIC_API_KEY`" + `, ` + "`ANTHROPIC_BASE_URL`" + `, ` + "`NO_COLOR`" + `.
`

func commandDocs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	b.WriteString("\n## Settings\n\n| Key | Variable | Default | |\n|---|---|---|---|\n")
	for _, key := range config.Keys() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", key.Name, key.Variable, codeOrNothing(key.Default), escape(key.Help))
	}
	root := newApp(env.Process{}).newRoot()
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", group.Title)
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() && cmd.Name() != "help" {
				writeCommand(&b, cmd)
				for _, sub := range ownCommands(cmd) {
					writeCommand(&b, sub)
				}
			}
		}
	}
	return b.String()
}

// ownCommands returns the subcommands of a command without those of cobra.
func ownCommands(cmd *cobra.Command) []*cobra.Command {
	if cmd.Name() == "completion" {
		return nil
	}
	return cmd.Commands()
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n```\n%s\n```\n\n", cmd.CommandPath(), cmd.UseLine())
	text := cmd.Long
	if text == "" || cmd.Name() == "completion" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "%s\n", strings.TrimSpace(text))
	if cmd.Example != "" {
		b.WriteString("\n```\n")
		for _, line := range strings.Split(strings.TrimSpace(cmd.Example), "\n") {
			fmt.Fprintf(b, "%s\n", strings.TrimSpace(line))
		}
		b.WriteString("```\n")
	}
	group := "none"
	for _, f := range env.FlagHelps(cmd.LocalFlags()) {
		if f.Group != group {
			group = f.Group
			title := group
			if title == "" {
				title = "Flag"
			}
			fmt.Fprintf(b, "\n| %s | |\n|---|---|\n", title)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", f.Name, escape(f.Text))
	}
}

func codeOrNothing(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func escape(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// Every schema is valid, and so are its examples.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, name := range schemacmd.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := schemas.FS.ReadFile(name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			schema, err := schematest.Compile(text)
			if err != nil {
				t.Fatal(err)
			}
			var with struct {
				Examples []json.RawMessage `json:"examples"`
			}
			if err := json.Unmarshal(text, &with); err != nil {
				t.Fatal(err)
			}
			if len(with.Examples) == 0 {
				t.Error("no examples")
			}
			for i, example := range with.Examples {
				if err := schema.ValidateJSON(example); err != nil {
					t.Errorf("example %d: %v", i, err)
				}
			}
			if schema.Validate(map[string]any{}) == nil {
				t.Error("an empty object passes: the schema requires nothing")
			}
		})
	}
}

// Only the command that the first argument names is built, under its own name.
func TestCommandsAreBuiltByName(t *testing.T) {
	t.Parallel()
	names := func(args ...string) []string {
		var names []string
		for _, cmd := range newApp(env.Process{Args: args}).newRoot().Commands() {
			if cmd.Name() != "help" && cmd.Name() != "completion" {
				names = append(names, cmd.Name())
			}
		}
		return names
	}
	var all []string
	for _, c := range newApp(env.Process{}).commands() {
		all = append(all, c.name)
		if got := names(c.name, "--help"); !slices.Equal(got, []string{c.name}) {
			t.Errorf("for %s: built %q", c.name, got)
		}
	}
	slices.Sort(all)
	for _, args := range [][]string{nil, {"--help"}, {"help", "run"}, {"completion", "bash"}, {"no-such-command"}} {
		if diff := cmp.Diff(all, names(args...)); diff != "" {
			t.Errorf("for %q (-want +got):\n%s", args, diff)
		}
	}
}

// Each command has a description, a group and, if it prints text, --json.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	withoutJSON := map[string]bool{"init": true, "schema": true, "serve": true, "export": true, "watch": true,
		"skill":   true,
		"hook":    true, // prints only JSON
		"acp run": true, "acp loop": true}
	for _, c := range newApp(env.Process{}).commands() {
		cmd := c.build()
		if cmd.Short == "" || cmd.GroupID == "" {
			t.Errorf("%s: no text or no group", cmd.Name())
		}
		printing := []*cobra.Command{cmd}
		if cmd.HasSubCommands() {
			printing = cmd.Commands() // the command itself prints its help
		}
		for _, cmd := range printing {
			if cmd.Short == "" || cmd.Flags().Lookup("json") == nil && !withoutJSON[cmd.Name()] &&
				!withoutJSON[cmd.CommandPath()] {
				t.Errorf("%s: no text or no --json", cmd.CommandPath())
			}
		}
	}
}
