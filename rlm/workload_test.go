package rlm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// The tasks and calls that are planned before the first call are those that are made.
func TestPlannedWork(t *testing.T) {
	t.Parallel()
	several := []file{{"a.txt", numbered(40)}, {"b.txt", numbered(400)}, {"c.txt", ""}, {"d.txt", numbered(3)}}
	one := []file{{"a.txt", numbered(300)}}
	split := func(more map[string]any) map[string]any {
		cfg := map[string]any{"model": "m", "planner": "split", "chunk_tokens": 150, "overlap_tokens": 0}
		for k, v := range more {
			cfg[k] = v
		}
		return cfg
	}
	schema := map[string]any{"type": "object"}
	for _, test := range []struct {
		name  string
		files []file
		cfg   map[string]any
	}{
		{"one call", nil, map[string]any{"model": "m"}},
		{"flat", one, split(map[string]any{"max_children": 50, "merge": "concatenate"})},
		{"flat, summarized", one, split(map[string]any{"max_children": 50, "merge": "summarize"})},
		{"levels", one, split(map[string]any{"max_children": 4, "merge": "concatenate"})},
		{"levels, merged", one, split(map[string]any{"max_children": 3, "merge": "merge"})},
		{"sequential", one, split(map[string]any{"strategy": "sequential", "merge": "concatenate"})},
		{"several files", several, split(map[string]any{"merge": "concatenate"})},
		{"batch", several, split(map[string]any{"batch": true, "merge": "concatenate"})},
		{"vote", one, map[string]any{"model": "m", "merge": "vote"}},
		{"samples", one, map[string]any{"model": "m", "samples": 7, "merge": "concatenate"}},
		{"best", one, split(map[string]any{"merge": "best-of-n", "judge": "m"})},
		{"map-reduce", one, split(map[string]any{"strategy": "map-reduce", "fan_in": 3, "max_children": 50,
			"merge": "concatenate"})},
		{"map-reduce, unequal", one, split(map[string]any{"strategy": "map-reduce", "fan_in": 2, "max_children": 50,
			"merge": "concatenate"})},
		{"structured", one, split(map[string]any{"merge": "concatenate", "max_children": 50, "schema": schema})},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			reply := "replies: [{text: '{{hash}}', repeat: -1}]"
			if test.cfg["schema"] != nil {
				reply = "replies: [{text: '{}', repeat: -1}]"
			}
			if test.name == "best" {
				reply = `replies: [{text: '{"score": 7}', repeat: -1}]`
			}
			b := newBench(t, models{"m": script(t, reply)})
			context := ""
			if test.files != nil {
				context = b.put(test.files...)
			}
			tree := b.launch("count the lines", context, test.cfg)
			before, err := b.store.Progress(b.Context(), tree.ID)
			b.ok(err)
			work := b.exec.PlannedWork(b.Context(), t, "count the lines", context, test.cfg)
			b.finish(tree.ID, 4)
			after, err := b.store.Progress(b.Context(), tree.ID)
			b.ok(err)
			if after.State != perdure.Completed || after.Percent != 100 {
				t.Fatalf("%s, %v %%", after.State, after.Percent)
			}
			if before.Planned == nil || *before.Planned != after.Total {
				t.Errorf("planned %v tasks, made %d", *before.Planned, after.Total)
			}
			if got, want := callsOf(work.Levels), callsBy(after.Costs); got != want {
				t.Errorf("planned calls by depth %s, made %s", got, want)
			}
		})
	}
}

func callsOf(levels []perdure.WorkLevel) string {
	n := make([]int64, 8)
	for i, l := range levels {
		n[i] += l.Calls
	}
	return strings.Trim(fmt.Sprint(n), "[]")
}

func callsBy(costs []perdure.CostLine) string {
	n := make([]int64, 8)
	for _, l := range costs {
		n[l.Depth] += l.Usage.Calls
	}
	return strings.Trim(fmt.Sprint(n), "[]")
}

// While the number of tasks is not known, no share and no time is shown.
func TestUnknownWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"m": script(t, `replies: [{text: 'no code', repeat: -1}]`)})
	context := b.put(file{"a.txt", numbered(300)})
	for _, planner := range []string{rlm.PlannerSearch, rlm.PlannerModel} {
		tree := b.launch("count the lines", context, map[string]any{"model": "m", "planner": planner})
		p, err := b.store.Progress(b.Context(), tree.ID)
		b.ok(err)
		if p.Planned != nil || p.ETASeconds != nil || p.Percent != 0 {
			t.Errorf("%s: planned %v, ETA %v, %v %%", planner, p.Planned, p.ETASeconds, p.Percent)
		}
	}
}

// A plan of the model makes the number of tasks known.
func TestPlannedWorkOfPlan(t *testing.T) {
	t.Parallel()
	plan := `{"strategy":"parallel","merge":"concatenate","tasks":[{"id":"a","prompt":"first"},{"id":"b","prompt":"second"},` +
		`{"id":"c","prompt":"third"}]}`
	b := newBench(t, models{"m": script(t, `replies: [{text: '`+plan+`'}, {text: 'x', repeat: -1}]`)})
	tree := b.launch("count the lines", "", map[string]any{"model": "m", "planner": "model"})
	b.finish(tree.ID, 1)
	p, err := b.store.Progress(b.Context(), tree.ID)
	b.ok(err)
	if p.State != perdure.Completed || p.Total != 4 || p.Planned == nil || *p.Planned != 4 {
		t.Errorf("%s, %d tasks, planned %v", p.State, p.Total, p.Planned)
	}
}
