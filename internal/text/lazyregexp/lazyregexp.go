// Package lazyregexp compiles regular expressions when they are first used, so that
// those a command does not need cost nothing at its start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. The first call
// compiles it and panics if the syntax is invalid. The function may be called
// concurrently.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
