package state

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// VarCommand returns the command var.
func VarCommand(e *env.Env) *cobra.Command {
	c := &commands{Env: e}
	return env.Group(&cobra.Command{
		Use:   "var",
		Short: "Set, read and list persistent variables",
		Long: "Set, read and list persistent variables. Their scope is a session (the default: PERDURE_SESSION, or one for " +
			"each terminal), a tree or one of its tasks, a temporary state, or global. A task reads its own variables, then " +
			"those of its parents, of the session and of the global scope. The history contains all changes.",
		GroupID: env.GroupState,
	}, c.newSetCommand(), c.newGetCommand(), c.newListCommand(), c.newDeleteCommand(), c.newRenameCommand(),
		c.newHistoryCommand(), c.newIncrCommand(), c.newAppendCommand())
}

// text returns a value as text: strings without quotes, others as JSON.
func text(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

func (c *commands) newGetCommand() *cobra.Command {
	var path bool
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Print the value of a variable",
		Long: "Print the value of a variable: text without quotes, other values as JSON. For type file_path, print the " +
			"content of the file, which must be in the store's folder; --path prints the path.",
		Example:           "perdure var get answer\n perdure var get limits --tree tree-1a2b3c4d --json | jq .value",
		Args:              env.Arguments(1, 1, "one name"),
		ValidArgsFunction: c.completeNames(),
		RunE: c.run(env.Read, func(ctx context.Context, t *target, args []string) error {
			v, err := t.Var(ctx, t.ref, args[0])
			if err != nil {
				return c.missing(t.ref, err)
			}
			switch {
			case c.JSON:
				return c.PrintJSON(v)
			case path && v.Type != perdure.VarFilePath:
				return env.UsageError("omit --path", "variable %q is of type %s, not %s", v.Name, v.Type, perdure.VarFilePath)
			case v.Type == perdure.VarFilePath && !path:
				content, err := follow(t.dir, text(v.Value))
				if err == nil {
					c.Printf("%s", c.Out.Safe(string(content)))
				}
				return err
			}
			c.Printf("%s\n", strings.TrimSuffix(c.Out.Safe(text(v.Value)), "\n"))
			return nil
		}),
	}
	c.scopeFlags(cmd)
	cmd.Flags().BoolVar(&path, "path", false, "print the path of a variable of type file_path")
	c.JSONFlag(cmd)
	return cmd
}

// missing adds a hint on the scope to the error that a variable does not exist.
func (c *commands) missing(ref perdure.StateRef, err error) error {
	if perdure.CodeOf(err) != perdure.CodeNotFound || ref.Scope != perdure.ScopeSession || perdure.HintOf(err) != "" {
		return err
	}
	return env.NotFound(fmt.Sprintf("the scope is session %q; --tree, --task and --scope select others", ref.Session),
		"%s", err)
}

func (c *commands) newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the variables of a state",
		Long: "List the variables of a state by name, without inherited ones. With --json the output is one object a line, " +
			"without values of more than 10,240 bytes.",
		Args: env.Arguments(0, 0, "no arguments"),
		RunE: c.run(env.Read, func(ctx context.Context, t *target, _ []string) error {
			n := 0
			for v, err := range t.AllVars(ctx, t.ref) {
				if err != nil {
					return err
				}
				n++
				if err := c.Print(v, func() { c.Printf("%s\n", c.row(&v)) }); err != nil {
					return err
				}
			}
			if n == 0 && !c.JSON {
				c.Hint("no variables in %s; `perdure var set NAME VALUE` creates one", place(t.ref))
			}
			return nil
		}),
	}
	c.scopeFlags(cmd)
	c.JSONFlag(cmd)
	return cmd
}

// place returns the name of a state for messages.
func place(ref perdure.StateRef) string {
	switch {
	case ref.Scope == perdure.ScopeGlobal:
		return "the global state"
	case ref.Scope == perdure.ScopeSession:
		return "session " + ref.Session
	case ref.Scope == perdure.ScopeTemporary:
		return "temporary state " + ref.Name
	case ref.Task != 0:
		return ref.Task.String()
	}
	return string(ref.Tree)
}

const nameWidth, typeWidth = 20, 12

// row returns a variable as a line of a list.
func (c *commands) row(v *perdure.Variable) string {
	value := c.Out.Dim(human.Size(v.Size))
	if v.Size <= perdure.MaxInlineBytes {
		value = env.OneLine(text(v.Value), c.Out.Width-nameWidth-typeWidth-4)
	}
	if v.Metadata.ReadOnly {
		value += c.Out.Dim("  (read-only)")
	}
	if v.Metadata.ExpiresAt != nil {
		value += c.Out.Dim("  (until " + human.Stamp(*v.Metadata.ExpiresAt) + ")")
	}
	return c.Out.Bold(env.Pad(v.Name, nameWidth)) + "  " + c.Out.Dim(env.Pad(string(v.Type), typeWidth)) + "  " + value
}

