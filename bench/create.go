package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

const (
	createCallers = 64
	createTurns   = 10
)

// createdTrees is one of the stores in which trees are created.
type createdTrees struct {
	store  *perdure.Store
	spec   perdure.TreeSpec
	alone  []time.Duration
	perSec []float64 // of the turns with all callers
}

// createTrees measures the creation of trees with and without their states, by turns in the
// same run: one after another, and by many callers at once.
func createTrees(b *bench, round int) error {
	n := cmp.Or(b.n, 2000)
	if err := b.disk(); err != nil {
		return err
	}
	names := [...]string{"with the state", "without it"}
	var sides [2]*createdTrees
	for i := range sides {
		s, err := perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(b.dir, "create"+names[i][:4]), DSN: b.dsn})
		if err != nil {
			return err
		}
		defer s.Close()
		sides[i] = &createdTrees{store: s, spec: perdure.TreeSpec{Kind: "bench", LateState: i == 1,
			Root: perdure.TaskSpec{Prompt: "p"}}}
	}
	for turn := range createTurns {
		for i := range sides { // the one that began the last turn is the second now
			if err := sides[(turn+i)%2].turn(b, n); err != nil {
				return err
			}
		}
	}
	for i, side := range sides {
		alone := quantiles(side.alone, map[string]any{"trees": len(side.alone)})
		if err := b.print("create-tree", "one caller, "+names[i], round, alone); err != nil {
			return err
		}
		slices.Sort(side.perSec)
		err := b.print("create-tree", "64 callers at once, "+names[i], round, map[string]any{
			"turns": createTurns, "trees": n * createTurns, "per_second": rounded(side.perSec[createTurns/2]),
			"least_per_second": rounded(side.perSec[0]), "most_per_second": rounded(side.perSec[createTurns-1])})
		if err != nil {
			return err
		}
	}
	return nil
}

// turn creates n trees by many callers at once, and a twentieth of them by one.
func (c *createdTrees) turn(b *bench, n int) error {
	for range n / 20 {
		began := time.Now()
		if _, err := c.store.CreateTree(b.ctx, c.spec); err != nil {
			return err
		}
		c.alone = append(c.alone, time.Since(began))
	}
	var wg sync.WaitGroup
	began, errs := time.Now(), make([]error, createCallers)
	for i := range createCallers {
		wg.Go(func() {
			for range n / createCallers {
				if _, err := c.store.CreateTree(b.ctx, c.spec); err != nil {
					errs[i] = err
				}
			}
		})
	}
	wg.Wait()
	c.perSec = append(c.perSec, float64(n/createCallers*createCallers)/time.Since(began).Seconds())
	return cmp.Or(errs...)
}
