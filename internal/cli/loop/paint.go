package loop

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
)

// painted is a line of a diff in the terminal's own colours: what came, what went,
// and where.
func painted(line string, colour bool) string {
	if !colour || line == "" {
		return line
	}
	in := func(c color.Color) string { return lipgloss.NewStyle().Foreground(c).Render(line) }
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return lipgloss.NewStyle().Bold(true).Render(line)
	case line[0] == '+':
		return in(lipgloss.Green)
	case line[0] == '-':
		return in(lipgloss.Red)
	case strings.HasPrefix(line, "@@"):
		return in(lipgloss.Cyan)
	}
	return line
}
