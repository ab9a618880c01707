package server_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

var session = perdure.StateRef{Scope: perdure.ScopeSession, Session: "login-1"}

func (f *fixture) set(t testing.TB, ref perdure.StateRef, name, value string) perdure.Variable {
	t.Helper()
	v, err := f.client.SetVar(t.Context(), ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value)})
	must(t, err)
	return v
}

func wantCode(t testing.TB, err error, code perdure.Code, part string) {
	t.Helper()
	if perdure.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one of code %s with %q", err, code, part)
	}
}

// What the client returns is what the store has.
func TestVariables(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.client
		made, err := c.SetVar(ctx, session,
			perdure.VarSpec{Name: "limits", Value: json.RawMessage(`{"b<":1.50,"a":[9007199254740993]}`),
				Description: "what holds", TTL: time.Hour, Cause: perdure.Cause{Source: "user_edit", Reason: "it is so"}})
		must(t, err)
		want, err := f.store.Var(ctx, session, "limits")
		must(t, err)
		got, err := c.Var(ctx, session, "limits")
		must(t, err)
		want.Accessed, got.Accessed = 0, 0
		equalJSON(t, "variable", got, want)
		equalJSON(t, "answer to set", made, want)
		if string(got.Value) != `{"b<":1.50,"a":[9007199254740993]}` || got.Metadata.TTLSeconds != 3600 {
			t.Errorf("value %s, %+v", got.Value, got.Metadata)
		}
		for _, n := range []string{"1", "2.5", "-0.5"} {
			_, err := c.IncrVar(ctx, session, "n", json.Number(n), perdure.Cause{})
			must(t, err)
		}
		for _, v := range []string{`"x"`, `{"y":null}`} {
			_, err := c.AppendVar(ctx, session, "list", json.RawMessage(v), perdure.Cause{})
			must(t, err)
		}
		renamed, err := c.RenameVar(ctx, session, "list", "items", perdure.Cause{})
		if err != nil || string(renamed.Value) != `["x",{"y":null}]` || renamed.Name != "items" {
			t.Errorf("renamed %s %s, %v", renamed.Name, renamed.Value, err)
		}
		must(t, c.DeleteVar(ctx, session, "limits", perdure.Cause{}))
		page, err := c.Vars(ctx, session, perdure.VarFilter{Limit: 1})
		if err != nil || len(page.Variables) != 1 || page.Variables[0].Name != "items" || page.Next != "items" {
			t.Errorf("page %+v, %v", page, err)
		}
		page, err = c.Vars(ctx, session, perdure.VarFilter{After: page.Next})
		if err != nil || len(page.Variables) != 1 || string(page.Variables[0].Value) != "3" || page.Next != "" {
			t.Errorf("page %+v, %v", page, err)
		}
		wantHistory, err := f.store.History(ctx, session, perdure.HistoryFilter{})
		must(t, err)
		history, err := c.History(ctx, session, perdure.HistoryFilter{})
		must(t, err)
		equalJSON(t, "history", history.Mutations, wantHistory)
		first, err := c.History(ctx, session, perdure.HistoryFilter{Name: "n", Limit: 2})
		must(t, err)
		rest, err := c.History(ctx, session, perdure.HistoryFilter{Name: "n", Before: first.Next})
		if err != nil || len(first.Mutations) != 2 || len(rest.Mutations) != 1 || rest.Next != 0 {
			t.Errorf("history of n: %+v, %+v, %v", first, rest, err)
		}
		info, err := c.State(ctx, session)
		if err != nil || info.Variables != 2 || info.Mutations != int64(len(wantHistory)) {
			t.Errorf("state %+v, %v", info, err)
		}
		for name, target := range map[string]string{"variable": "/v1/variables/items", "history": "/v1/history",
			"state": "/v1/state"} {
			golden(t, name, f.send(t, http.MethodGet, target+"?session=login-1", "").body)
		}
	})
}

// A change with a precondition happens only on the version it names, told in
// the body or in the header.
func TestVariablePreconditions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.client
		first := f.set(t, session, "a", "1")
		if got := f.send(t, http.MethodGet, "/v1/variables/a?session=login-1", ""); got.header.Get("ETag") != `"`+
			first.Version.String()+`"` {
			t.Errorf("ETag %q", got.header.Get("ETag"))
		}
		second := f.set(t, session, "a", "2")
		none := perdure.MutationID(0)
		set := func(name string, version *perdure.MutationID) error {
			_, err := c.SetVar(ctx, session,
				perdure.VarSpec{Name: name, Value: json.RawMessage("3"), Cause: perdure.Cause{IfVersion: version}})
			return err
		}
		wantCode(t, set("a", &first.Version), perdure.CodeConflict, first.Version.String())
		wantCode(t, set("a", &none), perdure.CodeConflict, second.Version.String())
		must(t, set("b", &none))
		must(t, set("a", &second.Version))
		wantCode(t, c.DeleteVar(ctx, session, "a", perdure.Cause{IfVersion: &second.Version}), perdure.CodeConflict,
			"has version")
		for _, test := range []struct {
			header, value, body string
			status              int
		}{
			{"If-Match", `"` + second.Version.String() + `"`, `{"value":4}`, 409},
			{"If-Match", second.Version.String(), `{"value":4}`, 400},
			{"If-Match", "*", `{"value":4}`, 400},
			{"If-None-Match", "*", `{"value":4}`, 409},
			{"If-None-Match", `"x"`, `{"value":4}`, 400},
			{"If-None-Match", "*", `{"value":4,"if_version":"none"}`, 400},
		} {
			got := f.send(t, http.MethodPut, "/v1/variables/a?session=login-1", test.body, test.header, test.value)
			if got.status != test.status {
				t.Errorf("%s %s: status %d: %s", test.header, test.value, got.status, got.body)
			}
		}
		now, err := c.Var(ctx, session, "a")
		must(t, err)
		got := f.send(t, http.MethodPut, "/v1/variables/a?session=login-1", `{"value":5}`, "If-Match",
			`"`+now.Version.String()+`"`)
		if got.status != http.StatusOK {
			t.Errorf("the current version: status %d: %s", got.status, got.body)
		}
	})
}

