package perdure_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

var global = perdure.StateRef{Scope: perdure.ScopeGlobal}

func treeState(tree perdure.Tree) perdure.StateRef {
	return perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
}

func taskState(tree perdure.Tree, task perdure.TaskID) perdure.StateRef {
	return perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: task}
}

func setVar(t testing.TB, s *perdure.Store, ref perdure.StateRef, name, value string) perdure.Variable {
	t.Helper()
	v, err := s.SetVar(t.Context(), ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value)})
	if err != nil {
		t.Fatalf("set %s: %v", name, err)
	}
	return v
}

func wantVar(t testing.TB, s *perdure.Store, ref perdure.StateRef, name, want string) perdure.Variable {
	t.Helper()
	v, err := s.Var(t.Context(), ref, name)
	got := string(v.Value)
	if errors.Is(err, perdure.ErrNotFound) {
		got, err = "none", nil
	}
	if err != nil || got != want {
		t.Errorf("%s is %.100s (%v), want %.100s", name, got, err, want)
	}
	return v
}

func wantRefusal(t testing.TB, err error, code perdure.Code, parts ...string) {
	t.Helper()
	if perdure.CodeOf(err) != code {
		t.Errorf("error %v, want one of code %s", err, code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestVarTypesAndSizes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		long := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
		for i, c := range []struct {
			value, want string
			kind        perdure.VarType
		}{
			{`"a"`, `"a"`, perdure.VarText},
			{`""`, `""`, perdure.VarText},
			{` 12.50 `, `12.50`, perdure.VarNumber},
			{`true`, `true`, perdure.VarBoolean},
			{`null`, `null`, perdure.VarNull},
			{`{"a": [1, 2]}`, `{"a":[1,2]}`, perdure.VarJSON},
			{`[1, "x"]`, `[1,"x"]`, perdure.VarArray},
			{long(perdure.MaxInlineBytes), long(perdure.MaxInlineBytes), perdure.VarText},
			{long(perdure.MaxInlineBytes + 1), long(perdure.MaxInlineBytes + 1), perdure.VarText},
			{long(perdure.MaxPayloadBytes + 1), long(perdure.MaxPayloadBytes + 1), perdure.VarText},
		} {
			name := fmt.Sprint("v", i)
			v := setVar(t, s, global, name, c.value)
			got := wantVar(t, s, global, name, c.want)
			if v.Type != c.kind || got.Type != c.kind || got.Size != int64(len(c.want)) || got.Version != v.Version {
				t.Errorf("%s: type %s and %s, size %d, version %s and %s", name, v.Type, got.Type, got.Size, v.Version, got.Version)
			}
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

func TestVarRefusals(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		set := func(spec perdure.VarSpec) error {
			_, err := s.SetVar(t.Context(), global, spec)
			return err
		}
		one := json.RawMessage("1")
		for _, name := range []string{"", "1a", "a-b", "ä", "a b", "a\x00"} {
			wantRefusal(t, set(perdure.VarSpec{Name: name, Value: one}), perdure.CodeInvalid)
		}
		wantRefusal(t, set(perdure.VarSpec{Name: strings.Repeat("a", 129), Value: one}), perdure.CodeInvalid, "129", "128")
		if err := set(perdure.VarSpec{Name: strings.Repeat("a", 128), Value: one}); err != nil {
			t.Error(err)
		}
		for _, value := range []string{"", "x", `{"a":1`, "1 2", "\"\xff\""} {
			wantRefusal(t, set(perdure.VarSpec{Name: "a", Value: json.RawMessage(value)}), perdure.CodeInvalid)
		}
		wantRefusal(t, set(perdure.VarSpec{Name: "a", Value: one, Type: perdure.VarText}), perdure.CodeInvalid, "number",
			"text")
		wantRefusal(t, set(perdure.VarSpec{Name: "a", Value: one, Type: "integer"}), perdure.CodeInvalid)
		wantRefusal(t, set(perdure.VarSpec{Name: "a", Value: one, TTL: -1}), perdure.CodeInvalid)
		if err := set(perdure.VarSpec{Name: "fixed", Value: one, ReadOnly: true}); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, set(perdure.VarSpec{Name: "fixed", Value: one}), perdure.CodeConflict, "read-only")
		wantRefusal(t, s.DeleteVar(t.Context(), global, "fixed", perdure.Cause{}), perdure.CodeConflict, "read-only")
		wantRefusal(t, s.DeleteVar(t.Context(), global, "gone", perdure.Cause{}), perdure.CodeNotFound)
		_, err := s.SetVar(t.Context(), perdure.StateRef{Scope: "planet"}, perdure.VarSpec{Name: "a", Value: one})
		wantRefusal(t, err, perdure.CodeInvalid, "planet")
		_, err = s.SetVar(t.Context(), perdure.StateRef{Scope: perdure.ScopeTree, Tree: "tree-00000000"},
			perdure.VarSpec{Name: "a", Value: one})
		wantRefusal(t, err, perdure.CodeNotFound)
		tree, other := createTree(t, s, perdure.TreeSpec{}), createTree(t, s, perdure.TreeSpec{})
		_, err = s.SetVar(t.Context(), taskState(tree, other.Root), perdure.VarSpec{Name: "a", Value: one})
		wantRefusal(t, err, perdure.CodeNotFound)
	})
}

func TestVarLimit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range perdure.MaxVariables / 8 {
					setVar(t, s, global, fmt.Sprintf("v_%d_%d", w, i), "1")
				}
			})
		}
		wg.Wait()
		_, err := s.SetVar(t.Context(), global, perdure.VarSpec{Name: "more", Value: json.RawMessage("1")})
		wantRefusal(t, err, perdure.CodeConflict, "1000")
		setVar(t, s, global, "v_0_0", "2") // not one more
		if err := s.DeleteVar(t.Context(), global, "v_0_1", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		setVar(t, s, global, "more", "1")
		if info, err := s.State(t.Context(), global); err != nil || info.Variables != perdure.MaxVariables {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestVarInheritance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "top"}})
		child := submit(t, s, r.tree.Root, 2)
		leaf := submit(t, s, child[0], 1)[0]
		session := perdure.StateRef{Scope: perdure.ScopeSession, Session: "term-1"}
		at := func(task perdure.TaskID) perdure.StateRef {
			ref := taskState(r.tree, task)
			ref.Session = "term-1"
			return ref
		}
		for _, v := range []struct {
			ref   perdure.StateRef
			names string
		}{{global, "abcde"}, {session, "bcde"}, {treeState(r.tree), "cde"}, {at(child[0]), "de"}, {at(leaf), "e"}} {
			for _, c := range v.names {
				setVar(t, s, v.ref, string(c), label(v.ref))
			}
		}
		wantVar(t, s, at(leaf), "a", `"global"`)
		wantVar(t, s, at(leaf), "b", `"session"`)
		wantVar(t, s, at(leaf), "c", `"tree"`)
		wantVar(t, s, at(leaf), "d", fmt.Sprintf(`"tree%s"`, child[0]))
		wantVar(t, s, at(leaf), "e", fmt.Sprintf(`"tree%s"`, leaf))
		wantVar(t, s, at(child[1]), "d", `"tree"`) // not its sibling's
		wantVar(t, s, treeState(r.tree), "b", `"global"`)
		wantVar(t, s, session, "c", `"session"`)
		wantVar(t, s, at(leaf), "zzz", "none")
		// The special ones are the task's own.
		wantVar(t, s, treeState(r.tree), perdure.VarPrompt, `"top"`)
		wantVar(t, s, at(child[1]), perdure.VarPrompt, `""`)
		wantVar(t, s, at(child[1]), perdure.VarFinal, "null")
	})
}

