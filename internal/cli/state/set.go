package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// causeFlags say why a variable is changed, and on which version.
type causeFlags struct{ source, reason, ifVersion string }

func (f *causeFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.source, "source", "user_edit", "who changes it, for the history")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the history")
	cmd.Flags().StringVar(&f.ifVersion, "if-version", "",
		"change it only if it has this `version` (mut-…; none: if it does not exist)")
}

func (f *causeFlags) cause() (perdure.Cause, error) {
	cause := perdure.Cause{Source: f.source, Reason: f.reason}
	if f.ifVersion == "" {
		return cause, nil
	}
	var id perdure.MutationID
	if f.ifVersion != "none" {
		if err := id.UnmarshalText([]byte(f.ifVersion)); err != nil {
			return cause, env.UsageError("a version looks like mut-1a2b3c4d; none stands for a variable that does not exist",
				"--if-version: %q is not a version", f.ifVersion)
		}
	}
	cause.IfVersion = &id
	return cause, nil
}

// valueFlags say a value in one of three ways.
type valueFlags struct{ file, json, kind string }

func (f *valueFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "file", "", "the content of a `FILE` is the value, - is standard input; JSON if it "+
		"is called .json, else text")
	cmd.Flags().StringVar(&f.json, "json", "", "the value as `JSON`: 5, true, {\"a\": 1}")
}

// value returns the value that was written, and its type where that is known.
func (c *commands) value(args []string, f *valueFlags) (json.RawMessage, perdure.VarType, error) {
	kind := perdure.VarType(f.kind)
	given := len(args)
	for _, text := range []string{f.file, f.json} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return nil, "", env.UsageError("give one of VALUE, --file and --json", "there are %d values", given)
	}
	switch {
	case f.json != "":
		value, err := jsonValue([]byte(f.json), "--json")
		return value, kind, err
	case f.file != "":
		content, err := c.readFile(f.file)
		if err != nil {
			return nil, "", err
		}
		isText := kind == perdure.VarText || kind == perdure.VarFileContent || kind == perdure.VarFilePath
		if strings.EqualFold(filepath.Ext(f.file), ".json") && !isText || kind != "" && !isText {
			value, err := jsonValue(content, fmt.Sprintf("the file %q", f.file))
			return value, kind, err
		}
		if kind == "" {
			kind = perdure.VarFileContent
		}
		value, err := textValue(string(content), fmt.Sprintf("the file %q", f.file))
		return value, kind, err
	}
	switch kind {
	case "", perdure.VarText, perdure.VarFilePath, perdure.VarFileContent:
		value, err := textValue(args[0], "the value")
		return value, kind, err
	case perdure.VarNumber, perdure.VarBoolean, perdure.VarNull, perdure.VarJSON, perdure.VarArray:
	}
	value, err := jsonValue([]byte(args[0]), "the value")
	return value, kind, err
}

func (c *commands) readFile(name string) ([]byte, error) {
	if name == "-" {
		return readUpTo(c.Stdin, perdure.MaxVariableBytes, "standard input")
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Cwd, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError("read value", name, err)
	}
	defer f.Close()
	return readUpTo(f, perdure.MaxVariableBytes, fmt.Sprintf("the file %q", name))
}

func jsonValue(raw []byte, what string) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if json.Valid(raw) {
		return raw, nil
	}
	err := json.Unmarshal(raw, new(any))
	var syntax *json.SyntaxError
	where := ""
	if errors.As(err, &syntax) {
		where = fmt.Sprintf(" at byte %d", syntax.Offset)
	}
	return nil, env.UsageError(`JSON looks like 5, true, "text", [1, 2] or {"a": 1}`, "%s is not JSON: %v%s", what, err,
		where)
}

