package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// Every endpoint, with the JSON it answers pinned by a golden file. The
// requests go to one store, in this order.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, target, body string
		status                     int
	}{
		{"health", "GET", "/v1/health", "", 200},
		{"version", "GET", "/v1/version", "", 200},
		{"context_create", "POST", "/v1/contexts", "CONTEXT", 201},
		{"context", "GET", "/v1/contexts/{context}", "", 200},
		{"context_names", "GET", "/v1/contexts/{context}?names=1", "", 200},
		{"context_drop_other", "DELETE", "/v1/contexts/{context}?created_at=2026-01-02T03:04:05.678901Z", "", 200},
		{"trees", "GET", "/v1/trees?limit=10&kind=run", "", 200},
		{"trees_none", "GET", "/v1/trees?kind=loop", "", 200},
		{"tree", "GET", "/v1/trees/{tree}", "", 200},
		{"tree", "GET", "/v1/trees/{tree}?wait=1m", "", 200}, // terminal: at once
		{"tree_status", "GET", "/v1/trees/{tree}/status", "", 200},
		{"tree_result", "GET", "/v1/trees/{tree}/result", "", 200},
		{"tree_tasks", "GET", "/v1/trees/{tree}/tasks?parent={root}", "", 200},
		{"tree_tasks_failed", "GET", "/v1/trees/{tree}/tasks?state=failed,cancelled&brief=1", "", 200},
		{"tree_tasks_page", "GET", "/v1/trees/{tree}/tasks?limit=1&after={root}&brief=1", "", 200},
		{"task", "GET", "/v1/tasks/{good}", "", 200},
		{"task", "GET", "/v1/tasks/{node}?node=1", "", 200},
		{"task_calls", "GET", "/v1/tasks/{good}/calls", "", 200},
		{"task_calls_none", "GET", "/v1/tasks/{root}/calls", "", 200},
		{"events", "GET", "/v1/events?tree={tree}&limit=3", "", 200},
		{"events_page", "GET", "/v1/events?after=3&limit=2", "", 200},
		{"events_end", "GET", "/v1/events?after=1000", "", 200},
		{"tree_create", "POST", "/v1/trees",
			`{"name":"n","prompt":"p","context_id":"{context}","config":{"a":[1]},"owner":"{session}"}`, 201},
		{"tree_resume", "POST", "/v1/trees/{made}/resume", `{"owner":"{session}"}`, 200},
		{"tree_result_early", "GET", "/v1/trees/{made}/result", "", 409},
		{"tree_cancel", "POST", "/v1/trees/{made}/cancel", `{"reason":"enough"}`, 200},
		{"tree_cancel_again", "POST", "/v1/trees/{made}/cancel", "", 409},
		{"tree_result_cancelled", "GET", "/v1/trees/{made}/result", "", 200},
		{"tree_create_ownerless", "POST", "/v1/trees",
			`{"name":"n","prompt":"p","context_id":"{context}","config":{"a":[1]}}`, 201},
		{"task_cancel", "POST", "/v1/tasks/{maderoot}/cancel", "{}", 200},
		{"task_retry_refused", "POST", "/v1/tasks/{maderoot}/retry", "", 409},
		{"gc_dry", "POST", "/v1/gc", `{"completed":0,"failed":0,"include_failed":true,"dry_run":true}`, 200},
		{"gc", "POST", "/v1/gc", `{"completed":0,"failed":0,"include_failed":true}`, 200},
		{"tree_gone", "GET", "/v1/trees/{tree}", "", 404},
		{"check", "GET", "/v1/check", "", 200},
	}
	each(t, func(t *testing.T, f *fixture) {
		tree, ids := f.family(t)
		names := []string{"{tree}", string(tree.ID), "{root}", ids[0].String(), "{good}", ids[1].String(),
			"{node}", ids[1].Node().String(), "{session}", f.session.ID()}
		for _, test := range tests {
			fill := strings.NewReplacer(names...)
			body := fill.Replace(test.body)
			if body == "CONTEXT" {
				body = string(upload(t, map[string]string{"a.txt": "one\ntwo\n", "b/c.txt": "three"}))
			}
			a := f.send(t, test.method, fill.Replace(test.target), body)
			if a.status != test.status {
				t.Fatalf("%s: status %d, want %d: %s", test.name, a.status, test.status, a.body)
			}
			want := "application/json"
			if test.status >= 400 {
				want = "application/problem+json"
			}
			if got := a.header.Get("Content-Type"); got != want {
				t.Errorf("%s: content type %q, want %q", test.name, got, want)
			}
			golden(t, test.name, a.body)
			var made struct {
				Context string         `json:"context_id"`
				Tree    string         `json:"tree_id"`
				Root    perdure.TaskID `json:"root_task"`
			}
			must(t, json.Unmarshal(a.body, &made))
			if test.status == 201 {
				names = append([]string{"{context}", made.Context, "{made}", made.Tree, "{maderoot}", made.Root.String()}, names...)
				location := strings.TrimPrefix(strings.TrimPrefix(a.header.Get("Location"), "/v1/contexts/"), "/v1/trees/")
				if location != made.Context+made.Tree {
					t.Errorf("%s: Location %q", test.name, a.header.Get("Location"))
				}
			}
		}
	})
}

