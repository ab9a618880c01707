package server_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// grow makes a tree whose root waits for children of the given prompts.
func (f *fixture) grow(t testing.TB, policy perdure.Policy, prompts ...string) (perdure.Tree, []perdure.TaskID) {
	t.Helper()
	tree, err := f.store.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run",
		Root: perdure.TaskSpec{Prompt: "the root", Policy: policy, MaxAttempts: 1}})
	must(t, err)
	specs := make([]perdure.TaskSpec, len(prompts))
	for i, prompt := range prompts {
		specs[i] = perdure.TaskSpec{Prompt: prompt, MaxAttempts: 1}
	}
	ids, err := f.one(t).Spawn(t.Context(), specs)
	must(t, err)
	return tree, ids
}

func missingIDs(r *client.Result) []perdure.TaskID {
	var ids []perdure.TaskID
	for _, m := range r.Missing {
		ids = append(ids, m.Task)
	}
	return ids
}

// Missing are leaves: tasks between them and the root only repeat the news.
func TestResultMissing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		tree, ids := f.grow(t, perdure.PolicyPartial, "splits", "waits")
		inner := f.one(t)
		grandchildren, err := inner.Spawn(ctx, []perdure.TaskSpec{{Prompt: "done"}, {Prompt: strings.Repeat("ä", 300)}})
		must(t, err)
		must(t, f.one(t).Complete(ctx, perdure.Result{Text: "done"}))
		_, err = f.store.CancelTree(ctx, tree.ID, "enough")
		must(t, err)
		res, err := f.client.Result(ctx, tree.ID)
		must(t, err)
		want := []perdure.TaskID{ids[1], grandchildren[1]}
		if got := missingIDs(&res); !slices.Equal(got, want) || res.MissingTotal != 2 {
			t.Errorf("missing %v of %d, want %v", got, res.MissingTotal, want)
		}
		long := res.Missing[1]
		if n := strings.Count(long.Prompt, "ä"); n > 200 || n < 90 || !strings.HasSuffix(long.Prompt, "…") &&
			len(long.Prompt) > 400 {
			t.Errorf("prompt of %d letters: %s", n, long.Prompt)
		}
		if long.Error.Kind != "cancelled" || res.Text() != "" || string(res.Answer) != "null" ||
			res.State != perdure.Cancelled {
			t.Errorf("result %+v", res)
		}
	})
}

// The list is bounded, the number is not.
func TestResultManyMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[1], server.Config{})
	const children = 1100
	tree, ids := f.grow(t, perdure.PolicyPartial, slices.Repeat([]string{"x"}, children)...)
	_, err := f.store.CancelTree(t.Context(), tree.ID, "")
	must(t, err)
	res, err := f.client.Result(t.Context(), tree.ID)
	if err != nil || !slices.Equal(missingIDs(&res), ids[:1000]) || res.MissingTotal != children {
		t.Errorf("missing %d of %d, %v", len(res.Missing), res.MissingTotal, err)
	}
}

// The executor's details of a result are returned as far as they have the known
// form.
func TestResultDetails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[1], server.Config{})
	half := 50.5
	tests := []struct {
		data string
		want client.Details
	}{
		{`{"notes":["n"],"votes":[{"answer":"a","task_id":"task-0002","count":2,"key":"k"}],"abstained":1}`,
			client.Details{Notes: []string{"n"}, Votes: []client.Vote{{Answer: "a", Task: 2, Count: 2}}, Abstained: 1}},
		{`{"scores":[{"task_id":"task-0003","score":50.5,"critique":"c","chosen":true},{"task_id":"task-0004",` +
			`"score":null,"note":"n"}]}`,
			client.Details{Scores: []client.Score{{Task: 3, Score: &half, Critique: "c", Chosen: true}, {Task: 4, Note: "n"}}}},
		{`{"gate":{"score":50.5,"min_score":80,"passed":false,"rounds":[{"round":1,"model":"m","score":50.5,` +
			`"chosen":true}]}}`,
			client.Details{Gate: &client.Gate{Score: &half, MinScore: 80,
				Rounds: []client.Round{{Round: 1, Model: "m", Score: &half, Chosen: true}}}}},
		{`{"notes":"text","votes":{"a":1},"abstained":"none","scores":[1],"gate":[],"left_out":3}`, client.Details{}},
		{`{}`, client.Details{}},
	}
	for _, tt := range tests {
		l := f.talker(t)
		must(t, l.Complete(t.Context(), perdure.Result{Text: "x", Data: json.RawMessage(tt.data)}))
		res, err := f.client.Result(t.Context(), l.Tree.ID)
		if diff := cmp.Diff(tt.want, res.Details); diff != "" || err != nil {
			t.Errorf("%s: %v, %s", tt.data, err, diff)
		}
	}
}

// A structured result is the answer; a tree that fails says why.
func TestResultKinds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		l := f.talker(t)
		if _, err := f.client.Result(ctx, l.Tree.ID); !errors.Is(err, perdure.ErrConflict) || perdure.HintOf(err) == "" {
			t.Errorf("result of a running tree: %v", err)
		}
		must(t, l.Complete(ctx, perdure.Result{Text: "shown to people",
			Data: json.RawMessage(`{"structured":{"n":[1,2]},"citations":null}`)}))
		res, err := f.client.Result(ctx, l.Tree.ID)
		if err != nil || string(res.Answer) != `{"n":[1,2]}` || res.Citations == nil || len(res.Citations) != 0 ||
			res.Missing == nil {
			t.Errorf("structured: %+v, %v", res, err)
		}
		failing := f.talker(t)
		_, err = failing.Fail(ctx, perdure.Failure{Kind: "model", Message: "it is gone"})
		must(t, err)
		res, err = f.client.Result(ctx, failing.Tree.ID)
		if err != nil || res.State != perdure.Failed || res.Error == nil || res.Error.Message != "it is gone" ||
			len(res.Missing) != 1 {
			t.Errorf("failed: %+v, %v", res, err)
		}
	})
}
