package rlm_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/longtask"
	"github.com/perdure/perdure/model/openai"
)

// longModels returns the two models of a server, over sockets.
func longModels(t *testing.T, s *longtask.Server) models {
	t.Helper()
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	list := models{}
	for _, name := range []string{"root", "sub"} {
		m, err := openai.New(openai.Config{Model: name, BaseURL: served.URL + "/v1", HTTPClient: served.Client()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		list["openai:"+name] = m
	}
	return list
}

// TestReplLongTasks solves each kind of question, with one of the filters, through an endpoint:
// the answer is right, and so is the number of requests.
func TestReplLongTasks(t *testing.T) {
	t.Parallel()
	for i, q := range longtask.Questions(7) {
		if i%4 == i/4%4 {
			t.Run(fmt.Sprintf("%s %d", q.Kind, i%4), func(t *testing.T) {
				t.Parallel()
				longTask(t, &longtask.Server{Question: q})
			})
		}
	}
}

// TestReplNestedLongTasks is TestReplLongTasks with code that divides the lines among REPLs of
// their own.
func TestReplNestedLongTasks(t *testing.T) {
	t.Parallel()
	for i, q := range longtask.Questions(8) {
		if i == 3 || i == 12 {
			t.Run(fmt.Sprintf("%s %d", q.Kind, i%4), func(t *testing.T) {
				t.Parallel()
				longTask(t, &longtask.Server{Question: q, Nested: true})
			})
		}
	}
}

func longTask(t *testing.T, server *longtask.Server) {
	t.Helper()
	var text bytes.Buffer
	truth, err := longtask.Generate(&text, longtask.Spec{Seed: 7, Bytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, longModels(t, server))
	config := replConfig("openai:root")
	config["sub_model"] = "openai:sub"
	tree := b.launch(server.Question.String(), b.put(file{"a.txt", text.String()}), config)
	got, root := b.finish(tree.ID, 4)
	want, lines := truth.Answer(server.Question)
	if got.State != perdure.Completed || root.Result != want {
		t.Errorf("tree is %s with %q, want %q: %+v", got.State, root.Result, want, root.Error)
	}
	calls := longtask.Calls(lines)
	if server.Nested {
		calls = longtask.NestedCalls(lines)
	}
	roots, _ := server.Totals("root")
	subs, _ := server.Totals("sub")
	if int64(subs) != calls || roots != longtask.Turns {
		t.Errorf("%d requests of the root and %d of sub-calls, want %d and %d", roots, subs, longtask.Turns, calls)
	}
	if n := server.Repeated(); n != 0 {
		t.Errorf("%d requests were repeated", n)
	}
}
