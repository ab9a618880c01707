package guard_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/process/guard"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	parent, group, session, zombie, ok := guard.ParseStat(5, []byte("5 (a) b (c) Z 4 3 2 0 -1 4194304"))
	if parent != 4 || group != 3 || session != 2 || !zombie || !ok {
		t.Errorf("%d %d %d %t %t", parent, group, session, zombie, ok)
	}
	for _, bad := range []string{"", "5", "5 (a", "5 (a)", "5 (a) S", "5 (a) S 1 2", "5 (a) S x 2 3"} {
		if _, _, _, _, ok := guard.ParseStat(5, []byte(bad)); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("5 (a) S 4 3 2 0"))
	f.Add([]byte(")"))
	f.Add([]byte("1 () \xff 1 1 1"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if _, _, _, _, ok := guard.ParseStat(1, stat); ok && len(stat) < 8 {
			t.Errorf("%q was accepted", stat)
		}
	})
}

func TestRelatives(t *testing.T) {
	t.Parallel()
	const guardPid, child = 10, 11
	all := [][5]int{
		{1, 0, 1, 1, 0},
		{14, 13, 11, 10, 0}, // grandchild, listed before its parent
		{10, 1, 10, 10, 0},  // the guard
		{11, 10, 11, 10, 0}, // the child
		{12, 11, 12, 12, 0}, // in a session of its own
		{13, 11, 11, 10, 1}, // ended
		{15, 1, 15, 10, 0},  // orphan in the session
		{16, 1, 11, 99, 0},  // in the child's group
		{17, 12, 17, 17, 0}, // below one in another session
		{20, 1, 20, 20, 0},  // unrelated
	}
	if diff := cmp.Diff([]int{14, 11, 12, 15, 16, 17}, guard.Relatives(all, guardPid, child)); diff != "" {
		t.Error(diff)
	}
}

// TestBothListsAgree compares the two ways to find descendants on a process
// that has some.
func TestBothListsAgree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	cfg := sh(`setsid sh -c 'echo up; exec sleep 1000' & sh -c 'echo up; sleep 1000' & wait`)
	child := start(t.Context(), t, cfg)
	child.line(t)
	child.line(t)
	walked, listed := guard.Listed(child.Pid())
	slices.Sort(walked)
	slices.Sort(listed)
	if len(walked) < 2 {
		t.Errorf("walked to %v, want at least two", walked)
	}
	for _, pid := range walked {
		if !slices.Contains(listed, pid) && len(walked) >= len(listed) {
			t.Errorf("walked to %v, listed %v", walked, listed)
		}
	}
	child.Kill()
	_ = child.Wait()
}
