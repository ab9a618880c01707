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

// TestReplLongTasks solves each kind of question with each filter, through an endpoint: the
// answer is right, and so is the number of requests.
func TestReplLongTasks(t *testing.T) {
	t.Parallel()
	for i, q := range longtask.Questions(7) {
		t.Run(fmt.Sprintf("%s %d", q.Kind, i%4), func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			truth, err := longtask.Generate(&text, longtask.Spec{Seed: 7, Bytes: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			server := &longtask.Server{Question: q}
			b := newBench(t, longModels(t, server))
			config := replConfig("openai:root")
			config["sub_model"] = "openai:sub"
			tree := b.launch(q.String(), b.put(file{"a.txt", text.String()}), config)
			got, root := b.finish(tree.ID, 4)
			want, lines := truth.Answer(q)
			if got.State != perdure.Completed || root.Result != want {
				t.Errorf("tree is %s with %q, want %q: %+v", got.State, root.Result, want, root.Error)
			}
			subs, _ := server.Totals("sub")
			roots, _ := server.Totals("root")
			if int64(subs) != longtask.Calls(lines) || roots != 4 {
				t.Errorf("%d requests of the root and %d of sub-calls, want 4 and %d", roots, subs, longtask.Calls(lines))
			}
			if n := server.Repeated(); n != 0 {
				t.Errorf("%d requests were repeated", n)
			}
		})
	}
}