// A task reads what is above it, a task alone is enough to name its state, and
// Final completes.
func TestVariablesOfTasks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.client
		tree, ids := f.grow(t, perdure.PolicyPartial, "one", "two")
		root := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
		child := perdure.StateRef{Scope: perdure.ScopeTree, Task: ids[0]}
		f.set(t, root, "shared", `"of the tree"`)
		f.set(t, session, "mine", `"of the session"`)
		got, err := c.Var(ctx, child, "shared")
		if err != nil || got.Task != tree.Root {
			t.Errorf("shared is of %s, %v", got.Task, err)
		}
		child.Session = session.Session
		got, err = c.Var(ctx, child, "mine")
		if err != nil || got.Metadata.Scope != perdure.ScopeSession {
			t.Errorf("mine is of the scope %q, %v", got.Metadata.Scope, err)
		}
		_, err = c.SetVar(ctx, child, perdure.VarSpec{Name: perdure.VarPrompt, Value: json.RawMessage(`"x"`)})
		wantCode(t, err, perdure.CodeConflict, "read-only")
		final := perdure.VarSpec{Name: perdure.VarFinal, Value: json.RawMessage(`"by hand"`)}
		_, err = c.SetVar(ctx, root, final)
		wantCode(t, err, perdure.CodeConflict, "unfinished children")
		final.CancelRest = true
		_, err = c.SetVar(ctx, root, final)
		must(t, err)
		done, err := c.WaitTree(ctx, tree.ID)
		if err != nil || done.State != perdure.Completed {
			t.Errorf("the tree is %s, %v", done.State, err)
		}
	})
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.client
		f.set(t, session, "a", "1")
		f.set(t, session, "gone", `"x"`)
		made, err := c.SaveCheckpoint(ctx, session, "before", "all is well")
		must(t, err)
		f.set(t, session, "a", "2")
		f.set(t, session, "b", "3")
		must(t, c.DeleteVar(ctx, session, "gone", perdure.Cause{}))
		list, err := c.Checkpoints(ctx, session)
		if err != nil || len(list) != 2 || list[1] != made {
			t.Errorf("checkpoints %+v, %v", list, err)
		}
		changes, err := c.Diff(ctx, session, "before", "")
		must(t, err)
		want, err := f.store.Diff(ctx, session, "before", "")
		must(t, err)
		equalJSON(t, "diff", changes, want)
		golden(t, "diff", f.send(t, http.MethodGet, "/v1/checkpoints/diff?session=login-1&from=before", "").body)
		golden(t, "checkpoints", f.send(t, http.MethodGet, "/v1/checkpoints?session=login-1", "").body)
		report, err := c.Rollback(ctx, session, made.ID.String(), perdure.Cause{Source: "user_edit", Reason: "wrong"})
		if err != nil || report.Restored != 2 || report.Removed != 1 {
			t.Errorf("report %+v, %v", report, err)
		}
		if changes, err = c.Diff(ctx, session, "before", ""); err != nil || len(changes) != 0 {
			t.Errorf("after the rollback %+v differs, %v", changes, err)
		}
		_, err = c.Rollback(ctx, session, report.Mutation.String(), perdure.Cause{})
		must(t, err)
		v, err := c.Var(ctx, session, "b")
		if err != nil || string(v.Value) != "3" {
			t.Errorf("b is %s, %v", v.Value, err)
		}
		must(t, c.DeleteCheckpoint(ctx, session, made.ID.String()))
		wantCode(t, c.DeleteCheckpoint(ctx, session, made.Name), perdure.CodeNotFound, "no checkpoint")
	})
}

