package perdure_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func TestPlacementSatisfies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		offer, require perdure.Placement
		want           bool
	}{
		{"nothing required", perdure.Placement{Host: "a", Workspace: "/w", Tags: []string{"gpu"}}, perdure.Placement{}, true},
		{"same host", perdure.Placement{Host: "a"}, perdure.Placement{Host: "a"}, true},
		{"another host", perdure.Placement{Host: "b"}, perdure.Placement{Host: "a"}, false},
		{"host not named", perdure.Placement{}, perdure.Placement{Host: "a"}, false},
		{"same workspace", perdure.Placement{Workspace: "/w"}, perdure.Placement{Workspace: "/w"}, true},
		{"another workspace", perdure.Placement{Workspace: "/v"}, perdure.Placement{Workspace: "/w"}, false},
		{"any workspace", perdure.Placement{}, perdure.Placement{Workspace: "/w"}, true},
		{"all tags", perdure.Placement{Tags: []string{"a", "b", "c"}}, perdure.Placement{Tags: []string{"c", "a"}}, true},
		{"a tag missing", perdure.Placement{Tags: []string{"a"}}, perdure.Placement{Tags: []string{"a", "b"}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.offer.Satisfies(&test.require); got != test.want {
				t.Errorf("%+v satisfies %+v: %t, want %t", test.offer, test.require, got, test.want)
			}
		})
	}
}

// Two processes share a store. Tasks of a placed tree are claimed only where the
// placement is satisfied, also after the process that ran them died, and also in
// a claim that names the tree.
func TestClaimPlacement(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		ctx := t.Context()
		plain := testdb.Open(t, cfg)
		cfg.Placement = perdure.Placement{Host: "a", Tags: []string{"gpu", "large"}}
		placed := testdb.Open(t, cfg)
		elsewhere, here, next := openSession(t, plain), openSession(t, placed), openSession(t, placed)
		tree := createTree(t, plain,
			perdure.TreeSpec{Placement: perdure.Placement{Host: "a", Workspace: "/w", Tags: []string{"gpu"}}})
		submit(t, plain, tree.Root, 2)
		refused := func(when string) {
			t.Helper()
			for _, trees := range [][]perdure.TreeID{nil, {tree.ID}} {
				if got, err := elsewhere.Claim(ctx, perdure.ClaimRequest{Max: 5, Trees: trees}); err != nil || len(got) != 0 {
					t.Errorf("%s: another host claimed %d tasks, %v", when, len(got), err)
				}
			}
			_, err := plain.Recover(ctx, tree.ID, elsewhere)
			wantCode(t, when+": resume on another host", err, perdure.CodeConflict)
			if err != nil && !strings.Contains(err.Error(), `host "a"`) {
				t.Errorf("%s: error does not name the host: %v", when, err)
			}
		}
		refused("ready")
		if got := claim(t, here, 1); len(got) != 1 {
			t.Fatalf("claimed %d tasks on the required host, want 1", len(got))
		}
		if err := here.Die(ctx); err != nil {
			t.Fatal(err)
		}
		refused("after the death of its process")
		if got := claim(t, next, 5); len(got) != 3 {
			t.Errorf("claimed %d tasks on the required host, want 3", len(got))
		}
	})
}

func TestPlacementInvalid(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	for name, p := range map[string]perdure.Placement{
		"host":      {Host: strings.Repeat("h", 5000)},
		"workspace": {Workspace: "a\x00b"},
		"tags":      {Tags: []string{"\xff"}},
		"empty tag": {Tags: []string{"a", ""}},
	} {
		_, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Placement: p})
		if !errors.Is(err, perdure.ErrInvalid) {
			t.Errorf("%s: create tree: %v, want an error with code invalid", name, err)
		}
		if _, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir(), Placement: p}); !errors.Is(err,
			perdure.ErrInvalid) {
			t.Errorf("%s: open store: %v, want an error with code invalid", name, err)
		}
	}
}
