package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// causeFlags are the flags about the cause of a change and its version.
type causeFlags struct{ source, reason, ifVersion string }

func (c *commands) causeFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.cause.source, "source", "user_edit", "`NAME` source of the change, for the history")
	cmd.Flags().StringVar(&c.cause.reason, "reason", "", "`TEXT` reason, for the history")
}

func (c *commands) versionFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.cause.ifVersion, "if-version", "",
		"`VERSION` change the variable only if it has this version, such as mut-1a2b3c4d, or none if it must not exist")
}

func (f *causeFlags) cause() (perdure.Cause, error) {
	cause := perdure.Cause{Source: f.source, Reason: f.reason}
	if f.ifVersion == "" {
		return cause, nil
	}
	var id perdure.MutationID
	if f.ifVersion != "none" {
		if err := id.UnmarshalText([]byte(f.ifVersion)); err != nil {
			return cause, env.UsageError("write a version such as mut-1a2b3c4d, or none for a new variable",
				"--if-version: %q is not a version", f.ifVersion)
		}
	}
	cause.IfVersion = &id
	return cause, nil
}

// valueFlags are the flags of a value, which can be given in three ways.
type valueFlags struct{ file, json, kind string }

func (f *valueFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "file", "",
		"`FILE` read the value from a file, or from standard input for -; JSON if its name ends in .json, else text")
	cmd.Flags().StringVar(&f.json, "json", "",
		"`JSON` value as JSON: 5, true, {\"a\": 1}; @FILE reads it from a file, - from standard input")
}

// value returns the given value and its type, "" if it is not known.
func (c *commands) value(args []string, f *valueFlags) (json.RawMessage, perdure.VarType, error) {
	kind := perdure.VarType(f.kind)
	given := len(args)
	for _, text := range []string{f.file, f.json} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return nil, "", env.UsageError("write exactly one of VALUE, --file, --json", "%s given",
			human.Count(int64(given), "value"))
	}
	switch {
	case f.json != "":
		value, err := c.readJSON(f.json)
		return value, kind, err
	case f.file != "":
		content, err := c.readFile(f.file)
		if err != nil {
			return nil, "", err
		}
		isText := kind == perdure.VarText || kind == perdure.VarFileContent || kind == perdure.VarFilePath
		if strings.EqualFold(filepath.Ext(f.file), ".json") && !isText || kind != "" && !isText {
			value, err := jsonValue(content, fmt.Sprintf("file %q", f.file))
			return value, kind, err
		}
		value, err := textValue(string(content), fmt.Sprintf("file %q", f.file))
		return value, cmp.Or(kind, perdure.VarFileContent), err
	}
	if kind == "" && c.isComposite(args[0]) {
		value, err := jsonValue([]byte(args[0]), "the value")
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

// readJSON returns the value of --json: JSON, @FILE or - for standard input.
func (c *commands) readJSON(text string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile && text != "-" {
		return jsonValue([]byte(text), "--json")
	}
	content, err := c.readFile(name)
	if err != nil {
		return nil, err
	}
	return jsonValue(content, "--json "+text)
}

// isComposite reports whether a value is a JSON object or array. It prints a hint about one that
// begins like these and is text.
func (c *commands) isComposite(text string) bool {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return false
	}
	if json.Valid([]byte(text)) {
		return true
	}
	if strings.HasSuffix(text, "}") || strings.HasSuffix(text, "]") {
		c.Hint("the value is not valid JSON and is stored as text; --type text stores text without this hint")
	}
	return false
}

func (c *commands) readFile(name string) ([]byte, error) {
	shown := fmt.Sprintf("file %q", name)
	if name == "-" {
		shown = "standard input"
	}
	f, err := c.OpenFile(name)
	if err != nil {
		return nil, fileError("read value", name, err)
	}
	defer f.Close()
	return readUpTo(f, perdure.MaxVariableBytes, shown)
}

func jsonValue(raw []byte, what string) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if json.Valid(raw) {
		return raw, nil
	}
	err := json.Unmarshal(raw, new(any))
	where := ""
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		where = fmt.Sprintf(" at byte %d", syntax.Offset)
	}
	return nil, env.UsageError(`write JSON such as 5, true, "text", [1, 2] or {"a": 1}`, "%s is not JSON: %v%s", what, err,
		where)
}