// upload is a stream of files, as a client sends it.
func upload(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, stream(&out, files))
	return out.Bytes()
}

func stream(w io.Writer, files map[string]string) error {
	s := pack.NewStreamWriter(w)
	for _, name := range []string{"a.txt", "b/c.txt"} {
		if err := s.Add(name, strings.NewReader(files[name])); err != nil {
			return err
		}
	}
	s.Skip("z.bin", "binary", "it is binary")
	return s.Close()
}

// The methods of the client, and that it understands everything the server
// says.
func TestClient(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.client
		must(t, c.Ping(ctx))
		v, err := c.Version(ctx)
		if err != nil || v.Version != "1.2.3" || v.API != "v1" || v.Database != f.store.Database() {
			t.Errorf("Version = %+v, %v", v, err)
		}
		want, ids := f.family(t)
		want, err = f.store.Tree(ctx, want.ID)
		must(t, err)
		got, err := c.WaitTree(ctx, want.ID)
		must(t, err)
		equalJSON(t, "tree", got, want)
		st, err := c.Status(ctx, want.ID)
		if err != nil || st.Completed != 2 || st.Failed != 1 || len(st.Active) != 0 || st.Usage.Calls != 1 {
			t.Errorf("Status = %+v, %v", st, err)
		}
		res, err := c.Result(ctx, want.ID)
		if err != nil || res.Text() != "all is fine" || !res.Partial || len(res.Citations) != 1 ||
			res.Citations[0].EndLine != 2 ||
			len(res.Missing) != 1 || res.Missing[0].Task != ids[2] || res.Missing[0].Error.Kind != "model" ||
			res.MissingTotal != 1 {
			t.Errorf("Result = %+v, %v", res, err)
		}
		wantTasks, err := f.store.Tasks(ctx, perdure.TaskFilter{Tree: want.ID})
		must(t, err)
		var gotTasks []perdure.Task
		for task, err := range c.AllTasks(ctx, client.TaskQuery{Tree: want.ID, Limit: 2}) {
			must(t, err)
			gotTasks = append(gotTasks, task)
		}
		if len(gotTasks) != len(wantTasks) {
			t.Fatalf("%d tasks, want %d", len(gotTasks), len(wantTasks))
		}
		for i := range wantTasks { // the written form rounds it
			wantTasks[i].Active, gotTasks[i].Active = 0, 0
		}
		equalJSON(t, "tasks", gotTasks, wantTasks)
		page, err := c.Tasks(ctx, client.TaskQuery{Tree: want.ID, Parent: ids[0], States: []perdure.State{perdure.Failed},
			Brief: true})
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != ids[2] || page.Next != 0 {
			t.Errorf("Tasks = %+v, %v", page, err)
		}
		task, err := c.Task(ctx, ids[1])
		if err != nil || task.ID != ids[1] || len(task.Calls) != 1 || task.Result != "fine" ||
			string(task.Metadata) != `{"mine":1}` {
			t.Errorf("Task = %+v, %v", task, err)
		}
		byNode, err := c.TaskByNode(ctx, ids[1].Node())
		must(t, err)
		equalJSON(t, "task by node", byNode, task)
		calls, err := c.Calls(ctx, ids[1])
		must(t, err)
		equalJSON(t, "calls", calls, task.Calls)
		testClientWrites(t, f)
	})
}

