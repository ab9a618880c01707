package loop_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// generator makes content for stores.
type generator struct {
	testing.TB
	r *rand.Rand
}

func (g *generator) ok(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// text returns one with characters that encoders escape.
func (g *generator) text() string {
	parts := []string{"a", "<b>", "&", "\u2028", "\"", "\\", "é", "\t", "\n", "𝄞", " "}
	var out strings.Builder
	for range 1 + g.r.IntN(12) {
		out.WriteString(parts[g.r.IntN(len(parts))])
	}
	return out.String()
}

// value returns a JSON value; some are longer than what is kept inline.
func (g *generator) value() json.RawMessage {
	switch g.r.IntN(7) {
	case 0:
		return json.RawMessage("null")
	case 1:
		return json.RawMessage(fmt.Sprintf("%d.50", g.r.IntN(1000)))
	case 2:
		return raw(g, []string{g.text(), g.text()})
	case 3:
		return raw(g, map[string]any{g.text(): g.text(), "n": []any{1, nil, true}})
	case 4:
		return raw(g, strings.Repeat(g.text(), perdure.MaxInlineBytes))
	}
	return raw(g, g.text())
}

// state changes a state in all ways.
func (g *generator) state(s *perdure.Store, ref perdure.StateRef) {
	g.Helper()
	ctx := g.Context()
	for i := range 4 + g.r.IntN(6) {
		_, err := s.SetVar(ctx, ref, perdure.VarSpec{Name: fmt.Sprintf("v%d", i%4), Value: g.value(),
			Description: g.text(), Cause: perdure.Cause{Source: "test", Reason: g.text()}})
		g.ok(err)
	}
	_, err := s.SaveCheckpoint(ctx, ref, "before", g.text())
	g.ok(err)
	g.ok(s.DeleteVar(ctx, ref, "v1", perdure.Cause{}))
	_, err = s.RenameVar(ctx, ref, "v2", "renamed", perdure.Cause{})
	g.ok(err)
	_, err = s.IncrVar(ctx, ref, "count", "5", perdure.Cause{})
	g.ok(err)
	if g.r.IntN(2) == 0 {
		_, err = s.Rollback(ctx, ref, "before", perdure.Cause{Reason: g.text()})
		g.ok(err)
	}
}

// trees creates trees with tasks in each state that an import keeps, and their states.
func (g *generator) trees(s *perdure.Store) {
	g.Helper()
	ctx := g.Context()
	session, err := s.OpenSession(ctx, "test")
	g.ok(err)
	for range 3 {
		tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Name: g.text(),
			Config: raw(g, map[string]any{g.text(): 1.5}), Limits: perdure.Limits{MaxNodes: 99},
			Root: perdure.TaskSpec{Prompt: g.text(), Metadata: raw(g, map[string]any{"own": g.text()})}})
		g.ok(err)
		leases, err := session.Claim(ctx, perdure.ClaimRequest{Max: 1})
		g.ok(err)
		kids, err := leases[0].Spawn(ctx, []perdure.TaskSpec{{Prompt: g.text(), Agent: "a"}, {Prompt: g.text(), Priority: 3},
			{Prompt: g.text(), MaxAttempts: 1, Context: perdure.ContextRef{Type: "slice", Source: g.text(), Length: 9}}})
		g.ok(err)
		g.state(s, perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID})
		g.state(s, perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: kids[0]})
		g.end(session)
	}
}

// end completes or fails the claimable tasks of the last tree.
func (g *generator) end(session *perdure.Session) {
	g.Helper()
	for {
		leases, err := session.Claim(g.Context(), perdure.ClaimRequest{Max: 1})
		g.ok(err)
		if len(leases) == 0 {
			return
		}
		if leases[0].Task.MaxAttempts == 1 {
			_, err = leases[0].Fail(g.Context(), perdure.Failure{Kind: "model", Message: g.text()})
		} else {
			err = leases[0].Complete(g.Context(), perdure.Result{Text: g.text(),
				Data: raw(g, map[string]string{"x": g.text()}), Partial: true})
		}
		g.ok(err)
	}
}