func textValue(s, what string) (json.RawMessage, error) {
	if !utf8.ValidString(s) {
		return nil, env.UsageError("values are text or JSON; keep other files where they are, and their path in a "+
			"variable of type file_path",
			"%s is not UTF-8 text", what)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

func varTypes() []perdure.VarType {
	return []perdure.VarType{perdure.VarText, perdure.VarNumber, perdure.VarBoolean, perdure.VarNull,
		perdure.VarJSON, perdure.VarArray, perdure.VarFilePath, perdure.VarFileContent}
}

func (c *commands) newSetCommand() *cobra.Command {
	var s scopeFlags
	var why causeFlags
	var what valueFlags
	var spec perdure.VarSpec
	cmd := &cobra.Command{
		Use:   "set NAME (VALUE | --file FILE | --json JSON)",
		Short: "Give a variable a value",
		Long: "Give a variable a value, and create it when it is not there. VALUE is text, unless --type says otherwise. " +
			"It prints the " +
			"new version, for --if-version of a later change. Setting Final of a tree or a task to anything but null " +
			"completes it.",
		Example: "perdure var set answer 'forty two'\n perdure var set limits --json '{\"depth\": 3}' --tree " +
			"tree-1a2b3c4d\n" +
			" perdure var set token abc --ttl 10m --read-only",
		Args:              env.Arguments(1, 2, "a name and at most one value"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			spec.Name = args[0]
			if spec.Value, spec.Type, err = c.value(args[1:], &what); err != nil {
				return err
			}
			rest := spec.CancelRest
			if spec.Cause, err = why.cause(); err != nil {
				return err
			}
			spec.CancelRest = rest
			if spec.TTL < 0 || cmd.Flags().Changed("ttl") && spec.TTL == 0 {
				return env.UsageError("a time to live looks like 10m", "--ttl is %s", spec.TTL)
			}
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				v, err := t.SetVar(ctx, t.ref, spec)
				if err != nil {
					return err
				}
				c.Printf("%s\n", v.Version)
				c.hintNew(&v)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	toFlag(cmd, &s)
	f := cmd.Flags()
	what.flags(cmd)
	f.StringVar(&what.kind, "type", "", "text, number, boolean, null, json, array, file_path or file_content (default: "+
		"what the value is)")
	f.DurationVar(&spec.TTL, "ttl", 0, "`time` after which it vanishes, as 10m (default: never; in a temporary state 24h)")
	f.BoolVar(&spec.ReadOnly, "read-only", false, "refuse further changes")
	f.StringVar(&spec.Description, "description", "", "what it is")
	f.BoolVar(&spec.CancelRest, "cancel-rest", false, "for Final: cancel unfinished children instead of refusing")
	env.Complete(cmd, "type", varTypes()...)
	why.flags(cmd)
	return cmd
}

func (c *commands) newIncrCommand() *cobra.Command {
	var s scopeFlags
	var why causeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "incr NAME [NUMBER]",
		Short: "Add to a number, atomically",
		Long: "Add a number, 1 by default, to a variable, atomically: of many who do it at once none is lost. A variable " +
			"that is not " +
			"there counts as 0. It prints the new value.",
		Example:           "perdure var incr done\n perdure var incr budget -- -2.5",
		Args:              env.Arguments(1, 2, "a name and at most one number"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			by := json.Number("1")
			if len(args) == 2 {
				if err := json.Unmarshal([]byte(args[1]), &by); err != nil || args[1][0] == '"' || by == "" {
					return env.UsageError("give a number such as 2 or 0.5; a negative one behind --", "%q is not a number", args[1])
				}
			}
			cause, err := why.cause()
			if err != nil {
				return err
			}
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				v, err := t.IncrVar(ctx, t.ref, args[0], by, cause)
				if err != nil {
					return err
				}
				c.hintNew(&v)
				if asJSON {
					return c.PrintJSON(v)
				}
				c.Printf("%s\n", v.Value)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	toFlag(cmd, &s)
	why.flags(cmd)
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (c *commands) newAppendCommand() *cobra.Command {
	var s scopeFlags
	var why causeFlags
	var what valueFlags
	cmd := &cobra.Command{
		Use:   "append NAME (VALUE | --file FILE | --json JSON)",
		Short: "Add to the end of an array, atomically",
		Long: "Add a value to the end of an array, atomically. A variable that is not there counts as empty. VALUE is " +
			"text. It prints " +
			"the new version.",
		Example: "perdure var append findings 'line 3 is never reached'\n" +
			" perdure var append points --json '[1, 2]'",
		Args:              env.Arguments(1, 2, "a name and at most one value"),
		ValidArgsFunction: c.completeNames(&s),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, _, err := c.value(args[1:], &what)
			if err != nil {
				return err
			}
			cause, err := why.cause()
			if err != nil {
				return err
			}
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				v, err := t.AppendVar(ctx, t.ref, args[0], value, cause)
				if err != nil {
					return err
				}
				c.Printf("%s\n", v.Version)
				c.hintNew(&v)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	toFlag(cmd, &s)
	what.flags(cmd)
	why.flags(cmd)
	return cmd
}

// hintNew gives advice on the name of a variable that was just made.
func (c *commands) hintNew(v *perdure.Variable) {
	if v.UpdatedAt.Sub(v.CreatedAt) < time.Microsecond {
		c.hintName(v.Name)
	}
}

// vagueNames are names that say nothing, with or without a number behind them.
const vagueNames = `^(?i)([a-z_]|data|tmp|temp|var|variable|val|value|foo|bar|baz|obj|object|item|thing|stuff|test|x+|y+|z+)_?[0-9]*$`

func (c *commands) hintName(name string) {
	if vague, err := regexp.MatchString(vagueNames, name); err == nil && vague {
		c.Hint("%q says little to whoever reads it later; a name like error_count says what it is", name)
	}
}