// A value that is longer than other bodies may be is set and read whole, and
// one beyond the limit is refused without harm.
func TestLargeVariables(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w,
			server.Config{Limits: server.Limits{JSONBytes: 1 << 10, ValueBytes: 4 << 20}})
		long := `"` + strings.Repeat("<&>", 1_300_000) + `"`
		f.set(t, session, "long", long)
		v, err := f.client.Var(t.Context(), session, "long")
		if err != nil || string(v.Value) != long {
			t.Errorf("%s: %d bytes came back of %d, %v", w.name, len(v.Value), len(long), err)
		}
		_, err = f.client.SetVar(t.Context(), session,
			perdure.VarSpec{Name: "long", Value: json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)})
		if w.name == "inproc" || !errors.Is(err, perdure.ErrUnavailable) { // a socket may be closed under the writer
			wantCode(t, err, perdure.CodeInvalid, "larger than the limit")
		}
		page, err := f.client.Vars(t.Context(), session, perdure.VarFilter{})
		if err != nil || len(page.Variables) != 1 || page.Variables[0].Value != nil ||
			page.Variables[0].Size != int64(len(long)) {
			t.Errorf("%s: %d variables, %v", w.name, len(page.Variables), err)
		}
	}
}

// Malformed requests get a 4xx that says what is wrong, and change nothing.
func TestBadVariables(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, target, body string
		status                     int
		want                       string // in the detail
	}{
		{"no state", "GET", "/v1/variables", "", 400, "scope is missing"},
		{"scope", "GET", "/v1/variables?scope=all", "", 400, `scope "all" is not one of global`},
		{"scope without a session", "GET", "/v1/variables?scope=session", "", 400, `scope "session" needs a name`},
		{"tree of the global scope", "GET", "/v1/state?scope=global&tree=tree-00000000", "", 400,
			`"tree" cannot be used with scope "global"`},
		{"variables of no tree", "GET", "/v1/variables?tree=tree-00000000", "", 404, `no tree "tree-00000000"`},
		{"variables of no task", "GET", "/v1/variables?task=task-0001", "", 404, `no task "task-0001"`},
		{"no such variable", "GET", "/v1/variables/a?scope=global", "", 404, `no variable "a"`},
		{"name", "PUT", "/v1/variables/1a?scope=global", `{"value":1}`, 400, `"1a" is not a valid variable name`},
		{"long name", "PUT", "/v1/variables/" + strings.Repeat("a", 129) + "?scope=global", `{"value":1}`, 400,
			"129 characters, the limit is 128"},
		{"no value", "PUT", "/v1/variables/a?scope=global", `{}`, 400, `field "value" is missing`},
		{"wrong value", "PUT", "/v1/variables/a?scope=global", `{"value":1,"type":"text"}`, 400,
			"is of type number, not text"},
		{"cut value", "PUT", "/v1/variables/a?scope=global", `{"value":{"b":`, 400, "body:1:15: "},
		{"deep value", "PUT", "/v1/variables/a?scope=global", `{"value":` + strings.Repeat("[", 20_000) + `}`, 400,
			"nested deeper"},
		{"large value", "PUT", "/v1/variables/a?scope=global", `{"value":"` + strings.Repeat("x", 200_000) + `"}`, 413,
			"larger than the limit"},
		{"time to live", "PUT", "/v1/variables/a?scope=global", `{"value":1,"ttl_seconds":-1}`, 400, `"ttl_seconds" is -1`},
		{"version", "PUT", "/v1/variables/a?scope=global", `{"value":1,"if_version":"7"}`, 400,
			`"if_version" is "7", which is not a version`},
		{"unknown field of a variable", "PUT", "/v1/variables/a?scope=global", `{"values":1}`, 400, "field values: "},
		{"delete nothing", "DELETE", "/v1/variables/a?scope=global", "", 404, `no variable "a"`},
		{"increment by text", "POST", "/v1/variables/a/increment?scope=global", `{"by":"1"}`, 400, `"by" is not a number`},
		{"append nothing", "POST", "/v1/variables/a/append?scope=global", "", 400, `field "value" is missing`},
		{"history before", "GET", "/v1/history?scope=global&before=x", "", 400, `"x" is not of the form mut-`},
		{"checkpoint with a long name", "POST", "/v1/checkpoints?scope=global",
			`{"name":"` + strings.Repeat("x", 300) + `"}`, 400, "the name is not UTF-8 text of at most 256"},
		{"roll back to nothing", "POST", "/v1/checkpoints/rollback?scope=global", "", 400, "name of the checkpoint is empty"},
		{"roll back to what is not there", "POST", "/v1/checkpoints/rollback?scope=global", `{"to":"x"}`, 404,
			`no checkpoint or mutation "x"`},
	}
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	for _, w := range ways() {
		f := newFixture(t, s, w, server.Config{Limits: server.Limits{JSONBytes: 64 << 10, ValueBytes: 64 << 10}})
		for _, test := range tests {
			a := f.send(t, test.method, test.target, test.body)
			var p struct{ Detail string }
			if err := json.Unmarshal(a.body, &p); err != nil || a.status != test.status ||
				!strings.Contains(p.Detail, test.want) {
				t.Errorf("%s, %s: status %d, want %d with %q: %s", w.name, test.name, a.status, test.status, test.want, a.body)
			}
		}
	}
	info, err := s.State(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal})
	if err != nil || info.ID != 0 {
		t.Errorf("the global state was made: %+v, %v", info, err)
	}
}