func textValue(s, what string) (json.RawMessage, error) {
	if !utf8.ValidString(s) {
		return nil, env.UsageError("store the path of the file in a variable of type file_path", "%s is not UTF-8 text", what)
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
	var what valueFlags
	var spec perdure.VarSpec
	cmd := &cobra.Command{
		Use:   "set NAME (VALUE | --file FILE | --json JSON)",
		Short: "Set a variable",
		Long: "Set a variable, or create it. A VALUE that is a JSON object or array is stored as JSON, any other one as " +
			"text, also 5 and true; --type and --json override that. The new version is printed, for " +
			"--if-version of a later change. Setting Final of a tree or a task to a value other than null completes it.",
		Example: "perdure var set answer 'forty two'\n" +
			"perdure var set limits '{\"depth\": 3}'\n" +
			"perdure var set count 5 --type number\n" +
			"curl -s https://example.org/x.json | perdure var set fetched --json -\n" +
			"perdure var set limits --json '{\"depth\": 3}' --tree tree-1a2b3c4d\n" +
			" perdure var set token abc --ttl 10m --read-only",
		Args:              env.Arguments(1, 2, "a name and at most one value"),
		ValidArgsFunction: c.completeNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			spec.Name = args[0]
			if spec.Value, spec.Type, err = c.value(args[1:], &what); err != nil {
				return err
			}
			if spec.TTL < 0 || cmd.Flags().Changed("ttl") && spec.TTL == 0 {
				return env.UsageError("write a time such as 10m", "--ttl is %s", spec.TTL)
			}
			return c.run(env.Write, func(ctx context.Context, t *target, _ []string) error {
				t.cause.CancelRest = spec.CancelRest
				spec.Cause = t.cause
				v, err := t.SetVar(ctx, t.ref, spec)
				if err != nil {
					return err
				}
				c.Printf("%s\n", v.Version)
				c.hintNew(&v)
				return nil
			})(cmd, args)
		},
	}
	c.scopeFlags(cmd)
	c.toFlag(cmd)
	f := cmd.Flags()
	what.flags(cmd)
	f.StringVar(&what.kind, "type", "",
		"`TYPE` text, number, boolean, null, json, array, file_path or file_content; default: by the value")
	f.DurationVar(&spec.TTL, "ttl", 0,
		"`TIME` time until the variable expires, such as 10m; default: never, or 24h in a temporary state")
	f.BoolVar(&spec.ReadOnly, "read-only", false, "allow no further changes")
	f.StringVar(&spec.Description, "description", "", "`TEXT` description of the variable")
	f.BoolVar(&spec.CancelRest, "cancel-rest", false, "for Final: cancel unfinished children instead of failing")
	env.Complete(cmd, "type", varTypes()...)
	c.causeFlags(cmd)
	c.versionFlag(cmd)
	return cmd
}

func (c *commands) newIncrCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "incr NAME [NUMBER]",
		Short: "Add to a number, atomically",
		Long: "Add a number, 1 by default, to a variable atomically. A variable that does not exist counts as 0. The new " +
			"value is printed.",
		Example:           "perdure var incr done\n perdure var incr budget -- -2.5",
		Args:              env.Arguments(1, 2, "a name and at most one number"),
		ValidArgsFunction: c.completeNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			by := json.Number("1")
			if len(args) == 2 {
				if err := json.Unmarshal([]byte(args[1]), &by); err != nil || args[1][0] == '"' || by == "" {
					return env.UsageError("write a number such as 2 or 0.5, a negative one after --", "%q is not a number", args[1])
				}
			}
			return c.run(env.Write, func(ctx context.Context, t *target, _ []string) error {
				v, err := t.IncrVar(ctx, t.ref, args[0], by, t.cause)
				if err != nil {
					return err
				}
				c.hintNew(&v)
				return c.Print(v, func() { c.Printf("%s\n", v.Value) })
			})(cmd, args)
		},
	}
	c.scopeFlags(cmd)
	c.toFlag(cmd)
	c.causeFlags(cmd)
	c.versionFlag(cmd)
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) newAppendCommand() *cobra.Command {
	var what valueFlags
	cmd := &cobra.Command{
		Use:   "append NAME (VALUE | --file FILE | --json JSON)",
		Short: "Append to an array, atomically",
		Long: "Append a value to an array atomically. A variable that does not exist counts as empty. A VALUE that is a " +
			"JSON object or array is appended as JSON, any other one as text. The new version is printed.",
		Example: "perdure var append findings 'line 3 is never reached'\n" +
			" perdure var append points --json '[1, 2]'",
		Args:              env.Arguments(1, 2, "a name and at most one value"),
		ValidArgsFunction: c.completeNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, _, err := c.value(args[1:], &what)
			if err != nil {
				return err
			}
			return c.run(env.Write, func(ctx context.Context, t *target, _ []string) error {
				v, err := t.AppendVar(ctx, t.ref, args[0], value, t.cause)
				if err != nil {
					return err
				}
				c.Printf("%s\n", v.Version)
				c.hintNew(&v)
				return nil
			})(cmd, args)
		},
	}
	c.scopeFlags(cmd)
	c.toFlag(cmd)
	what.flags(cmd)
	c.causeFlags(cmd)
	c.versionFlag(cmd)
	return cmd
}

// hintNew prints a hint about the name of a new variable.
func (c *commands) hintNew(v *perdure.Variable) {
	if v.UpdatedAt.Sub(v.CreatedAt) < time.Microsecond {
		c.hintName(v.Name)
	}
}

// vagueNames matches names without a meaning.
const vagueNames = `^(?i)([a-z_]|data|tmp|temp|var|variable|val|value|foo|bar|baz|obj|object|item|thing|stuff|test|` +
	`x+|y+|z+)_?[0-9]*$`

func (c *commands) hintName(name string) {
	if vague, err := regexp.MatchString(vagueNames, name); err == nil && vague {
		c.Hint("%q is a vague name; use one such as error_count", name)
	}
}
