package cli

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
)

// Only the terminal's own sixteen colours are used: they fit its background
// without asking what that is.

func (s *stream) dim(text string) string  { return s.paint(text, lipgloss.NewStyle().Faint(true)) }
func (s *stream) bold(text string) string { return s.paint(text, lipgloss.NewStyle().Bold(true)) }

func (s *stream) in(c color.Color, text string) string {
	return s.paint(text, lipgloss.NewStyle().Foreground(c))
}

func (s *stream) paint(text string, style lipgloss.Style) string {
	if !s.color || text == "" {
		return text
	}
	return style.Render(text)
}

// mark is the sign of a state: told apart by its shape, the colour only helps.
func (s *stream) mark(state perdure.State) string {
	sign := human.Mark(state)
	switch state {
	case perdure.Completed:
		return s.in(lipgloss.Green, sign)
	case perdure.Failed:
		return s.in(lipgloss.Red, sign)
	case perdure.Running:
		return s.in(lipgloss.Cyan, sign)
	case perdure.Waiting:
		return s.in(lipgloss.Blue, sign)
	case perdure.Cancelled:
		return s.in(lipgloss.Yellow, sign)
	case perdure.Queued:
		return s.dim(sign)
	}
	return sign
}

// safe returns text that others wrote (models, agents, files) for this stream:
// on a terminal control characters are made visible, so that an answer can
// neither move the cursor nor retitle the window; elsewhere it stays as it is.
func (s *stream) safe(text string) string {
	if !s.terminal {
		return text
	}
	return visible(text)
}

// visible makes control characters visible.
func visible(text string) string { return human.Visible(text) }

// oneLine makes text fit into one line of at most width cells.
func oneLine(text string, width int) string {
	text = visible(strings.Join(strings.Fields(text), " "))
	return ansi.Truncate(text, max(width, 1), "…")
}

// cells is the width of text on a terminal, colours not counted.
func cells(text string) int { return ansi.StringWidth(text) }

// pad fills text with spaces up to width cells.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-cells(text)))
}

// padLeft is pad with the spaces in front, for numbers.
func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-cells(text))) + text
}

// clip cuts text that holds no control characters but its own colours.
func clip(text string, width int) string { return ansi.Truncate(text, max(width, 1), "…") }
