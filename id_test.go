package perdure_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[perdure.TaskID]string{1: "task-0001", 9999: "task-9999", 10000: "task-10000",
		1 << 40: "task-1099511627776"} {
		if id.String() != want {
			t.Errorf("%d is written %q, want %q", int64(id), id, want)
		}
		if back, err := perdure.ParseTaskID(want); err != nil || back != id {
			t.Errorf("%q is read as %d, %v", want, back, err)
		}
	}
	for _, bad := range []string{"", "task-", "task-1", "task-00001", "task-0000", "task--001", "task-+001", "Task-0001",
		"task-0001 ",
		"call-0001", "task-00a1", "task-99999999999999999999"} {
		if id, err := perdure.ParseTaskID(bad); perdure.CodeOf(err) != perdure.CodeInvalid {
			t.Errorf("%q is read as task %d, %v", bad, id, err)
		}
	}
	for _, bad := range []string{"", "tree-", "tree-1234567", "tree-123456789", "tree-1234567G", "tree-ABCDEF01",
		"task-12345678"} {
		if id, err := perdure.ParseTreeID(bad); perdure.CodeOf(err) != perdure.CodeInvalid {
			t.Errorf("%q is read as tree %s, %v", bad, id, err)
		}
	}
	for _, bad := range []string{"", "task-0001", "task-123456789", "task-ABCDEF01", "task-+1234567", "task-0x123456",
		"task-1_345678"} {
		if id, err := perdure.ParseNodeID(bad); perdure.CodeOf(err) != perdure.CodeInvalid {
			t.Errorf("%q is read as node %s, %v", bad, id, err)
		}
	}
	var call perdure.CallID
	if err := call.UnmarshalText([]byte("call-0012")); err != nil || call != 12 || call.String() != "call-0012" {
		t.Errorf("call %s, %v", call, err)
	}
	if err := call.UnmarshalText([]byte("call-12")); perdure.CodeOf(err) != perdure.CodeInvalid {
		t.Errorf("call-12: %v", err)
	}
	var task perdure.TaskID
	if raw, err := task.MarshalText(); err != nil || len(raw) != 0 || task.UnmarshalText(raw) != nil || task != 0 {
		t.Errorf("no task is written %q, %v", raw, err)
	}
}

// A task's node ID tells the task: no two tasks share one.
func TestNodeIDs(t *testing.T) {
	t.Parallel()
	seen := make(map[perdure.NodeID]bool)
	for id := perdure.TaskID(1); id < 200_000; id++ {
		n := id.Node()
		if seen[n] || n.Task() != id {
			t.Fatalf("node %s of %s: seen %v, back %s", n, id, seen[n], n.Task())
		}
		seen[n] = true
	}
	for _, id := range []perdure.TaskID{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		if id.Node().Task() != id {
			t.Errorf("%d comes back as %d", int64(id), int64(id.Node().Task()))
		}
	}
}

// Numbers are never used again, not after retention and not after a restart.
func TestNumbersAreNotReused(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		var last perdure.TaskID
		for range 3 {
			s, err := perdure.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				tree := createTree(t, s, perdure.TreeSpec{})
				if tree.Root != last+1 {
					t.Errorf("%s after %s", tree.Root, last)
				}
				last = submit(t, s, tree.Root, 1)[0]
				if _, err := s.CancelTree(t.Context(), tree.ID, ""); err != nil {
					t.Fatal(err)
				}
			}
			prune(t, s, perdure.PruneRequest{Policy: soon()})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzIDs(f *testing.F) {
	for _, s := range []string{"task-0001", "task-10000", "tree-1a2b3c4d", "task-1a2b3c4d", "call-0001", "task-", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := perdure.ParseTaskID(s); err == nil && (id.String() != s || id <= 0) {
			t.Errorf("task %q is written %q", s, id)
		}
		if id, err := perdure.ParseTreeID(s); err == nil && string(id) != s {
			t.Errorf("tree %q is written %q", s, id)
		}
		if id, err := perdure.ParseNodeID(s); err == nil && id.String() != s {
			t.Errorf("node %q is written %q", s, id)
		}
		var call perdure.CallID
		if err := call.UnmarshalText([]byte(s)); err == nil && s != "" && call.String() != s {
			t.Errorf("call %q is written %q", s, call)
		}
	})
}
