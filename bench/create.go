package main

import (
	"cmp"
	"path/filepath"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// createTrees measures the creation of trees, one after another and by many callers at once.
func createTrees(b *bench, round int) error {
	n := cmp.Or(b.n, 2000)
	if err := b.disk(); err != nil {
		return err
	}
	s, err := perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(b.dir, "create"), DSN: b.dsn})
	if err != nil {
		return err
	}
	defer s.Close()
	create := func() (time.Duration, error) {
		began := time.Now()
		_, err := s.CreateTree(b.ctx, perdure.TreeSpec{Kind: "bench", Root: perdure.TaskSpec{Prompt: "p"}})
		return time.Since(began), err
	}
	alone := make([]time.Duration, n)
	for i := range alone {
		if alone[i], err = create(); err != nil {
			return err
		}
	}
	if err := b.print("create-tree", "one caller", round, quantiles(alone, map[string]any{"trees": n})); err != nil {
		return err
	}
	const callers = 64
	var wg sync.WaitGroup
	began, errs := time.Now(), make([]error, callers)
	for i := range callers {
		wg.Go(func() {
			for range n / callers * 4 {
				if _, err := create(); err != nil {
					errs[i] = err
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return b.print("create-tree", "64 callers at once", round,
		map[string]any{"per_second": rounded(float64(n/callers*4*callers) / took.Seconds())})
}
