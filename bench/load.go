package main

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
)

func (b *bench) open(name string) (*perdure.Store, error) {
	return perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(b.dir, name), DSN: b.dsn,
		Heads: filepath.Join(b.dir, "heads")})
}

// begin measures F and opens a store.
func (b *bench) begin(name string) (*perdure.Store, error) {
	if err := b.disk(); err != nil {
		return nil, err
	}
	return b.open(name)
}

// filled opens a store, creates a tree with n leaves and opens a session.
func (b *bench) filled(name string, n int) (*perdure.Store, *perdure.Session, error) {
	s, err := b.open(name)
	if err != nil {
		return nil, nil, err
	}
	if _, err := fill(b, s, n); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	ss, err := s.OpenSession(b.ctx, "bench")
	return s, ss, err
}

// prompt is about 200 bytes, as a small real task's.
const prompt = "Summarize the section about connection handling and list each place where a timeout is set, with " +
	"file and line, and say in one sentence why it is there; answer with a list, nothing else."

func create(b *bench, s *perdure.Store) (perdure.Tree, error) {
	return s.CreateTree(b.ctx, perdure.TreeSpec{Kind: "bench", Root: perdure.TaskSpec{Prompt: prompt}})
}

// fill creates a tree with n leaves below its root.
func fill(b *bench, s *perdure.Store, n int) (perdure.Tree, error) {
	tree, err := create(b, s)
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
	n := cmp.Or(b.n, 200_000)
	s, ss, err := b.filled("transitions", n)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, callers := range []int{1, 64, 256} {
		if err := transitionRate(b, round, callers, ss); err != nil {
			return err
		}
	}
	return nil
}

// transitionRate claims all tasks and releases some.
func transitionRate(b *bench, round, callers int, ss *perdure.Session) error {
	leases, err := claimAll(b, ss)
	if err != nil {
		return err
	}
	rand.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
	if err := b.disk(); err != nil {
		return err
	}
	count := min(len(leases), 20_000*callers)
	if callers == 1 {
		count = min(len(leases), 15_000)
	}
	values, err := b.rate(callers, count, func(i int) error { return leases[i].Release(b.ctx) })
	if err != nil {
		return err
	}
	values["tasks"] = len(leases)
	return b.print("transitions", "running → queued by release, random order, ready index present, one event each",
		round, values)
}

// rate calls fn(0) … fn(n-1) from so many callers and returns the rate and the times.
func (b *bench) rate(callers, n int, fn func(i int) error) (map[string]any, error) {
	took := make([]time.Duration, n)
	start := time.Now()
	err := parallel(callers, n, func(i int) error {
		t := time.Now()
		err := fn(i)
		took[i] = time.Since(t)
		return err
	})
	rate := float64(n) / time.Since(start).Seconds()
	return quantiles(took, map[string]any{"callers": callers, "per_s": rounded(rate),
		"ratio_f": rounded(rate / b.f)}), err
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
