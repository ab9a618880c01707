package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/nearest"
)

// flagError returns an error of cobra about flags as bad input.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return pflag.ErrHelp
	}
	if cmd.HasSubCommands() { // the flag may be one of a command whose name is wrong
		if err := env.KnownCommand(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
	}
	hint := cmd.CommandPath() + " --help lists the flags"
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return env.UsageError(hint, "--%s: %s", e.GetFlag().Name, flagProblem(e))
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if near, ok := nearest.Word(e.GetSpecifiedName(), flagNames(cmd)); ok && e.GetSpecifiedShortnames() == "" {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return env.UsageError(hint, "%s", err)
}

// flagProblem returns why a flag does not accept its value.
func flagProblem(e *pflag.InvalidValueError) string {
	value := strconv.Quote(e.GetValue())
	outOfRange := errors.Is(e, strconv.ErrRange)
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		if outOfRange {
			return value + " is too large"
		}
		return value + " is not a whole number"
	case "float64":
		if outOfRange {
			return value + " is too large"
		}
		return value + " is not a number"
	case "duration":
		return value + " is not a duration such as 30s, 5m or 1h30m"
	case "bool":
		return value + " is not true or false"
	}
	return e.Unwrap().Error()
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// groupError returns the error of flags that exclude each other. cobra has no error type
// for it; if its text has another form, it is returned unchanged.
func groupError(cmd *cobra.Command, err error) error {
	_, text, found := strings.Cut(err.Error(), "; [")
	text, ok := strings.CutSuffix(text, "] were all set")
	if !found || !ok {
		return flagError(cmd, err)
	}
	return env.UsageError("omit one of them", "--%s exclude each other",
		strings.Join(strings.Fields(text), " and --"))
}

// refuseUnknownTopics makes `perdure help X` and `perdure completion X` fail for an
// unknown X. cobra's own commands print a help text and succeed.
func refuseUnknownTopics(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			env.Group(cmd)
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				topic, rest, err := root.Find(args)
				if err != nil || topic == root {
					return env.KnownCommand(root, args)
				}
				if topic.HasSubCommands() || len(rest) > 0 {
					return env.KnownCommand(topic, rest)
				}
				return nil
			}
		}
	}
}