func testClientWrites(t *testing.T, f *fixture) {
	t.Helper()
	ctx, c := t.Context(), f.client
	up, err := c.PutContext(ctx, func(w io.Writer) error {
		return stream(w, map[string]string{"a.txt": "one\ntwo\n", "b/c.txt": "three"})
	})
	if err != nil || up.Files != 2 || up.Bytes != 13 || len(up.Skipped) != 1 || up.Skipped[0].File != "z.bin" {
		t.Fatalf("PutContext = %+v, %v", up, err)
	}
	kept, err := c.Context(ctx, up.ID)
	if err != nil || kept.ID != up.ID || kept.Tokens != up.Tokens {
		t.Errorf("Context = %+v, %v", kept, err)
	}
	req := client.TreeRequest{Name: "n", Prompt: "p", ContextID: up.ID, Config: json.RawMessage(`{"a":1}`),
		Owner: f.session.ID(), IdempotencyKey: "once"}
	made, err := c.CreateTree(ctx, req)
	if err != nil || made.Kind != "run" || made.Name != "n" {
		t.Fatalf("CreateTree = %+v, %v", made, err)
	}
	again, err := c.CreateTree(ctx, req)
	if err != nil || again.ID != made.ID {
		t.Errorf("CreateTree with the same key = %v, %v, want %v", again.ID, err, made.ID)
	}
	changed := req
	changed.Config = json.RawMessage(`{"a":2}`)
	if tree, err := c.CreateTree(ctx, changed); !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("CreateTree with the same key and another configuration = %v, %v, want a conflict", tree.ID, err)
	}
	req.Config = json.RawMessage(`{ "a": 1 }`)
	if again, err = c.CreateTree(ctx, req); err != nil || again.ID != made.ID {
		t.Errorf("CreateTree with the same key and other white space = %v, %v, want %v", again.ID, err, made.ID)
	}
	unowned := req
	unowned.Owner = "" // as another process, which has another session
	if again, err = c.CreateTree(ctx, unowned); err != nil || again.ID != made.ID {
		t.Errorf("CreateTree with the same key and another owner = %v, %v, want %v", again.ID, err, made.ID)
	}
	changed.IdempotencyKey = strings.Repeat("k", 256)
	if tree, err := c.CreateTree(ctx, changed); !errors.Is(err, perdure.ErrInvalid) {
		t.Errorf("CreateTree with a key of 256 bytes = %v, %v, want it refused", tree.ID, err)
	}
	req.IdempotencyKey = ""
	other, err := c.CreateTree(ctx, req)
	if err != nil || other.ID == made.ID {
		t.Errorf("CreateTree without a key = %v, %v", other.ID, err)
	}
	first, err := c.Trees(ctx, perdure.TreeFilter{Kind: "run", Active: true, Limit: 1})
	if err != nil || len(first.Trees) != 1 || first.Trees[0].ID != other.ID || first.Next != other.ID {
		t.Errorf("Trees = %+v, %v", first, err)
	}
	rest, err := c.Trees(ctx, perdure.TreeFilter{Kind: "run", Active: true, Before: first.Next})
	if err != nil || len(rest.Trees) != 1 || rest.Trees[0].ID != made.ID || rest.Next != "" {
		t.Errorf("Trees = %+v, %v", rest, err)
	}
	report, err := c.Resume(ctx, made.ID, client.ResumeRequest{Owner: f.session.ID()})
	if err != nil || report.Pending != 1 {
		t.Errorf("Resume = %+v, %v", report, err)
	}
	if n, err := c.CancelTree(ctx, made.ID, "enough"); err != nil || n != 1 {
		t.Errorf("CancelTree = %d, %v", n, err)
	}
	if _, err := f.one(t).Fail(ctx, perdure.Failure{Kind: "model", Message: "no"}); err != nil {
		t.Error(err)
	}
	if task, err := c.RetryTask(ctx, other.Root); err != nil || task.State != perdure.Queued {
		t.Errorf("RetryTask = %+v, %v", task, err)
	}
	if n, err := c.CancelTask(ctx, other.Root, ""); err != nil || n != 1 {
		t.Errorf("CancelTask = %d, %v", n, err)
	}
	events, err := c.EventPage(ctx, 0, made.ID, 2)
	if err != nil || len(events.Events) != 2 || events.Next != events.Events[1].Seq {
		t.Errorf("EventPage = %+v, %v", events, err)
	}
	pruned, err := c.Collect(ctx, client.CollectRequest{Completed: -1, Failed: -1, IncludeFailed: true})
	if err != nil || len(pruned.Trees) != 3 || pruned.DryRun {
		t.Errorf("Collect = %+v, %v", pruned, err)
	}
	check, err := c.Check(ctx)
	if err != nil || !check.OK || check.Problems == nil {
		t.Errorf("Check = %+v, %v", check, err)
	}
}

