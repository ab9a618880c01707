package config

import (
	"cmp"
	"fmt"
	"strings"
)

// YAML returns the effective settings as the text of a settings file, each line
// with its origin. A value with a hidden password is commented out.
func (l *Loaded) YAML() string {
	var b strings.Builder
	for _, s := range l.all() {
		if s.shown() != s.text() {
			b.WriteString("# ")
		}
		from := l.origins[s.key]
		fmt.Fprintf(&b, "%s: %s # %s\n", s.key, s.yaml(), cmp.Or(from.where, from.kind))
	}
	return b.String()
}