func label(ref perdure.StateRef) string {
	if ref.Task == 0 {
		return fmt.Sprintf("%q", ref.Scope)
	}
	return fmt.Sprintf("%q", string(ref.Scope)+ref.Task.String())
}

func TestVarTTL(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		_, err := s.SetVar(t.Context(), global, perdure.VarSpec{Name: "short", Value: json.RawMessage("1"),
			TTL: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		setVar(t, s, global, "later", "1") // the clock is behind it now
		wantVar(t, s, global, "short", "none")
		if _, err := s.IncrVar(t.Context(), global, "short", "5", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		wantVar(t, s, global, "short", "5") // a new one, without an end
		_, err = s.SetVar(t.Context(), global, perdure.VarSpec{Name: "short2", Value: json.RawMessage("1"),
			TTL: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.Prune(t.Context(), perdure.PruneRequest{})
		if err != nil || report.Variables != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		if info, err := s.State(t.Context(), global); err != nil || info.Variables != 2 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestVarAtomic(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		const workers, rounds = 8, 50
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for range rounds {
					if _, err := s.IncrVar(t.Context(), global, "n", "1", perdure.Cause{}); err != nil {
						t.Error(err)
					}
					if _, err := s.AppendVar(t.Context(), global, "list", json.RawMessage(fmt.Sprint(w)),
						perdure.Cause{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		wantVar(t, s, global, "n", fmt.Sprint(workers*rounds))
		var list []int
		if err := json.Unmarshal(wantVar(t, s, global, "list", string(mustVar(t, s, "list"))).Value, &list); err != nil ||
			len(list) != workers*rounds {
			t.Errorf("%d elements, %v", len(list), err)
		}
		_, err := s.IncrVar(t.Context(), global, "list", "1", perdure.Cause{})
		wantRefusal(t, err, perdure.CodeInvalid, "array")
		_, err = s.AppendVar(t.Context(), global, "n", json.RawMessage("1"), perdure.Cause{})
		wantRefusal(t, err, perdure.CodeInvalid, "number")
		setVar(t, s, global, "text", `"5"`)
		_, err = s.IncrVar(t.Context(), global, "text", "1", perdure.Cause{})
		if wantRefusal(t, err, perdure.CodeInvalid, "text, not number"); !strings.Contains(perdure.HintOf(err), "--json 5") {
			t.Errorf("hint %q", perdure.HintOf(err))
		}
		setVar(t, s, global, "n", "9223372036854775807")
		_, err = s.IncrVar(t.Context(), global, "n", "1", perdure.Cause{})
		wantRefusal(t, err, perdure.CodeInvalid, "64-bit")
		if v, err := s.IncrVar(t.Context(), global, "f", "0.5", perdure.Cause{}); err != nil || string(v.Value) != "0.5" {
			t.Errorf("%s, %v", v.Value, err)
		}
		setVar(t, s, global, "big", `["`+strings.Repeat("x", perdure.MaxPayloadBytes-10)+`"]`)
		_, err = s.AppendVar(t.Context(), global, "big", json.RawMessage(`"yyyyyyyyyyyyyyyy"`), perdure.Cause{})
		wantRefusal(t, err, perdure.CodeInvalid, "limit")
	})
}

func mustVar(t testing.TB, s *perdure.Store, name string) json.RawMessage {
	t.Helper()
	v, err := s.Var(t.Context(), global, name)
	if err != nil {
		t.Fatal(err)
	}
	return v.Value
}

func TestVarVersion(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		spec := func(version perdure.MutationID) perdure.VarSpec {
			return perdure.VarSpec{Name: "a", Value: json.RawMessage("1"), Cause: perdure.Cause{IfVersion: &version}}
		}
		first, err := s.SetVar(t.Context(), global, spec(0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.SetVar(t.Context(), global, spec(0))
		wantRefusal(t, err, perdure.CodeConflict, first.Version.String())
		second, err := s.SetVar(t.Context(), global, spec(first.Version))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.SetVar(t.Context(), global, spec(first.Version))
		wantRefusal(t, err, perdure.CodeConflict, second.Version.String(), first.Version.String())
	})
}

func TestVarRenameAndHistory(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		setVar(t, s, global, "a", "1")
		setVar(t, s, global, "a", "2")
		setVar(t, s, global, "taken", "0")
		_, err := s.RenameVar(t.Context(), global, "a", "taken", perdure.Cause{})
		wantRefusal(t, err, perdure.CodeConflict, "taken")
		if _, err := s.RenameVar(t.Context(), global, "a", "b",
			perdure.Cause{Source: "user_edit", Reason: "clearer"}); err != nil {
			t.Fatal(err)
		}
		wantVar(t, s, global, "a", "none")
		wantVar(t, s, global, "b", "2")
		if err := s.DeleteVar(t.Context(), global, "b", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		list, err := s.History(t.Context(), global, perdure.HistoryFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range list {
			got = append(got, fmt.Sprintf("%s %s %s %s>%s %s %s", m.Operation, m.Name, m.To, m.Old, m.New, m.Source, m.Reason))
		}
		want := []string{"delete b  2>  ", "rename a b 2>2 user_edit clearer", "create taken  >0  ", "update a  1>2  ",
			"create a  >1  "}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if only, err := s.History(t.Context(), global, perdure.HistoryFilter{Name: "b"}); err != nil || len(only) != 2 {
			t.Errorf("%d entries about b, %v", len(only), err)
		}
		if page, err := s.History(t.Context(), global, perdure.HistoryFilter{Before: list[1].ID, Limit: 1}); err != nil ||
			len(page) != 1 || page[0].ID != list[2].ID {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

func TestVarAccessCount(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		setVar(t, s, global, "a", "1")
		for range 3 {
			wantVar(t, s, global, "a", "1")
		}
		if v := wantVar(t, s, global, "a", "1"); v.Accessed != 4 {
			t.Errorf("%d accesses", v.Accessed)
		}
		setVar(t, s, global, "b", "1") // takes the counts along
		if v := wantVar(t, s, global, "a", "1"); v.Accessed != 5 {
			t.Errorf("%d accesses after a write", v.Accessed)
		}
	})
}

// The root of a tree may be named or not: its state is one.
func TestStateOfTheRootIsTheTrees(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree := createTree(t, s, perdure.TreeSpec{})
		for i, name := range []string{"a", "b", "c", "d"} {
			ref := treeState(tree)
			if i%2 == 1 {
				ref = taskState(tree, tree.Root)
			}
			setVar(t, s, ref, name, "1")
		}
		for _, ref := range []perdure.StateRef{treeState(tree), taskState(tree, tree.Root)} {
			info, err := s.State(t.Context(), ref)
			if err != nil || info.Variables != 6 || info.Mutations != 6 {
				t.Errorf("state is %+v (%v), want 6 variables and as many mutations", info, err)
			}
		}
		if err := statetest.Sound(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

// What is temporary goes away by itself: each variable after its time, the state
// after the last of them.
func TestTemporaryStatesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir(), PollInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ref := perdure.StateRef{Scope: perdure.ScopeTemporary, Name: "scratch"}
		setVar(t, s, ref, "plain", "1")
		if _, err := s.IncrVar(t.Context(), ref, "count", "1", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetVar(t.Context(), ref,
			perdure.VarSpec{Name: "long", Value: json.RawMessage("1"), TTL: 48 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		info, err := s.State(t.Context(), ref)
		if err != nil || info.ExpiresAt == nil || info.ExpiresAt.Sub(info.CreatedAt) != 48*time.Hour {
			t.Errorf("the state is %+v, %v", info, err)
		}
		for _, step := range []struct {
			after  time.Duration
			long   string
			others string
			states int64
		}{{perdure.TemporaryTTL - time.Hour, "1", "1", 0}, {2 * time.Hour, "1", "none", 0},
			{24 * time.Hour, "none", "none", 1}} {
			time.Sleep(step.after)
			wantVar(t, s, ref, "plain", step.others)
			wantVar(t, s, ref, "count", step.others)
			wantVar(t, s, ref, "long", step.long)
			report, err := s.Prune(t.Context(), perdure.PruneRequest{})
			if err != nil || report.States != step.states {
				t.Errorf("after %s: %+v, %v", step.after, report, err)
			}
		}
		if info, err := s.State(t.Context(), ref); err != nil || info.ID != 0 {
			t.Errorf("the state is still there: %+v, %v", info, err)
		}
	})
}
