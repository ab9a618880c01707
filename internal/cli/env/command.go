package env

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/nearest"
)

// The groups of commands in the help.
const (
	GroupRun     = "run"
	GroupInspect = "inspect"
	GroupState   = "state"
	GroupManage  = "manage"
)

// UsageError returns an error for bad input on the command line.
func UsageError(hint, format string, args ...any) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// NotFound returns an error for a thing that does not exist.
func NotFound(hint, format string, args ...any) error {
	return &perdure.Error{Code: perdure.CodeNotFound, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// Unknown returns the error for a word that is not one of the known ones. It suggests the
// nearest one, or else lists them.
func Unknown(kind, word string, known []string) *perdure.Error {
	hint := "the " + kind + "s are " + strings.Join(known, ", ")
	if near, ok := nearest.Word(word, known); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf("unknown %s %q", kind, word), Hint: hint}
}

// Arguments checks the number of arguments. Most is -1 for any number; what names
// the arguments in the error.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		hint := fmt.Sprintf("%s --help shows the usage", cmd.CommandPath())
		if len(args) > most && most > 0 {
			hint = "quote an argument of several words; " + hint
		}
		return UsageError(hint, "%s takes %s, got %d", cmd.Name(), what, len(args))
	}
}

// KnownCommand returns an error for an argument of a group of commands, which is an
// unknown command, and suggests the nearest one.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := cmd.CommandPath() + " --help lists the commands"
	if near, ok := nearest.Word(args[0], names); ok {
		hint = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near)
	}
	name := strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "perdure ")
	return UsageError(hint, "unknown command %q", name)
}

// Group makes cmd a group of subcommands.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = KnownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// JSONFlag adds --json to a command.
func (e *Env) JSONFlag(cmd *cobra.Command) { cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON") }

// SettingFlags adds flags for settings. [Env.Load] checks their values.
func SettingFlags(cmd *cobra.Command, keys ...string) {
	for _, key := range config.Keys() {
		if slices.Contains(keys, key.Name) {
			SettingFlag(cmd, key)
		}
	}
}

// SettingFlag adds the flag of a setting.
func SettingFlag(cmd *cobra.Command, key config.Key) {
	value := &settingValue{text: key.Default, kind: key.Value, lines: key.Lines}
	if key.Name == "sub_model" {
		cmd.Flags().Var(&namedValue{settingValue: value}, key.Flag, key.Help+
			"; NAME=MODEL, repeatable, is one that code of planner repl asks by name")
		return
	}
	flag := cmd.Flags().VarPF(value, key.Flag, "", key.Help)
	if key.Value == "" {
		flag.NoOptDefVal = "true"
	}
}

// settingValue is the text of a setting's flag. Its kind is the value's name in the
// help, "" for true and false. Each use of the flag of several lines adds one.
type settingValue struct {
	text, kind string
	lines      bool
}

// String returns the text.
func (v *settingValue) String() string { return v.text }

// Set stores any text.
func (v *settingValue) Set(text string) error {
	if v.lines && v.text != "" {
		text = v.text + "\n" + text
	}
	v.text = text
	return nil
}

// Type returns the value's name.
func (v *settingValue) Type() string { return cmp.Or(v.kind, "bool") }

// namedValue is the text of a flag that is repeated to give further values names: NAME=VALUE.
type namedValue struct {
	*settingValue
	named   map[string]string
	unnamed bool
}

// Set stores a value under its name if it has one. Names of models have a colon, and names of
// values have none.
func (v *namedValue) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.ContainsAny(name, ":/ ") {
		v.unnamed = true
		return v.settingValue.Set(text)
	}
	if _, twice := v.named[name]; twice {
		return fmt.Errorf("name %q was given twice", name)
	}
	if v.named == nil {
		v.named = make(map[string]string)
	}
	v.named[name] = value
	return nil
}

// Named returns the values of a flag that have names, by name; nil if there are none.
func Named(cmd *cobra.Command, flag string) map[string]string {
	f := cmd.Flags().Lookup(flag)
	if f == nil {
		return nil
	}
	v, ok := f.Value.(*namedValue)
	if !ok {
		return nil
	}
	return v.named
}

// Changed reports whether a flag was given a value without a name.
func Changed(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	return f != nil && isChanged(f)
}

func isChanged(f *pflag.Flag) bool {
	v, ok := f.Value.(*namedValue)
	return f.Changed && (!ok || v.unnamed)
}

// Complete offers values of a flag to the shell.
func Complete[T ~string](cmd *cobra.Command, flag string, values ...T) {
	offered := make([]cobra.Completion, len(values))
	for i, v := range values {
		offered[i] = string(v)
	}
	CompleteWith(cmd, flag, cobra.FixedCompletions(offered, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteWith offers the values that complete returns for a flag to the shell.
func CompleteWith(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only for an unknown flag
}

// completedTrees is the number of trees that are offered to the shell.
const completedTrees = 20

// CompleteTrees offers the newest trees to the shell, as the first argument.
func (e *Env) CompleteTrees(cmd *cobra.Command, args []string, text string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	return Completions(1, func(cmd *cobra.Command, add func(word, about string)) error {
		return e.Do(cmd, Read, func(b *Backend) error {
			page, err := b.Trees(cmd.Context(), perdure.TreeFilter{Limit: completedTrees})
			for _, t := range page.Trees {
				add(string(t.ID), string(t.State)+" "+human.Ago(time.Now(), t.CreatedAt))
			}
			return err
		})
	})(cmd, args, text)
}

// Completions returns a function that offers words with descriptions to the shell, for
// the first most arguments. List adds the words; after an error none are offered.
func Completions(most int, list func(cmd *cobra.Command, add func(word, about string)) error) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		add := func(word, about string) { found = append(found, cobra.CompletionWithDesc(word, about)) }
		if len(args) >= most || list(cmd, add) != nil {
			found = nil
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
