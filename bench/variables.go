package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// stateVars is how many variables the measured state has.
const stateVars = perdure.MaxVariables

func varName(i int) string { return fmt.Sprintf("variable_%04d", i) }

// fillState gives a state its variables, each a text of so many bytes.
func fillState(b *bench, s *perdure.Store, ref perdure.StateRef, size int, round string) error {
	return parallel(64, stateVars, func(i int) error {
		_, err := s.SetVar(b.ctx, ref, perdure.VarSpec{Name: varName(i), Value: textOf(size, fmt.Sprint(round, i))})
		return err
	})
}

// textOf is a text of so many bytes as JSON.
func textOf(size int, begin string) json.RawMessage {
	return json.RawMessage(`"` + begin + strings.Repeat("x", max(0, size-2-len(begin))) + `"`)
}

// variables: setting and getting a small variable next to transitions of tasks,
// in the same store and round; then checkpoints and rollbacks of 1,000 variables
// of 1 KB.
func variables(b *bench, round int) error {
	n := cmp.Or(b.n, 200_000)
	s, ss, err := b.filled("variables", n)
	if err != nil {
		return err
	}
	defer s.Close()
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "bench"}
	if err := fillState(b, s, ref, 20, ""); err != nil {
		return err
	}
	for _, callers := range []int{1, 64, 256} {
		if err := transitionRate(b, round, callers, ss); err != nil {
			return err
		}
		if err := variableRates(b, s, ref, round, callers); err != nil {
			return err
		}
	}
	return checkpoints(b, round)
}

func variableRates(b *bench, s *perdure.Store, ref perdure.StateRef, round, callers int) error {
	count := min(5000*callers, 50_000)
	set := func(i int) error {
		_, err := s.SetVar(b.ctx, ref, perdure.VarSpec{Name: varName(rand.IntN(stateVars)), Value: textOf(20, fmt.Sprint(i))})
		return err
	}
	get := func(int) error {
		_, err := s.Var(b.ctx, ref, varName(rand.IntN(stateVars)))
		return err
	}
	for _, w := range []struct {
		name, workload string
		do             func(i int) error
	}{
		{"variable-set", "one of 1,000 variables of 20 bytes set to another value, history and event with it, old history " +
			"compacted", set},
		{"variable-get", "one of 1,000 variables of 20 bytes read in process", get},
	} {
		values, err := b.rate(callers, count, w.do)
		if err != nil {
			return err
		}
		if err := b.print(w.name, w.workload, round, values); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints measures them on 1,000 variables of 1 KB: time, and what they add
// on disk, while so many variables change in between; then rollbacks over a
// change of all of them, to and fro.
func checkpoints(b *bench, round int) error {
	const size, count = 1024, 45
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "bench"}
	s, err := b.open("checkpoints")
	if err != nil {
		return err
	}
	if err := fillState(b, s, ref, size, "first "); err != nil {
		return err
	}
	for _, changed := range []int{0, 10} {
		before, after := int64(0), int64(0)
		if s, before, err = b.sizeOf(s, "checkpoints"); err != nil {
			return err
		}
		took := make([]time.Duration, count)
		for i := range took {
			for j := range changed {
				_, err := s.SetVar(b.ctx, ref, perdure.VarSpec{Name: varName((i*changed + j) % stateVars),
					Value: textOf(size, fmt.Sprint(i))})
				if err != nil {
					return err
				}
			}
			start := time.Now()
			if _, err := s.SaveCheckpoint(b.ctx, ref, "bench", ""); err != nil {
				return err
			}
			took[i] = time.Since(start)
		}
		if s, after, err = b.sizeOf(s, "checkpoints"); err != nil {
			return err
		}
		if err := b.print("checkpoint", "1,000 variables of 1 KB, so many changed between two checkpoints", round,
			quantiles(took, map[string]any{"checkpoints": count, "changed_between": changed,
				"disk_bytes_each": (after - before) / count})); err != nil {
			return err
		}
	}
	defer s.Close()
	return rollbacks(b, s, ref, round)
}

func rollbacks(b *bench, s *perdure.Store, ref perdure.StateRef, round int) error {
	const size, count = 1024, 60
	if _, err := s.SaveCheckpoint(b.ctx, ref, "start", ""); err != nil {
		return err
	}
	if err := fillState(b, s, ref, size, "second "); err != nil {
		return err
	}
	took := make([]time.Duration, count)
	to := "start"
	for i := range took {
		start := time.Now()
		r, err := s.Rollback(b.ctx, ref, to, perdure.Cause{})
		if err != nil {
			return err
		}
		took[i] = time.Since(start)
		if r.Restored != stateVars {
			return fmt.Errorf("a rollback restored %d variables", r.Restored)
		}
		to = r.Mutation.String() // back again
	}
	return b.print("rollback", "1,000 variables of 1 KB, all of them changed since", round,
		quantiles(took, map[string]any{"rollbacks": count}))
}

// sizeOf closes a store, so that its log is in the database, and opens it again.
func (b *bench) sizeOf(s *perdure.Store, name string) (*perdure.Store, int64, error) {
	if err := s.Close(); err != nil {
		return nil, 0, err
	}
	size, err := dirSize(filepath.Join(b.dir, name))
	if err != nil {
		return nil, 0, err
	}
	s, err = b.open(name)
	return s, size, err
}
