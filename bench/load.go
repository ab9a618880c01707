package main

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
)

func (b *bench) open(name string) (*perdure.Store, error) {
	return perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(b.dir, name), DSN: b.dsn})
}

// prompt is about 200 bytes, as a small real task's.
const prompt = "Summarize the section about connection handling and list each place where a timeout is set, with " +
	"file and " +
	"line, and say in one sentence why it is there; answer with a list, nothing else."

// fill creates a tree with n leaves below its root.
func fill(b *bench, s *perdure.Store, n int) (perdure.Tree, error) {
	tree, err := s.CreateTree(b.ctx, perdure.TreeSpec{Kind: "bench", Root: perdure.TaskSpec{Prompt: prompt}})
	if err != nil {
		return tree, err
	}
	const chunk = 1000
	specs := make([]perdure.TaskSpec, chunk)
	for i := range specs {
		specs[i].Prompt = prompt
	}
	for done := 0; done < n; done += chunk {
		if _, err := s.Submit(b.ctx, tree.Root, specs[:min(chunk, n-done)]...); err != nil {
			return tree, err
		}
	}
	return tree, nil
}

func claimAll(b *bench, ss *perdure.Session) ([]*perdure.Lease, error) {
	var all []*perdure.Lease
	for {
		leases, err := ss.Claim(b.ctx, perdure.ClaimRequest{Max: 2000})
		if err != nil || len(leases) == 0 {
			return all, err
		}
		all = append(all, leases...)
	}
}

// transitions: each is one caller's guarded change of one task, with its event
// and the index of ready tasks, scattered over all tasks.
func transitions(b *bench, round int) error {
	n := b.n
	if n == 0 {
		n = 200_000
	}
	s, err := b.open("transitions")
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fill(b, s, n); err != nil {
		return err
	}
	ss, err := s.OpenSession(b.ctx, "bench")
	if err != nil {
		return err
	}
	for _, callers := range []int{1, 64, 256} {
		leases, err := claimAll(b, ss)
		if err != nil {
			return err
		}
		rand.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
		if err := b.disk(); err != nil {
			return err
		}
		if err := transitionRate(b, round, callers, leases); err != nil {
			return err
		}
	}
	return nil
}

func transitionRate(b *bench, round, callers int, leases []*perdure.Lease) error {
	count := min(len(leases), 20_000*callers)
	if callers == 1 {
		count = min(len(leases), 15_000)
	}
	took := make([]time.Duration, count)
	start := time.Now()
	err := parallel(callers, count, func(i int) error {
		t := time.Now()
		err := leases[i].Release(b.ctx)
		took[i] = time.Since(t)
		return err
	})
	rate := float64(count) / time.Since(start).Seconds()
	if err != nil {
		return err
	}
	values := map[string]any{"callers": callers, "tasks": len(leases), "per_s": rounded(rate),
		"ratio_f": rounded(rate / b.f)}
	quantiles(took, values)
	return b.print("transitions", "running → queued by release, random order, ready index present, one event each",
		round, values)
}

// parallel runs fn(0) … fn(n-1) on so many goroutines.
func parallel(workers, n int, fn func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[w] = fn(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
