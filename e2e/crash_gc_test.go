package e2e

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure"
)

// TestKillDuringGC kills retention midway through removing a tree: the store is sound,
// the tree is complete or removed, and the next run finishes.
func TestKillDuringGC(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"prune.after_step", "tx.before_commit", "tx.after_commit"} {
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "hash")
				b.finish()
				gc := []string{"gc", "--retention-completed", "1ms"}
				out, err := b.command([]string{fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)}, gc...).CombinedOutput()
				if !killed(err) {
					t.Fatalf("gc was not killed: %v\n%s", err, out)
				}
				s := b.open()
				defer s.Close()
				sound(t, s)
				trees, err := s.Trees(t.Context(), perdure.TreeFilter{})
				if err != nil {
					t.Fatal(err)
				}
				for _, tree := range trees {
					if task, err := s.Task(t.Context(), tree.Root); err != nil || task.Result == "" {
						t.Errorf("the tree is there and its result is not: %v", err)
					}
				}
				if out, err := b.command(nil, gc...).CombinedOutput(); err != nil {
					t.Fatalf("gc again: %v\n%s", err, out)
				}
				sound(t, s)
				if trees, err = s.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) > 0 {
					t.Errorf("%d trees are left, %v", len(trees), err)
				}
			})
		}
	}
}

func sound(t *testing.T, s *perdure.Store) {
	t.Helper()
	problems, err := s.Check(t.Context())
	if err != nil || len(problems) > 0 {
		t.Errorf("the store is not sound: %v %v", problems, err)
	}
}
