package state

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (c *commands) newVarCommand() *cobra.Command {
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
	var s scopeFlags
	var asJSON, path bool
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Print the value of a variable",
		Long: "Print the value of a variable: text without quotes, other values as JSON. For type file_path, print the " +
			"content of the file, which must be in the store's folder; --path prints the path.",
		Example:           "perdure var get answer\n perdure var get limits --tree tree-1a2b3c4d --json | jq .value",
		Args:              env.Arguments(1, 1, "one name"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.on(cmd, &s, false, func(ctx context.Context, t *target) error {
				v, err := t.Var(ctx, t.ref, args[0])
				if err != nil {
					return c.missing(t.ref, err)
				}
				switch {
				case asJSON:
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
				out := c.Out.Safe(text(v.Value))
				if !strings.HasSuffix(out, "\n") {
					out += "\n"
				}
				c.Printf("%s", out)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	cmd.Flags().BoolVar(&path, "path", false, "print the path of a variable of type file_path")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// missing adds a hint on the scope to the error that a variable does not exist.
func (c *commands) missing(ref perdure.StateRef, err error) error {
	if perdure.CodeOf(err) != perdure.CodeNotFound || ref.Scope != perdure.ScopeSession || perdure.HintOf(err) != "" {
		return err
	}
	return &perdure.Error{Code: perdure.CodeNotFound, Msg: err.Error(),
		Hint: fmt.Sprintf("the scope is session %q; --tree, --task and --scope select others", ref.Session)}
}

func (c *commands) newListCommand() *cobra.Command {
	var s scopeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the variables of a state",
		Long: "List the variables of a state by name, without inherited ones. With --json the output is one object a line, " +
			"without values of more than 10,240 bytes.",
		Args: env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.on(cmd, &s, false, func(ctx context.Context, t *target) error {
				n := 0
				for v, err := range t.AllVars(ctx, t.ref) {
					if err != nil {
						return err
					}
					n++
					if !asJSON {
						c.Printf("%s\n", c.row(&v))
					} else if err := c.PrintJSON(v); err != nil {
						return err
					}
				}
				if n == 0 && !asJSON {
					c.Hint("no variables in %s; `perdure var set NAME VALUE` creates one", place(t.ref))
				}
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	env.JSONFlag(cmd, &asJSON)
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
	kind := string(v.Type)
	if v.Metadata.ReadOnly {
		value += c.Out.Dim("  (read-only)")
	}
	if v.Metadata.ExpiresAt != nil {
		value += c.Out.Dim("  (until " + human.Stamp(*v.Metadata.ExpiresAt) + ")")
	}
	return c.Out.Bold(env.Pad(v.Name, nameWidth)) + "  " + c.Out.Dim(env.Pad(kind, typeWidth)) + "  " + value
}

func (c *commands) newDeleteCommand() *cobra.Command {
	var s scopeFlags
	var why causeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Remove a variable",
		Long:              "Remove a variable of a state. A rollback to its mutation in the history restores it.",
		Args:              env.Arguments(1, 1, "one name"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			cause, err := why.cause()
			if err != nil {
				return err
			}
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				if err := t.DeleteVar(ctx, t.ref, args[0], cause); err != nil {
					return c.missing(t.ref, err)
				}
				if asJSON {
					return c.PrintJSON(map[string]string{"deleted": args[0]})
				}
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	why.flags(cmd)
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (c *commands) newRenameCommand() *cobra.Command {
	var s scopeFlags
	var why causeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "rename NAME NEW",
		Short:             "Rename a variable",
		Long:              "Rename a variable of a state. The new name must not exist.",
		Args:              env.Arguments(2, 2, "a name and a new name"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			cause, err := why.cause()
			if err != nil {
				return err
			}
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				v, err := t.RenameVar(ctx, t.ref, args[0], args[1], cause)
				if err != nil {
					return c.missing(t.ref, err)
				}
				c.hintName(v.Name)
				if asJSON {
					return c.PrintJSON(v)
				}
				c.Printf("%s\n", v.Version)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	why.flags(cmd)
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// completeNames offers the variables of the selected state, with their types.
func (c *commands) completeNames(s *scopeFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var found []cobra.Completion
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		err := c.on(cmd, s, false, func(ctx context.Context, t *target) error {
			for v, err := range t.AllVars(ctx, t.ref) {
				if err != nil {
					return err
				}
				found = append(found, cobra.CompletionWithDesc(v.Name, string(v.Type)))
			}
			return nil
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // no store, no variables
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *commands) newHistoryCommand() *cobra.Command {
	var s scopeFlags
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "List the changes of a state or a variable",
		Long: "List the changes of a state, or of a variable, the newest first. A rollback to a mutation restores the " +
			"state " +
			"before it. With --json the output is one object a line.",
		Example:           "perdure var history\n perdure var history answer --limit 5",
		Args:              env.Arguments(0, 1, "at most one name"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return env.UsageError("write a number from 1 to 1000", "--limit is %d", limit)
			}
			q := client.HistoryQuery{Limit: limit, Name: strings.Join(args, "")}
			return c.on(cmd, &s, false, func(ctx context.Context, t *target) error {
				page, err := t.History(ctx, t.ref, q)
				if err != nil {
					return err
				}
				for i := range page.Mutations {
					m := &page.Mutations[i]
					if !asJSON {
						c.Printf("%s\n", c.mutation(m))
					} else if err := c.PrintJSON(m); err != nil {
						return err
					}
				}
				if page.Next != 0 && !asJSON {
					c.Hint("there are more changes; use --limit %d", min(2*limit, 1000))
				}
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	cmd.Flags().IntVar(&limit, "limit", 100, "`N` maximum changes to list")
	env.JSONFlag(cmd, &asJSON)
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
