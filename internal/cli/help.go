package cli

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/cli/env"
)

// helpAll is the flag --help-all. Like --help it ends the command with its help.
type helpAll struct{ set *bool }

// String returns the default.
func (h helpAll) String() string { return "false" }

// Set asks for the help with all flags.
func (h helpAll) Set(string) error {
	*h.set = true
	return pflag.ErrHelp
}

// Type makes the flag one without a value.
func (h helpAll) Type() string { return "bool" }

// help prints the help of a command.
func (a *app) help(cmd *cobra.Command, _ []string) {
	h := helpPage{s: a.Out}
	h.paragraph("", cmp.Or(cmd.Long, cmd.Short))
	h.heading("Usage")
	if cmd.HasParent() && (!cmd.HasAvailableSubCommands() || strings.Contains(cmd.Use, " ")) {
		h.line("  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		h.line("  " + cmd.CommandPath() + " COMMAND [flags]")
	}
	if cmd.Example != "" {
		h.heading("Examples")
		for text := range strings.SplitSeq(strings.TrimSpace(cmd.Example), "\n") {
			h.line("  " + strings.TrimSpace(text))
		}
	}
	h.commands(cmd)
	left := h.flags(env.FlagHelps(cmd.LocalFlags()), a.helpAll)
	switch {
	case left > 0:
		h.line(fmt.Sprintf("\n%s --help-all shows %d more flags.", cmd.CommandPath(), left))
	case cmd.HasAvailableSubCommands():
		h.line(fmt.Sprintf("\n%s COMMAND --help shows the help of a command.", cmd.CommandPath()))
	}
}

// helpPage draws the parts of a help text.
type helpPage struct{ s *env.Stream }

func (h helpPage) heading(text string) { fmt.Fprintln(h.s, "\n"+h.s.Bold(text)) }

func (h helpPage) line(text string) { fmt.Fprintln(h.s, text) }

// paragraph writes text behind head, wrapped and aligned to it.
func (h helpPage) paragraph(head, text string) {
	indent := env.Width(head)
	lines := wrap(text, max(h.s.Width-indent, 20))
	fmt.Fprintln(h.s, head+strings.Join(lines, "\n"+strings.Repeat(" ", indent)))
}

// wrap breaks text at spaces into lines of at most width cells.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case line == "":
				line = word
			case env.Width(line)+1+env.Width(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// table writes names with their explanations.
func (h helpPage) table(rows [][2]string, widest int) {
	for _, row := range rows {
		h.paragraph("  "+h.s.In(lipgloss.Cyan, env.Pad(row[0], widest))+"  ", row[1])
	}
}

func (h helpPage) commands(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	widest := 0
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			widest = max(widest, len(c.Name()))
		}
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
			h.table(rows, widest)
		}
	}
}

// flags writes flags under the titles of their groups and returns the number of those
// that it left out.
func (h helpPage) flags(flags []env.FlagHelp, all bool) (left int) {
	widest := 0
	for _, f := range flags {
		if !f.All || all {
			widest = max(widest, env.Width(f.Name))
		}
	}
	grouped := len(flags) > 0 && flags[0].Group != ""
	title := "none"
	for _, f := range flags {
		if f.All && !all {
			left++
			continue
		}
		if f.Group != title {
			title = f.Group
			switch {
			case title != "":
				h.heading(title)
			case grouped:
				h.heading("Other flags")
			default:
				h.heading("Flags")
			}
		}
		h.table([][2]string{{f.Name, f.Text}}, widest)
	}
	return left
}
