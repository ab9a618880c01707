package env

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/config"
)

// FlagGroup is a group of flags in the help of a command.
type FlagGroup struct {
	Title string
	// Flags are the names of the flags, separated by spaces, those of daily use
	// first.
	Flags string
	// All shows the group only with --help-all.
	All bool
}

// groupAnnotation holds the title, the position and, for groups of --help-all, "all".
const groupAnnotation = "perdure_group"

// GroupFlags puts flags of a command into groups, in this order.
func GroupFlags(cmd *cobra.Command, groups ...FlagGroup) {
	n := 0
	for _, g := range groups {
		for name := range strings.FieldsSeq(g.Flags) {
			n++
			note := []string{g.Title, strconv.Itoa(n)}
			if g.All {
				note = append(note, "all")
			}
			_ = cmd.Flags().SetAnnotation(name, groupAnnotation, note) // fails only for an unknown flag
		}
	}
}

// FlagHelp describes a flag in a group of the help.
type FlagHelp struct {
	Group string
	// All reports whether the flag is shown only with --help-all.
	All bool
	// Name is the flag with its value, Text its explanation with the default.
	Name, Text string
	position   int
}

// FlagHelps returns the visible flags of a set in the order of their groups. Flags
// without a group come last.
func FlagHelps(set *pflag.FlagSet) []FlagHelp {
	var all []FlagHelp
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		h := describe(f)
		h.position = 1 << 20
		if note := f.Annotations[groupAnnotation]; len(note) > 1 {
			h.Group, h.All = note[0], len(note) > 2
			h.position, _ = strconv.Atoi(note[1])
		}
		all = append(all, h)
	})
	slices.SortStableFunc(all, func(a, b FlagHelp) int { return cmp.Compare(a.position, b.position) })
	return all
}

// ParseDuration parses the duration of a flag, which has to be longer than 0; "" is 0.
func ParseDuration(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	switch {
	case err != nil:
		return 0, UsageError("write a time such as 30m, 12h or 7d", "--%s: %s", flag, err)
	case d <= 0:
		return 0, UsageError("write a time such as 30m, or omit it for no limit", "--%s is %s; it must be longer than 0",
			flag, text)
	}
	return d, nil
}

// maxSize bounds the sizes of flags in bytes.
const maxSize = 1e15

// ParseSize parses the size of a flag, such as 10MB, of at least so many bytes; "" is 0.
func ParseSize(flag, text string, least int64) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(text)
	switch {
	case err != nil || n > maxSize:
		return 0, UsageError("write a size such as 500k, 10MB or 1GiB", "--%s: %q is not a size", flag, text)
	case int64(n) < least:
		return 0, UsageError("write a size such as 10MB, or omit it for no limit", "--%s is %s; it must be at least %d B",
			flag, text, least)
	}
	return int64(n), nil
}

// describe returns the name and the text of a flag. The usage of a flag begins with
// the name of its value in back quotes.
func describe(f *pflag.Flag) FlagHelp {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	value, text := pflag.UnquoteUsage(f)
	if value != "" {
		name += " " + value
		text = strings.TrimPrefix(text, value+" ")
	}
	standard := f.DefValue
	if d, err := time.ParseDuration(standard); err == nil && f.Value.Type() == "duration" {
		standard = config.FormatDuration(d)
	}
	if !slices.Contains([]string{"", "false", "[]", "0", "0s", "none"}, standard) {
		text += " (default " + standard + ")"
	}
	return FlagHelp{Name: name, Text: text}
}