func equalJSON(t testing.TB, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	must(t, err)
	w, err := json.MarshalIndent(want, "", " ")
	must(t, err)
	if diff := cmp.Diff(string(w), string(g)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// Every code comes back from the server as it went in; causes stay inside.
func TestErrorRoundTrip(t *testing.T) {
	t.Parallel()
	const secret = "password"
	statuses := map[perdure.Code]int{
		perdure.CodeInvalid: 400, perdure.CodeNotFound: 404, perdure.CodeConflict: 409, perdure.CodeLeaseLost: 409,
		perdure.CodeBudgetExceeded: 402, perdure.CodeCanceled: 499, perdure.CodeUnavailable: 503,
		perdure.CodeDamaged: 500, perdure.CodeInternal: 500,
	}
	for code, status := range statuses {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			want := &perdure.Error{Code: code, Op: "launch tree", Msg: "it is not " + `"so" <&>`, Hint: "do it otherwise"}
			thrown := *want
			thrown.Err = errors.New(secret)
			for _, w := range ways() {
				f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w, server.Config{
					Launcher: launcherFunc(func(_ context.Context, _ server.LaunchRequest) (perdure.Tree, error) {
						return perdure.Tree{}, fmt.Errorf("outer %s: %w", secret, &thrown)
					})})
				a := f.send(t, "POST", "/v1/trees", `{"prompt":"x"}`)
				if a.status != status || bytes.Contains(a.body, []byte(secret)) {
					t.Errorf("status %d, want %d: %s", a.status, status, a.body)
				}
				golden(t, "problem_"+string(code), a.body)
				_, err := f.client.CreateTree(t.Context(), client.TreeRequest{Prompt: "x"})
				if !errors.Is(err, &perdure.Error{Code: code}) {
					t.Errorf("errors.Is(%v, %s) = false", err, code)
				}
				if diff := cmp.Diff(error(want), err); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Errors that are not the API's own are internal and say nothing.
func TestForeignErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		launch launcherFunc
	}{
		{"foreign", func(context.Context, server.LaunchRequest) (perdure.Tree, error) {
			return perdure.Tree{}, errors.New("password")
		}},
		{"panic", func(context.Context, server.LaunchRequest) (perdure.Tree, error) { panic("password") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range ways() {
				f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w, server.Config{Launcher: test.launch})
				_, err := f.client.CreateTree(t.Context(), client.TreeRequest{Prompt: "x"})
				if perdure.CodeOf(err) != perdure.CodeInternal || strings.Contains(err.Error(), "password") {
					t.Errorf("%s: %v", w.name, err)
				}
				must(t, f.client.Ping(t.Context())) // other clients are not affected
			}
		})
	}
}

// A refused transition comes back as the StateError that it is.
func TestStateErrorRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		tree, _ := f.family(t)
		_, want := f.store.CancelTree(t.Context(), tree.ID, "")
		_, err := f.client.CancelTree(t.Context(), tree.ID, "")
		var state *perdure.StateError
		if !errors.As(err, &state) || state.Is != perdure.Completed || state.Want != perdure.Cancelled {
			t.Fatalf("CancelTree = %v", err)
		}
		if err.Error() != want.Error() {
			t.Errorf("error %q, by the store %q", err, want)
		}
	})
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[1], server.Config{})
	for _, test := range []struct {
		method, target, allow string
		status                int
	}{
		{"GET", "/", "", 404},
		{"GET", "/v1", "", 404},
		{"GET", "/v2/trees", "", 404},
		{"DELETE", "/v1/trees", "GET, HEAD, POST", 405},
		{"PUT", "/v1/health", "GET, HEAD", 405},
		{"HEAD", "/v1/health", "", 200},
		{"HEAD", "/v1/trees/x", "", 400},
	} {
		a := f.send(t, test.method, test.target, "")
		if a.status != test.status || a.header.Get("Allow") != test.allow {
			t.Errorf("%s %s: %d, Allow %q", test.method, test.target, a.status, a.header.Get("Allow"))
		}
		var p struct{ Code, Title string }
		if test.method == http.MethodHead {
			continue
		}
		if err := json.Unmarshal(a.body, &p); err != nil || p.Code == "" || p.Title == "" {
			t.Errorf("%s %s: %s", test.method, test.target, a.body)
		}
	}
}
