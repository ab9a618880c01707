package perdure_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

func createTree(t testing.TB, s *perdure.Store, spec perdure.TreeSpec) perdure.Tree {
	t.Helper()
	if spec.Kind == "" {
		spec.Kind = "run"
	}
	tree, err := s.CreateTree(t.Context(), spec)
	if err != nil {
		t.Fatalf("create tree: %v", err)
	}
	return tree
}

func openSession(t testing.TB, s *perdure.Store) *perdure.Session {
	t.Helper()
	ss, err := s.OpenSession(t.Context(), "test")
	if err != nil {
		t.Fatalf("open session: %v", err)
	}
	return ss
}

func claim(t testing.TB, ss *perdure.Session, limit int) []*perdure.Lease {
	t.Helper()
	leases, err := ss.Claim(t.Context(), perdure.ClaimRequest{Max: limit})
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	return leases
}

func claimOne(t testing.TB, ss *perdure.Session) *perdure.Lease {
	t.Helper()
	leases := claim(t, ss, 1)
	if len(leases) != 1 {
		t.Fatalf("claimed %d tasks, want 1", len(leases))
	}
	return leases[0]
}

// rooted is a store with a tree whose root is leased.
type rooted struct {
	*perdure.Store
	tree perdure.Tree
	ss   *perdure.Session
	root *perdure.Lease
}

func leased(t testing.TB, s *perdure.Store, spec perdure.TreeSpec) rooted {
	t.Helper()
	tree := createTree(t, s, spec)
	ss := openSession(t, s)
	return rooted{s, tree, ss, claimOf(t, ss, tree.ID)}
}

func claimOf(t testing.TB, ss *perdure.Session, tree perdure.TreeID) *perdure.Lease {
	t.Helper()
	leases, err := ss.Claim(t.Context(), perdure.ClaimRequest{Max: 1, Trees: []perdure.TreeID{tree}})
	if err != nil || len(leases) != 1 {
		t.Fatalf("claim of %s: %d leases, %v", tree, len(leases), err)
	}
	return leases[0]
}

func submit(t testing.TB, s *perdure.Store, parent perdure.TaskID, n int) []perdure.TaskID {
	t.Helper()
	ids, err := s.Submit(t.Context(), parent, make([]perdure.TaskSpec, n)...)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return ids
}

func complete(t testing.TB, l *perdure.Lease, text string) {
	t.Helper()
	if err := l.Complete(t.Context(), perdure.Result{Text: text}); err != nil {
		t.Fatalf("complete: %v", err)
	}
}

func fail(t testing.TB, l *perdure.Lease, f perdure.Failure) bool {
	t.Helper()
	if f.Kind == "" {
		f.Kind = "test"
	}
	retried, err := l.Fail(t.Context(), f)
	if err != nil {
		t.Fatalf("fail: %v", err)
	}
	return retried
}

func begin(t testing.TB, l *perdure.Lease, position int, hash string) perdure.Call {
	t.Helper()
	c, replayed, err := l.BeginCall(t.Context(), perdure.CallSpec{Position: position, Model: "m", RequestHash: hash})
	if err != nil || replayed {
		t.Fatalf("begin call: replayed %v, %v", replayed, err)
	}
	return c
}

func readTask(t testing.TB, s *perdure.Store, id perdure.TaskID) perdure.Task {
	t.Helper()
	task, err := s.Task(t.Context(), id)
	if err != nil {
		t.Fatalf("read task: %v", err)
	}
	return task
}

func allEvents(t testing.TB, s *perdure.Store) []perdure.Event {
	t.Helper()
	var all []perdure.Event
	for {
		var after int64
		if len(all) > 0 {
			after = all[len(all)-1].Seq
		}
		page, err := s.Events(t.Context(), perdure.EventFilter{After: after})
		if err != nil {
			t.Fatalf("read events: %v", err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

func countEvents(t testing.TB, s *perdure.Store, kind perdure.EventKind) int {
	t.Helper()
	n := 0
	for _, e := range allEvents(t, s) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func wantCode(t testing.TB, what string, err error, code perdure.Code) {
	t.Helper()
	if got := perdure.CodeOf(err); got != code {
		t.Errorf("%s: %v (%s), want %s", what, err, got, code)
	}
}

func dump(t testing.TB, s *perdure.Store) []string {
	t.Helper()
	rows, err := perdure.Dump(t.Context(), s)
	if err != nil {
		t.Fatalf("dump: %v", err)
	}
	return rows
}

func sound(t testing.TB, s *perdure.Store) {
	t.Helper()
	problems, err := s.Check(t.Context())
	if err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
	if faults := logFaults(t, s); len(faults) > 0 {
		t.Errorf("verify log: %q", faults)
	}
}

// logFaults returns the faults of the event log, as "tree kind event: detail".
func logFaults(t testing.TB, s *perdure.Store) []string {
	t.Helper()
	r, err := s.VerifyLog(t.Context())
	if err != nil {
		t.Fatalf("verify log: %v", err)
	}
	var all []string
	for _, tree := range r.Trees {
		for _, f := range tree.Faults {
			all = append(all, fmt.Sprintf("%s %s %d: %s", tree.Tree, f.Kind, f.Event, f.Detail))
		}
	}
	if r.Intact != (len(all) == 0) {
		t.Errorf("intact is %v with the faults %q", r.Intact, all)
	}
	return all
}

// awaitQueue waits until n operations wait for the writer, which is held.
func awaitQueue(s *perdure.Store, n int) {
	for tick := time.Tick(50 * time.Microsecond); perdure.InQueue(s) < n; {
		<-tick
	}
}