// fill makes a store with all that an export writes, and returns the folder of its loops.
func (g *generator) fill(s *perdure.Store) (dir string) {
	g.Helper()
	dir = g.TempDir()
	done, asking := scene{g, g.text() + "x"}.done(), scene{g, g.text() + "y"}.asking()
	saved(g, s, &done, dir)
	saved(g, s, &asking, dir)
	// Loops claim any task of the store, so trees come after them.
	g.trees(s)
	g.state(s, perdure.StateRef{Scope: perdure.ScopeGlobal})
	g.state(s, perdure.StateRef{Scope: perdure.ScopeSession, Session: "session/" + g.text()})
	g.state(s, perdure.StateRef{Scope: perdure.ScopeTemporary, Name: g.text()})
	return dir
}

func unpacked(t testing.TB, text string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(whole)
}

// kindsOf counts the files of an export by their kinds.
func kindsOf(t testing.TB, files map[string]string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for name, text := range files {
		if strings.HasSuffix(name, ".gz") {
			text = unpacked(t, text)
		}
		if strings.HasSuffix(name, ".jsonl") {
			text, _, _ = strings.Cut(text, "\n")
		}
		v, err := jsontree.Parse([]byte(text), jsontree.Options{})
		if err != nil {
			continue // reports and large values
		}
		count[schema.KindOf(name, v)]++
	}
	return count
}

// TestEveryKindComesBack: what is exported, imported into another store and exported again is
// the same bytes, for every kind of documents that the project publishes a schema of.
func TestEveryKindComesBack(t *testing.T) {
	t.Parallel()
	// Kinds that perdure import and export do not move, and their own way there and back.
	others := map[string]func(t *testing.T){
		"builder-state":      builderStateComesBack,
		"handoff-checkpoint": checkpointComesBack,
		"tool-call":          func(*testing.T) {}, // a log of hooks, which perdure only writes
		"rlm-log-line":       func(*testing.T) {}, // of a log that is replayed, and makes no tree
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g := &generator{t, rand.New(rand.NewPCG(seed, 1))}
			a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			dir := g.fill(a)
			folder, first := exported(t, a, dir)
			r, err := aiwgtree.Import(t.Context(), b, aiwgtree.ImportConfig{Path: folder, Strict: true})
			if err != nil || r.Refused {
				t.Fatalf("import: %+v, %v", r, err)
			}
			_, second := exported(t, b, dir)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second export differs (-first +second):\n%.4000s", diff)
			}
			count := kindsOf(t, first)
			for _, kind := range schema.Kinds() {
				if other, ok := others[kind]; ok {
					other(t)
				} else if count[kind] == 0 {
					t.Errorf("no exported file is a %s; add it to what fill makes", kind)
				}
			}
		})
	}
}

// peerRule is what a program that reads the files of loops requires of a document.
type peerRule struct {
	required []string          // the members that it must have, with the path of objects and lists
	types    map[string]string // of members that may be missing
}

// peerRules are those of the files in the folder of a loop.
func peerRules() map[string]peerRule {
	return map[string]peerRule{
		"checkpoints": {[]string{"checkpoint_id", "workflow_id", "created_at", "state.phase", "state.progress",
			"state.artifacts"}, map[string]string{"loop_id": "string", "trigger": "string", "workflow_type": "string",
			"state.iteration": "object", "state.artifacts[]": "object", "execution_config": "object"}},
		"iterations": {[]string{"iteration", "artifacts"}, map[string]string{"timestamp": "string",
			"quality_score": "number", "quality_delta": "number", "snapshot_path": "string", "artifacts[]": "object",
			"regression_detected": "boolean", "metrics_snapshot": "object"}},
		"analytics": {[]string{"loop_id", "iterations", "iterations[].loop_id", "iterations[].timestamp",
			"iterations[].quality_score"}, map[string]string{"iterations[].loop_id": "string",
			"iterations[].iteration_number": "number", "iterations[].timestamp": "string",
			"iterations[].quality_score": "number", "start_time": "string", "end_time": "string",
			"optimal_iteration": "number", "final_iteration": "number", "selected_iteration": "number",
			"total_tokens": "number", "total_cost_usd": "number", "total_time_ms": "number",
			"diminishing_returns_detected": "boolean", "diminishing_returns_iteration": "number",
			"quality_trajectory": "string"}},
	}
}

