package human

import (
	"fmt"
	"strings"
)

// Markdown escapes text from outside for a line of Markdown: every character with a
// meaning there, and whatever would become a link by itself.
func Markdown(s string) string {
	var b strings.Builder
	for _, r := range OneLine(s) {
		switch {
		case strings.ContainsRune("<>&@", r):
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_{}[]#|~!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.NewReplacer("://", ":&#47;&#47;", "www.", "www&#46;", "WWW.", "WWW&#46;").Replace(b.String())
}

// MarkdownTable writes a table line by line; align has l or r for each column.
// Cells must be Markdown already.
func MarkdownTable(line func(format string, args ...any), titles []string, align string,
	rows func(row func(cells ...string))) {
	line("| %s |", strings.Join(titles, " | "))
	rules := make([]string, len(titles))
	for i := range titles {
		rules[i] = "---"
		if i < len(align) && align[i] == 'r' {
			rules[i] = "---:"
		}
	}
	line("|%s|", strings.Join(rules, "|"))
	rows(func(cells ...string) { line("| %s |", strings.Join(cells, " | ")) })
}
