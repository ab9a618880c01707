package env

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
)

// Only the terminal's own sixteen colors are used, because they fit its background.

// Dim returns text in a faint style.
func (s *Stream) Dim(text string) string { return s.paint(text, lipgloss.NewStyle().Faint(true)) }

// Bold returns text in bold.
func (s *Stream) Bold(text string) string { return s.paint(text, lipgloss.NewStyle().Bold(true)) }

// In returns text in a color.
func (s *Stream) In(c color.Color, text string) string {
	return s.paint(text, lipgloss.NewStyle().Foreground(c))
}

func (s *Stream) paint(text string, style lipgloss.Style) string {
	if !s.Color || text == "" {
		return text
	}
	return style.Render(text)
}

// Mark returns the sign of a state in its color. The signs differ in shape.
func (s *Stream) Mark(state perdure.State) string {
	shade := map[perdure.State]color.Color{perdure.Completed: lipgloss.Green, perdure.Failed: lipgloss.Red,
		perdure.Running: lipgloss.Cyan, perdure.Waiting: lipgloss.Blue, perdure.Cancelled: lipgloss.Yellow,
		perdure.Partial: lipgloss.Yellow}[state]
	if shade == nil {
		return s.Dim(status.Mark(state))
	}
	return s.In(shade, status.Mark(state))
}

// Diff returns a line of a diff in the color of its kind.
func (s *Stream) Diff(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return s.Bold(line)
	case strings.HasPrefix(line, "+"):
		return s.In(lipgloss.Green, line)
	case strings.HasPrefix(line, "-"):
		return s.In(lipgloss.Red, line)
	case strings.HasPrefix(line, "@@"):
		return s.In(lipgloss.Cyan, line)
	}
	return line
}

// Safe returns text from models, agents and files for this stream. For a terminal it
// makes control characters visible, so that the text cannot move the cursor or change
// the window's title; otherwise it returns text unchanged.
func (s *Stream) Safe(text string) string {
	if !s.Terminal {
		return text
	}
	return human.Visible(text)
}

// OneLine returns text on one line of at most width cells.
func OneLine(text string, width int) string { return Clip(human.OneLine(text), width) }

// Clip cuts text to width cells. Styles in it do not count.
func Clip(text string, width int) string { return ansi.Truncate(text, max(width, 1), "…") }

// Width returns the width of text on a terminal in cells. Styles do not count.
func Width(text string) int { return ansi.StringWidth(text) }

// Pad appends spaces to text up to width cells.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

// PadLeft puts spaces before text up to width cells.
func PadLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-Width(text))) + text
}
