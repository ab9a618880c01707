// Package parallel runs functions concurrently, a limited number at once.
package parallel

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Do calls do for each number below n, width at once, and returns the error of the
// lowest number. One failure does not stop the others: what is under way is paid
// for. A panic continues in the caller's goroutine, where it is expected.
func Do(width, n int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(width)
	errs, panics := make([]error, n), make([]any, n) // each is one goroutine's
	for i := range n {
		g.Go(func() error {
			defer func() {
				if p := recover(); p != nil {
					panics[i] = fmt.Sprintf("%v\n%s", p, debug.Stack())
				}
			}()
			errs[i] = do(i)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	if p := cmp.Or(panics...); p != nil {
		panic(p)
	}
	return cmp.Or(errs...)
}
