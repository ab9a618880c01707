package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// strict decodes a document into what the client knows of it; a field that it
// does not know is a fault.
func strict(t *testing.T, body []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

func TestOutline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		tree, ids := f.family(t)
		list := func(q client.OutlineQuery) []perdure.TaskID {
			t.Helper()
			q.Tree = tree.ID
			rows, err := f.client.Outline(t.Context(), q)
			must(t, err)
			found := make([]perdure.TaskID, len(rows))
			for i := range rows {
				found[i] = rows[i].Task
			}
			return found
		}
		failed := []perdure.State{perdure.Failed}
		for _, test := range []struct {
			name string
			q    client.OutlineQuery
			want []perdure.TaskID
		}{
			{"root", client.OutlineQuery{}, ids[:1]},
			{"children", client.OutlineQuery{Parent: ids[0]}, ids[1:]},
			{"from a position", client.OutlineQuery{Parent: ids[0], From: 1}, ids[2:]},
			{"limit", client.OutlineQuery{Parent: ids[0], Limit: 1}, ids[1:2]},
			{"no children", client.OutlineQuery{Parent: ids[1]}, nil},
			{"by ID", client.OutlineQuery{Tasks: []perdure.TaskID{ids[2], 99999, ids[0]}}, []perdure.TaskID{ids[2], ids[0]}},
			{"state", client.OutlineQuery{States: failed}, ids[2:]},
			{"text", client.OutlineQuery{Text: "CHILD"}, ids[1:]},
			{"text and state", client.OutlineQuery{Text: "child", States: failed}, ids[2:]},
			{"behind", client.OutlineQuery{Text: "child", After: ids[1]}, ids[2:]},
			{"text that is an ID", client.OutlineQuery{Text: ids[1].String()}, ids[1:2]},
			{"signs mean themselves", client.OutlineQuery{Text: "%"}, nil},
			{"so do others", client.OutlineQuery{Text: `the_root`}, nil},
			{"and the last", client.OutlineQuery{Text: `\`}, nil},
		} {
			if got := list(test.q); !slices.Equal(got, test.want) {
				t.Errorf("%s: %v, want %v", test.name, got, test.want)
			}
		}
		got := f.send(t, http.MethodGet, "/v1/trees/"+string(tree.ID)+"/outline?parent="+ids[0].String(), "")
		golden(t, "tree_outline", got.body)
		var page struct {
			Rows []client.OutlineRow `json:"rows"`
		}
		strict(t, got.body, &page)
		for _, bad := range []string{"?parent=x", "?task=task-0001,x", "?from=-1", "?state=done", "?limit=0", "?page=2"} {
			if got := f.send(t, http.MethodGet, "/v1/trees/"+string(tree.ID)+"/outline"+bad,
				""); got.status != http.StatusBadRequest {
				t.Errorf("%s: status %d", bad, got.status)
			}
		}
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		tree, _ := f.family(t)
		got := f.send(t, http.MethodGet, "/v1/trees/"+string(tree.ID)+"/report", "")
		var r client.Report
		strict(t, got.body, &r)
		var completed, failed int64
		for _, s := range r.Timeline.Steps {
			completed, failed = completed+s.Completed, failed+s.Failed
		}
		if completed != 2 || failed != 1 || r.Timeline.Of != "calls" {
			t.Errorf("the timeline has %d completed and %d failed tasks of %s", completed, failed, r.Timeline.Of)
		}
		// Which tasks are slowest, and how many steps there are, is measured.
		r.Timeline, r.Slowest = client.ReportTimeline{}, nil
		raw, err := json.Marshal(r)
		must(t, err)
		golden(t, "tree_report", raw)
		if got := f.send(t, http.MethodGet, "/v1/trees/tree-00000000/report", ""); got.status != http.StatusNotFound {
			t.Errorf("unknown tree: status %d", got.status)
		}
	})
}

// A report does not grow with the tree, and counts all of it.
func TestReportFolds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[1], server.Config{})
	ctx := t.Context()
	prompts := make([]string, 1500)
	for i := range prompts {
		prompts[i] = fmt.Sprintf("part %d", i)
	}
	tree, ids := f.grow(t, perdure.PolicyPartial, prompts...)
	r, err := f.client.Report(ctx, tree.ID)
	must(t, err)
	if len(r.Outline) != 6 || r.Outline[4].Folded != 1496 || r.Outline[4].To != ids[1498] ||
		r.Outline[4].State != perdure.Queued {
		t.Errorf("%d rows: %+v", len(r.Outline), r.Outline[min(4, len(r.Outline)-1)])
	}
	// Every second one fails: nothing can be folded, so the rest is one row.
	for {
		leases, err := f.session.Claim(ctx, perdure.ClaimRequest{Max: 100})
		must(t, err)
		if len(leases) == 0 || leases[0].Task.Depth == 0 {
			break
		}
		for _, l := range leases {
			if l.Task.Position%2 == 0 {
				must(t, l.Complete(ctx, perdure.Result{Text: "done"}))
				continue
			}
			_, err := l.Fail(ctx, perdure.Failure{Kind: "model", Message: strings.Repeat("<x>", 400)})
			must(t, err)
		}
	}
	r, err = f.client.Report(ctx, tree.ID)
	must(t, err)
	rows := len(r.Outline)
	last := r.Outline[rows-1]
	if rows > 410 || last.State != "" || last.Folded != int64(1500-(rows-2)) || last.To != ids[1499] {
		t.Errorf("%d rows, the last is %+v", rows, last)
	}
	if r.FailuresTotal != 750 || len(r.Failures) != 100 || r.ErrorKinds[0].Tasks != 750 ||
		len(r.Failures[0].Error.Message) > 310 {
		t.Errorf("%d failures, %d listed, %+v", r.FailuresTotal, len(r.Failures), r.ErrorKinds)
	}
	if d := r.Depths; len(d) != 2 || d[1].Total != 1500 || d[1].Completed != 750 || d[1].Failed != 750 {
		t.Errorf("depths %+v", d)
	}
}

func TestNewestEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		other, _ := f.grow(t, perdure.PolicyPartial, "x")
		_, err := f.store.CancelTree(t.Context(), other.ID, "")
		must(t, err)
		tree, _ := f.family(t)
		all, err := f.client.EventPage(t.Context(), 0, tree.ID, 0)
		must(t, err)
		n := len(all.Events)
		for _, test := range []struct {
			after  int64
			newest int
			want   []perdure.Event
		}{
			{0, 3, all.Events[n-3:]},
			{0, 1000, all.Events},
			{all.Events[n-2].Seq, 3, all.Events[n-1:]},
			{all.Next, 3, nil},
		} {
			page, err := f.client.NewestEvents(t.Context(), test.after, tree.ID, test.newest)
			must(t, err)
			same := slices.EqualFunc(page.Events, test.want, func(a, b perdure.Event) bool { return a.Seq == b.Seq })
			if !same {
				t.Errorf("the newest %d behind %d: %v, want %v", test.newest, test.after, page.Events, test.want)
			}
		}
		if got := f.send(t, http.MethodGet, "/v1/events?newest=3", ""); got.status != http.StatusBadRequest {
			t.Errorf("without a tree: status %d", got.status)
		}
	})
}

// A status names what runs longest and the model it waits for.
func TestStatusNamesTheSlowest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		tree, ids := f.grow(t, perdure.PolicyPartial, "first", "second")
		s, err := f.client.Status(ctx, tree.ID)
		must(t, err)
		if s.Slowest != nil {
			t.Errorf("nothing runs, and the slowest is %+v", s.Slowest)
		}
		first := f.one(t)
		f.one(t)
		_, _, err = first.BeginCall(ctx, perdure.CallSpec{Model: "mock:slow", RequestHash: "h"})
		must(t, err)
		s, err = f.client.Status(ctx, tree.ID)
		must(t, err)
		if s.Slowest == nil || s.Slowest.Task != ids[0] || s.Slowest.Prompt != "first" || s.Slowest.Model != "mock:slow" ||
			s.Slowest.CallSince == nil {
			t.Errorf("the slowest is %+v", s.Slowest)
		}
	})
}
