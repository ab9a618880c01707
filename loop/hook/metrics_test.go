package hook_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/loop/hook"
)

func sleeps(d time.Duration) hook.Func {
	return func(context.Context, hook.Message) (hook.Reply, error) {
		<-time.After(d)
		return hook.NewReply(hook.Allow, ""), nil
	}
}

// Quantiles are never too low and at most 1/16 too high.
func TestStats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.SliceOfN(rapid.Int64Range(0, 3_600_000_000), 1, 300).Draw(t, "micros")
		var m hook.Metrics
		want := hook.Stats{Hook: hook.PostIteration, Count: int64(len(micros))}
		for _, us := range micros {
			d := time.Duration(us) * time.Microsecond
			m.Add(hook.Record{Hook: hook.PostIteration, Duration: d})
			want.Total += d
			want.Max = max(want.Max, d)
		}
		m.Add(hook.Record{Hook: hook.LogRotated, Duration: time.Hour})
		all := m.Stats()
		if len(all) != 1 {
			t.Fatalf("%d rows", len(all))
		}
		got := all[0]
		slices.Sort(micros)
		for q, p := range map[float64]time.Duration{0.95: got.P95, 0.99: got.P99} {
			rank := int(float64(len(micros))*q+0.999999) - 1
			exact := time.Duration(micros[rank]) * time.Microsecond
			if p < exact || p > exact+exact/16+time.Microsecond || p > got.Max {
				t.Errorf("p%g is %s, exactly %s", q*100, p, exact)
			}
		}
		got.P95, got.P99 = 0, 0
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestStatsAreInOrder(t *testing.T) {
	t.Parallel()
	var m hook.Metrics
	for _, name := range []hook.Name{hook.GateOpened, hook.LoopStart, hook.OnError, hook.LoopStart} {
		m.Add(hook.Record{Hook: name, Duration: -time.Second})
	}
	var got []hook.Name
	for _, s := range m.Stats() {
		got = append(got, s.Hook)
		if s.Total != 0 || s.P99 != 0 {
			t.Errorf("a negative duration counts: %+v", s)
		}
	}
	if diff := cmp.Diff([]hook.Name{hook.LoopStart, hook.OnError, hook.GateOpened}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOverhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var warnings []hook.Warning
		r := newRunner(t, hook.Config{
			Handlers: []hook.Registration{
				at(hook.PreIteration, "a", sleeps(time.Second)), at(hook.LoopComplete, "b", sleeps(2*time.Second)),
				at(hook.StuckLoopDetected, "person", sleeps(time.Hour)),
			},
			Observe: func(n hook.Notice) {
				if n.Warning != nil {
					warnings = append(warnings, *n.Warning)
				}
			},
		})
		run := func(name hook.Name, iteration int) {
			m := message(name, nil)
			m.Metadata.Iteration = iteration
			if _, err := r.Run(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		run(hook.PreIteration, 1)
		run(hook.StuckLoopDetected, 1)
		run(hook.PreIteration, 2)
		run(hook.LoopComplete, 2)
		got := []hook.Overhead{
			r.EndIteration("l", 1, 101*time.Second), r.EndIteration("l", 2, 13*time.Second), r.EndIteration("l", 3, time.Minute),
			r.EndIteration("l", 2, 0), r.Metrics().Overhead(),
		}
		want := []hook.Overhead{
			{HookTime: time.Second, Wall: 101 * time.Second, Percent: 1},
			{HookTime: 3 * time.Second, Wall: 13 * time.Second, Percent: 30},
			{Wall: time.Minute}, {}, {HookTime: 4 * time.Second, Wall: 174 * time.Second, Percent: 400.0 / 170},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]hook.Warning{{
			Kind: hook.WarnOverhead, LoopID: "l", Iteration: 2, Took: 3 * time.Second, Percent: 30,
			Message: "handlers added 30.0 % to iteration 2; the budget is 10 %",
		}}, warnings); diff != "" {
			t.Error(diff)
		}
	})
}

// The budget is for the built-in handlers of a hook together, where they look
// for regressions.
func TestLatencyBudget(t *testing.T) {
	t.Parallel()
	tests := []struct {
		hook   hook.Name
		budget time.Duration
		warns  bool
	}{
		{hook.PostIteration, 0, true}, {hook.PreToolCall, 0, true}, {hook.PostToolCall, 599 * time.Millisecond, true},
		{hook.PostIteration, 600 * time.Millisecond, false}, {hook.PostIteration, -1, false}, {hook.PreIteration, 0, false},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var got []hook.Warning
			r := newRunner(t, hook.Config{
				LatencyBudget: tt.budget,
				Handlers: []hook.Registration{at(tt.hook, "a", sleeps(300*time.Millisecond)),
					at(tt.hook, "b", sleeps(300*time.Millisecond))},
				Observe: func(n hook.Notice) {
					if n.Warning != nil {
						got = append(got, *n.Warning)
					}
				},
			})
			if _, err := r.Run(t.Context(), message(tt.hook, nil)); err != nil {
				t.Fatal(err)
			}
			if (len(got) == 1) != tt.warns || tt.warns &&
				(got[0].Kind != hook.WarnLatency || got[0].Took != 600*time.Millisecond || got[0].Hook != tt.hook) {
				t.Errorf("%s with %s: %+v", tt.hook, tt.budget, got)
			}
		})
	}
}

// Iterations whose end is not reported do not pile up.
func TestForgottenIterations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, hook.Config{Handlers: []hook.Registration{at(hook.OnError, "a", sleeps(time.Second))}})
		for i := range 1000 {
			m := message(hook.OnError, nil)
			m.Metadata.Iteration = i
			if _, err := r.Run(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.EndIteration("l", 999, time.Minute).HookTime; got != time.Second {
			t.Errorf("the last iteration: %s", got)
		}
		if got := r.EndIteration("l", 1, time.Minute).HookTime; got != 0 {
			t.Errorf("the second iteration is kept: %s", got)
		}
	})
}
