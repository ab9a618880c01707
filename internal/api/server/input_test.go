package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// Malformed requests get a 4xx that says what is wrong.
func TestBadInput(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, target, body string
		status                     int
		want                       string // in the detail
	}{
		{"null", "POST", "/v1/trees", `null`, 400, "not a JSON object"},
		{"array", "POST", "/v1/trees", `[]`, 400, "not a JSON object"},
		{"string", "POST", "/v1/trees", `"x"`, 400, "not a JSON object"},
		{"unknown field", "POST", "/v1/trees", `{"promt":"x"}`, 400, "body:1:2: field promt: "},
		{"wrong type", "POST", "/v1/trees", `{"prompt":7}`, 400, "body:1:11: field prompt: want a string, found a number"},
		{"cut", "POST", "/v1/trees", `{"prompt":"x`, 400, "body:1:11: "},
		{"cut character", "POST", "/v1/trees", "{\"prompt\":\"\xe2\x82\"}", 400, "body:1:12: the byte 0xe2 is not UTF-8"},
		{"syntax", "POST", "/v1/trees", `{"prompt":"x",}`, 400, "body:1:15: "},
		{"trailing", "POST", "/v1/trees", `{"prompt":"x"} {}`, 400, "body:1:16: "},
		{"deep", "POST", "/v1/trees", `{"config":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 400,
			"nested deeper"},
		{"large", "POST", "/v1/trees", `{"prompt":"` + strings.Repeat("x", 100_000) + `"}`, 413,
			"JSON body is larger than the limit of 65536 bytes"},
		{"zero byte", "POST", "/v1/trees", `{"prompt":"a\u0000b"}`, 400, "not valid UTF-8 text"},
		{"config no object", "POST", "/v1/trees", `{"config":[1]}`, 400, `"config" is not a JSON object`},
		{"foreign owner", "POST", "/v1/trees", `{"owner":"sess-x"}`, 400, `owner "sess-x"`},
		{"unknown context", "POST", "/v1/trees", `{"context_id":"ctx-0"}`, 404, `no context "ctx-0"`},
		{"parameter where none is", "POST", "/v1/trees?x=1", `{}`, 400, `unknown parameter "x"`},
		{"tree ID", "GET", "/v1/trees/tree-XYZ", "", 400, `"tree-XYZ" is not a tree ID`},
		{"no such tree", "GET", "/v1/trees/tree-00000000", "", 404, `no tree "tree-00000000"`},
		{"encoded path", "GET", "/v1/trees/..%2f..%2fetc", "", 400, "is not a tree ID"},
		{"wait", "GET", "/v1/trees/tree-00000000?wait=soon", "", 400, `parameter "wait" is "soon"`},
		{"negative wait", "GET", "/v1/trees/tree-00000000?wait=-1s", "", 400, `parameter "wait" is "-1s"`},
		{"limit", "GET", "/v1/trees?limit=0", "", 400, `parameter "limit" is "0", expected a number from 1 to 1000`},
		{"large limit", "GET", "/v1/trees?limit=1001", "", 400, `parameter "limit"`},
		{"flag", "GET", "/v1/trees?active=maybe", "", 400, `parameter "active" is "maybe"`},
		{"twice", "GET", "/v1/trees?kind=a&kind=b", "", 400, `parameter "kind" appears 2 times`},
		{"malformed query", "GET", "/v1/trees?kind=%zz", "", 400, "query of the URL is malformed"},
		{"cursor", "GET", "/v1/trees?before=tree-00000000", "", 404, `no tree "tree-00000000"`},
		{"tasks of no tree", "GET", "/v1/trees/tree-00000000/tasks", "", 404, `no tree`},
		{"state", "GET", "/v1/trees/tree-00000000/tasks?state=done", "", 400, `the unknown state "done"`},
		{"parent", "GET", "/v1/trees/tree-00000000/tasks?parent=7", "", 400, `"7" is not a task ID`},
		{"task ID", "GET", "/v1/tasks/1", "", 400, `"1" is not a task ID`},
		{"no such task", "GET", "/v1/tasks/task-0001", "", 404, `no task "task-0001"`},
		{"calls of no task", "GET", "/v1/tasks/task-0001/calls", "", 404, `no task "task-0001"`},
		{"node ID", "GET", "/v1/tasks/task-0001?node=1", "", 400, `"task-0001" is not a node ID`},
		{"no such node", "GET", "/v1/tasks/task-00000000?node=1", "", 404, "no task"},
		{"cancel no task", "POST", "/v1/tasks/task-0001/cancel", "", 404, `no task "task-0001"`},
		{"retry no task", "POST", "/v1/tasks/task-0001/retry", "", 404, `no task "task-0001"`},
		{"retry with a body", "POST", "/v1/tasks/task-0001/retry", `{"x":1}`, 400, "field x: "},
		{"resume no tree", "POST", "/v1/trees/tree-00000000/resume", "", 404, `no tree`},
		{"after", "GET", "/v1/events?after=-1", "", 400, `parameter "after" is "-1"`},
		{"events of no tree", "GET", "/v1/events?tree=tree-00000000", "", 404, `no tree`},
		{"no context", "GET", "/v1/contexts/ctx-00", "", 404, `no context "ctx-00"`},
		{"stream is not a tar", "POST", "/v1/contexts", "hello", 400, "bad context stream"},
		{"empty stream", "POST", "/v1/contexts", "", 400, "bad context stream"},
		{"cut stream", "POST", "/v1/contexts", "CUT", 400, "bad context stream"},
		{"large stream", "POST", "/v1/contexts", "LARGE", 413, "the limit of 65536 bytes"},
		{"no work", "GET", "/v1/handoff", "", 400, "a place and a task"},
		{"work with more", "GET", "/v1/handoff?place=a&task=b&more=c", "", 400, `unknown parameter "more"`},
		{"handoffs before", "GET", "/v1/handoffs?before=7", "", 400, `"7" is not of the form handoff-`},
		{"entries of no ledger", "GET", "/v1/handoffs/handoff-1/entries", "", 400, `"handoff-1" is not of the form`},
		{"entries after", "GET", "/v1/handoffs/handoff-00000001/entries?after=-1", "", 400, `parameter "after" is "-1"`},
		{"entry of a number", "POST", "/v1/handoff/entries",
			`{"place":"a","task":"b","entries":[{"kind":"step","data":7}]}`, 400, "the data of entry 1"},
		{"version", "POST", "/v1/handoff/entries", `{"place":"a","task":"b","if_version":"1"}`, 400,
			"body:1:38: field if_version: "},
		{"claim for years", "POST", "/v1/handoff/claim", `{"place":"a","task":"b","ttl_seconds":1e9}`, 400,
			`field "ttl_seconds" is 1e+09`},
		{"claim of nothing", "POST", "/v1/handoff/claim", `{"place":"a","task":"b"}`, 404, "no work"},
		{"release without a token", "POST", "/v1/handoff/release", `{"place":"a","task":"b"}`, 400, "no token"},
		{"gc", "POST", "/v1/gc", `{"completed":-1}`, 400, `field "completed" is -1`},
		{"gc forever", "POST", "/v1/gc", `{"failed":1e300}`, 400, `field "failed" is 1e+300`},
	}
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	for _, w := range ways() {
		f := newFixture(t, s, w, server.Config{Limits: server.Limits{JSONBytes: 64 << 10, ContextBytes: 64 << 10}})
		for _, test := range tests {
			t.Run(w.name+"/"+test.name, func(t *testing.T) {
				body := test.body
				switch body {
				case "CUT":
					body = string(upload(t, map[string]string{"a.txt": strings.Repeat("x", 10_000)})[:5000])
				case "LARGE":
					body = string(upload(t, map[string]string{"a.txt": strings.Repeat("x", 1<<20)}))
				}
				a := f.send(t, test.method, test.target, body)
				var p struct{ Detail, Code, Hint string }
				if err := json.Unmarshal(a.body, &p); err != nil || a.status != test.status ||
					!strings.Contains(p.Detail, test.want) {
					t.Errorf("status %d, want %d with %q: %s", a.status, test.status, test.want, a.body)
				}
			})
		}
		// Nothing of a refused request is stored, and other clients are not affected.
		trees, err := f.client.Trees(t.Context(), perdure.TreeFilter{})
		if err != nil || len(trees.Trees) != 0 {
			t.Errorf("trees: %v, %v", trees.Trees, err)
		}
	}
	blobs, err := filepath.Glob(filepath.Join(s.Dir(), "blobs", "*", "*"))
	if err != nil || len(blobs) != 0 {
		t.Errorf("blobs left behind: %v, %v", blobs, err)
	}
}

// An upload that its sender breaks off leaves nothing, and the sender gets its
// own error back.
func TestBrokenUpload(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		errDisk := errors.New("cannot read the file")
		_, err := f.client.PutContext(t.Context(), func(w io.Writer) error {
			if _, err := w.Write(upload(t, map[string]string{"a.txt": strings.Repeat("x", 300_000)})[:200_000]); err != nil {
				return err
			}
			return errDisk
		})
		if !errors.Is(err, errDisk) {
			t.Errorf("PutContext = %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err = f.client.PutContext(ctx, func(w io.Writer) error {
			cancel()
			for {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return err
				}
			}
		})
		if !errors.Is(err, perdure.ErrCanceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("PutContext = %v", err)
		}
		must(t, f.client.Ping(t.Context()))
	})
}

// An upload that is refused half-way ends there, with the reason.
func TestRefusedUpload(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w,
			server.Config{Limits: server.Limits{ContextBytes: 1 << 20}})
		_, err := f.client.PutContext(t.Context(), func(w io.Writer) error {
			return stream(w, map[string]string{"a.txt": strings.Repeat("x", 100<<20)})
		})
		if !errors.Is(err, perdure.ErrInvalid) || !strings.Contains(err.Error(), "limit of 1048576 bytes") {
			t.Errorf("%s: PutContext = %v", w.name, err)
		}
	}
}

// A thousand requests at once, some of them bad, one store.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w, server.Config{})
			f.family(t)
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() {
					if err := f.anything(t, i); err != nil {
						t.Errorf("request %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			trees, err := f.client.Trees(t.Context(), perdure.TreeFilter{Active: true, Limit: 1000})
			if err != nil || len(trees.Trees) != 250 {
				t.Errorf("%d trees, %v", len(trees.Trees), err)
			}
		})
	}
}

// anything does one of several things that must work.
func (f *fixture) anything(t *testing.T, i int) error {
	ctx := t.Context()
	switch i % 4 {
	case 0:
		key := fmt.Sprint(i / 8)
		tree, err := f.client.CreateTree(ctx, client.TreeRequest{Prompt: key, IdempotencyKey: key})
		if err != nil {
			return err
		}
		_, err = f.client.Status(ctx, tree.ID)
		if i%8 == 0 { // the key of the next one would be the same
			_, err = f.client.CreateTree(ctx, client.TreeRequest{Prompt: fmt.Sprint(i)})
		}
		return err
	case 1:
		_, err := f.client.Trees(ctx, perdure.TreeFilter{Limit: 5})
		return err
	case 2:
		_, err := f.client.EventPage(ctx, int64(i), "", 5)
		return err
	default:
		_, err := f.client.Task(ctx, perdure.TaskID(1_000_000+i))
		if !errors.Is(err, perdure.ErrNotFound) {
			return fmt.Errorf("task that is not there: %w", err)
		}
		return nil
	}
}

// FuzzRequest: no request makes the server panic, answer 5xx, or answer
// something else than JSON.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"POST", "/v1/trees", `{"kind":"run","name":"n","prompt":"p","context_id":"","config":{"a":1},"owner":""}`},
		{"POST", "/v1/trees", `null`},
		{"POST", "/v1/trees/tree-00000000/cancel", `{"reason":"r"}`},
		{"POST", "/v1/tasks/task-0001/retry", `{}`},
		{"POST", "/v1/gc", `{"completed":1.5,"failed":0,"include_failed":true,"dry_run":true}`},
		{"POST", "/v1/contexts", string(upload(f, map[string]string{"a.txt": "x"}))},
		{"GET", "/v1/trees?limit=1&active=1&kind=run&before=tree-00000000", ""},
		{"GET", "/v1/trees/tree-00000000/tasks?state=failed,queued&parent=task-0001&after=task-0002&brief=1", ""},
		{"GET", "/v1/tasks/task-b15de499?node=1", ""},
		{"GET", "/v1/events?after=1&tree=tree-00000000", ""},
		{"PUT", "/v1/variables/a?scope=global",
			`{"value":{"x":[1.5,null]},"type":"json","ttl_seconds":60,"read_only":false,"if_version":"none"}`},
		{"PUT", "/v1/variables/Final?session=s",
			`{"value":"","type":"file_path","source":"s","reason":"r","cancel_rest":true}`},
		{"POST", "/v1/variables/n/increment?name=t", `{"by":-2.5e3}`},
		{"POST", "/v1/variables/l/append?scope=session&session=s", `{"value":0}`},
		{"POST", "/v1/variables/l/rename?session=s", `{"to":"m"}`},
		{"DELETE", "/v1/variables/a?scope=global", `{"if_version":"mut-00000001"}`},
		{"GET", "/v1/history?scope=global&variable=a&before=mut-00000009&limit=2", ""},
		{"GET", "/v1/checkpoints/diff?scope=global&from=initial_state&to=mut-00000001", ""},
		{"POST", "/v1/checkpoints/rollback?scope=global", `{"to":"initial_state"}`},
		{"HEAD", "/v1/check", ""},
		{"PATCH", "//v1/%2e%2e/trees", ""},
	} {
		f.Add(seed.method, seed.target, []byte(seed.body))
	}
	s := testdb.Open(f, perdure.Config{Dir: f.TempDir()})
	h := server.New(server.Config{Store: s, Launcher: storeLauncher{s},
		Limits: server.Limits{JSONBytes: 4096, ContextBytes: 1 << 16}})
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		if !strings.HasPrefix(target, "/") || strings.Contains(target, "wait=") {
			return
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://perdure"+target, bytes.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Content-Type", "application/json")
		if req.URL.Path == "/v1/contexts" {
			req.Header.Set("Content-Type", "application/x-tar")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if w.Code >= 300 && w.Code < 400 {
			return // the mux cleans the path
		}
		var doc map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil && method != http.MethodHead {
			t.Fatalf("status %d, not JSON: %v: %s", w.Code, err, w.Body)
		}
		if w.Code >= 400 && method != http.MethodHead && (doc["code"] == "" || doc["detail"] == "") {
			t.Fatalf("status %d says nothing: %s", w.Code, w.Body)
		}
	})
}
