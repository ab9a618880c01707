package cli

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/cli/env"
)

// help prints a command's help. It uses the terminal's own colours, and none
// elsewhere.
func (a *app) help(cmd *cobra.Command, _ []string) {
	h := helpPage{s: a.Out}
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	h.paragraph("", text)
	if cmd.Runnable() && cmd.HasParent() {
		h.heading("Usage")
		h.line("  " + cmd.UseLine())
	} else {
		h.heading("Usage")
		h.line("  " + cmd.CommandPath() + " COMMAND [flags]")
	}
	if cmd.Example != "" {
		h.heading("Examples")
		for _, text := range strings.Split(strings.TrimSpace(cmd.Example), "\n") {
			h.line("  " + strings.TrimSpace(text))
		}
	}
	h.commands(cmd)
	h.flags("Flags", cmd.LocalFlags())
	h.flags("Flags of every command", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		h.heading("More")
		h.line("  " + cmd.CommandPath() + " COMMAND --help")
	}
}

// helpPage draws the parts of a help text.
type helpPage struct{ s *env.Stream }

func (h helpPage) heading(text string) { fmt.Fprintln(h.s, "\n"+h.s.Bold(text)) }

func (h helpPage) line(text string) { fmt.Fprintln(h.s, text) }

// paragraph writes text behind head, wrapped and aligned to it.
func (h helpPage) paragraph(head, text string) {
	indent := env.Width(head)
	wrapped := ansi.Wordwrap(text, max(h.s.Width-indent, 20), "")
	fmt.Fprintln(h.s, head+strings.ReplaceAll(wrapped, "\n", "\n"+strings.Repeat(" ", indent)))
}

// table writes names with their explanations.
func (h helpPage) table(rows [][2]string) {
	widest := 0
	for _, row := range rows {
		widest = max(widest, env.Width(row[0]))
	}
	for _, row := range rows {
		h.paragraph("  "+h.s.In(lipgloss.Cyan, env.Pad(row[0], widest))+"  ", row[1])
	}
}

func (h helpPage) commands(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	groups := append(cmd.Groups(), &cobra.Group{Title: "Commands"})
	for _, group := range groups {
		var rows [][2]string
		for _, c := range cmd.Commands() {
			if c.GroupID == group.ID && c.IsAvailableCommand() {
				rows = append(rows, [2]string{c.Name(), c.Short})
			}
		}
		if len(rows) > 0 {
			h.heading(group.Title)
			h.table(rows)
		}
	}
}

func (h helpPage) flags(title string, set *pflag.FlagSet) {
	rows := flagRows(set)
	if len(rows) == 0 {
		return
	}
	h.heading(title)
	h.table(rows)
}

// flagRows lists flags with their explanations and defaults.
func flagRows(set *pflag.FlagSet) [][2]string {
	var rows [][2]string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, text := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		if !slices.Contains([]string{"", "false", "[]", "0"}, f.DefValue) {
			text += " (default " + f.DefValue + ")"
		}
		rows = append(rows, [2]string{name, text})
	})
	return rows
}