// membersAt returns the members at a path; nil for a missing one.
func membersAt(v *jsontree.Value, path string) []*jsontree.Value {
	list := []*jsontree.Value{v}
	for part := range strings.SplitSeq(path, ".") {
		name, each := strings.CutSuffix(part, "[]")
		var next []*jsontree.Value
		for _, v := range list {
			if v = v.Get(name); each {
				next = append(next, v.List()...)
			} else {
				next = append(next, v)
			}
		}
		list = next
	}
	return list
}

// check checks a document.
func (r *peerRule) check(t *testing.T, name, text string) {
	t.Helper()
	v, err := jsontree.Parse([]byte(text), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range r.required {
		for _, member := range membersAt(v, path) {
			if member.IsNull() {
				t.Errorf("%s has no %s", name, path)
			}
		}
	}
	for path, want := range r.types {
		for _, member := range membersAt(v, path) {
			if member != nil && member.Kind.Name() != want {
				t.Errorf("%s: %s is %s, want %s", name, path, member.Kind.Name(), want)
			}
		}
	}
}

// TestPeersAcceptLoops: the files of loops of this store have all that other programs require
// of them.
func TestPeersAcceptLoops(t *testing.T) {
	t.Parallel()
	g := &generator{t, rand.New(rand.NewPCG(9, 1))}
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	_, files := exported(t, s, g.fill(s))
	seen := make(map[string]int)
	for name, text := range files {
		place := strings.Split(name, "/")
		if place[0] != "ralph" || strings.HasSuffix(name, ".md") {
			continue
		}
		folder := place[len(place)-2]
		rule, ok := peerRules()[folder]
		if !ok {
			continue
		}
		seen[folder]++
		if strings.HasSuffix(name, ".gz") {
			text = unpacked(t, text)
		}
		rule.check(t, name, text)
		if strings.Contains(text, `"trigger": "post_iteration"`) {
			t.Errorf("%s has a trigger that others do not know", name)
		}
	}
	if len(seen) != len(peerRules()) {
		t.Errorf("checked %v", seen)
	}
}

// workOf is a checkpoint of a handoff.
const workOf = `{"phase":"implementation","completedSteps":[{"step":"Read <it>","filesCreated":[],` +
	`"filesModified":["a.go"],"timestamp":"2026-02-02T21:00:00Z"}],"pendingSteps":["Test it"],"currentStep":` +
	`{"description":"Write it","startedAt":"2026-02-02T21:05:00Z","partialWork":"half"},"decisions":[],"blockers":[],` +
	`"metadata":{"createdBy":"agent-a","lastUpdatedAt":"2026-02-02T21:06:00Z","reason":"manual","previousAgents":[]}}`

// builderStateComesBack reads a file, replaces its checkpoint with another one and puts the
// first back.
func builderStateComesBack(t *testing.T) {
	t.Helper()
	text := []byte(`{"version": 1.0, "activePrd":{"id": "p", "currentStory": "s1", "checkpoint": ` + workOf + `}, "own":[1e3]}`)
	doc, err := handoff.Parse("builder-state.json", text)
	if err != nil {
		t.Fatal(err)
	}
	place := doc.Places()[0]
	c, err := doc.Checkpoint(place)
	if err != nil {
		t.Fatal(err)
	}
	without, err := doc.With(place, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := without.With(place, c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := handoff.Parse("builder-state.json", first.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if c, err = again.Checkpoint(place); err != nil {
		t.Fatal(err)
	}
	second, err := again.With(place, c, time.Time{})
	if err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("builder-state: %s became %s, %v", first.Bytes(), second.Bytes(), err)
	}
}

// checkpointComesBack reads a checkpoint and writes it.
func checkpointComesBack(t *testing.T) {
	t.Helper()
	var c handoff.Checkpoint
	if err := json.Unmarshal([]byte(workOf), &c); err != nil {
		t.Fatal(err)
	}
	first, err := c.Compact()
	if err != nil {
		t.Fatal(err)
	}
	var again handoff.Checkpoint
	if err := json.Unmarshal(first, &again); err != nil {
		t.Fatal(err)
	}
	if second, err := again.Compact(); err != nil || !bytes.Equal(first, second) {
		t.Errorf("handoff-checkpoint: %s became %s, %v", first, second, err)
	}
}