func (c *commands) newDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Remove a variable",
		Long:              "Remove a variable of a state. A rollback to its mutation in the history restores it.",
		Args:              env.Arguments(1, 1, "one name"),
		ValidArgsFunction: c.completeNames(),
		RunE: c.run(env.Write, func(ctx context.Context, t *target, args []string) error {
			if err := t.DeleteVar(ctx, t.ref, args[0], t.cause); err != nil {
				return c.missing(t.ref, err)
			}
			return c.Print(map[string]string{"deleted": args[0]}, func() {})
		}),
	}
	c.scopeFlags(cmd)
	c.causeFlags(cmd)
	c.versionFlag(cmd)
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) newRenameCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "rename NAME NEW",
		Short:             "Rename a variable",
		Long:              "Rename a variable of a state. The new name must not exist.",
		Args:              env.Arguments(2, 2, "a name and a new name"),
		ValidArgsFunction: c.completeNames(),
		RunE: c.run(env.Write, func(ctx context.Context, t *target, args []string) error {
			v, err := t.RenameVar(ctx, t.ref, args[0], args[1], t.cause)
			if err != nil {
				return c.missing(t.ref, err)
			}
			c.hintName(v.Name)
			return c.Print(v, func() { c.Printf("%s\n", v.Version) })
		}),
	}
	c.scopeFlags(cmd)
	c.causeFlags(cmd)
	c.versionFlag(cmd)
	c.JSONFlag(cmd)
	return cmd
}

// completeNames offers the variables of the selected state, with their types.
func (c *commands) completeNames() cobra.CompletionFunc {
	return c.complete(1, func(ctx context.Context, t *target, add func(word, about string)) error {
		for v, err := range t.AllVars(ctx, t.ref) {
			if err != nil {
				return err
			}
			add(v.Name, string(v.Type))
		}
		return nil
	})
}

func (c *commands) newHistoryCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "List the changes of a state or a variable",
		Long: "List the changes of a state, or of a variable, the newest first. A rollback to a mutation restores the " +
			"state before it. With --json the output is one object a line.",
		Example:           "perdure var history\n perdure var history answer --limit 5",
		Args:              env.Arguments(0, 1, "at most one name"),
		ValidArgsFunction: c.completeNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return env.UsageError("write a number from 1 to 1000", "--limit is %d", limit)
			}
			q := perdure.HistoryFilter{Limit: limit, Name: strings.Join(args, "")}
			return c.run(env.Read, func(ctx context.Context, t *target, _ []string) error {
				page, err := t.History(ctx, t.ref, q)
				if err != nil {
					return err
				}
				for _, m := range page.Mutations {
					if err := c.Print(&m, func() { c.Printf("%s\n", c.mutation(&m)) }); err != nil {
						return err
					}
				}
				if page.Next != 0 && !c.JSON {
					c.Hint("there are more changes; use --limit %d", min(2*limit, 1000))
				}
				return nil
			})(cmd, args)
		},
	}
	c.scopeFlags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "`N` maximum changes to list")
	c.JSONFlag(cmd)
	return cmd
}

// mutation returns a change as a line of a history.
func (c *commands) mutation(m *perdure.Mutation) string {
	what := m.Name
	switch {
	case m.Operation == "compacted":
		what = human.Count(m.Count, "older change")
	case m.Operation == "rollback":
		what = "to " + m.To
	case m.To != "":
		what += " → " + m.To
	default:
		what += "  " + c.step(m.Old, m.OldSize, m.New, m.NewSize)
	}
	by := m.Source
	if m.Reason != "" {
		by += ": " + m.Reason
	}
	line := fmt.Sprintf("%s  %s  %s  %s", m.ID, human.Stamp(m.Time), env.Pad(m.Operation, 8), env.OneLine(what, 60))
	if by != "" {
		line += "  " + c.Out.Dim(env.OneLine(by, 40))
	}
	return line
}

// step returns the old and the new value of a change.
func (c *commands) step(old json.RawMessage, oldSize int64, now json.RawMessage, nowSize int64) string {
	short := func(v json.RawMessage, size int64) string {
		if v == nil && size > 0 {
			return human.Size(size)
		}
		return env.OneLine(string(v), 40)
	}
	switch {
	case oldSize == 0:
		return short(now, nowSize)
	case nowSize == 0:
		return short(old, oldSize)
	}
	return short(old, oldSize) + " → " + short(now, nowSize)
}
