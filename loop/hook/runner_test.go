package hook_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/loop/hook"
)

// at registers a handler at a hook.
func at(name hook.Name, called string, h hook.Handler) hook.Registration {
	return hook.Registration{Hook: name, Name: called, Handler: h}
}

// full is a reply with everything in it.
func full(inject string) hook.Reply {
	r := hook.NewReply(hook.Warn, "says "+inject)
	r.Metadata.Inject, r.Metadata.Recommendations, r.Metadata.Level = inject, []string{
		"do " + inject}, hook.LevelAggressive
	r.Metadata.RegressionType, r.Metadata.Severity, r.Metadata.Details = hook.TestSkipping, hook.High, map[string]any{
		"what": inject}
	r.Metadata.StateChanges = map[string]any{"seen": inject}
	return r
}

func answers(r hook.Reply) hook.Func {
	return func(context.Context, hook.Message) (hook.Reply, error) { return r, nil }
}

func TestRunPutsRepliesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []hook.Record
		var order []string
		takes := func(name string, d time.Duration, r hook.Reply) hook.Registration {
			return at(hook.PreIteration, name, hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
				order = append(order, name+" "+m.Sender+" "+string(m.Role))
				time.Sleep(d) // the clock of the bubble
				return r, nil
			}))
		}
		r := newRunner(t, hook.Config{
			Handlers: []hook.Registration{
				takes("slow", 3*time.Second, full("a")),
				at(hook.LoopStart, "elsewhere", says(hook.Block, "not asked")),
				takes("quick", time.Millisecond, full("b")),
				takes("plain", 0, hook.NewReply(hook.Allow, "fine")),
			},
			Observe: func(n hook.Notice) { seen = append(seen, *n.Record) },
		})
		began := time.Now().UTC()
		got, err := r.Run(t.Context(), message(hook.PreIteration, nil))
		if err != nil {
			t.Fatal(err)
		}
		rec := func(name string, after, took time.Duration, v hook.Verdict, changed any) hook.Record {
			r := hook.Record{
				Time: began.Add(after), Hook: hook.PreIteration, LoopID: "fix-tests-a1b2c3d4", Iteration: 5, Handler: name,
				Kind: hook.KindBuiltin, Duration: took, Verdict: v,
			}
			if changed != nil {
				r.StateChanges = map[string]any{"seen": changed}
			}
			return r
		}
		want := hook.Outcome{
			Verdict: hook.Warn, Inject: "a\n\nb", Recommendations: []string{"do a", "do b"}, Level: hook.LevelAggressive,
			Reasons: []hook.Reason{{"slow", hook.Warn, "says a"}, {"quick", hook.Warn, "says b"}},
			Regressions: []hook.Regression{
				{Handler: "slow", Type: hook.TestSkipping, Severity: hook.High, Content: "says a",
					Details: map[string]any{"what": "a"}},
				{Handler: "quick", Type: hook.TestSkipping, Severity: hook.High, Content: "says b",
					Details: map[string]any{"what": "b"}},
			},
			Records: []hook.Record{
				rec("slow", 0, 3*time.Second, hook.Warn, "a"),
				rec("quick", 3*time.Second, time.Millisecond, hook.Warn, "b"),
				rec("plain", 3001*time.Millisecond, 0, hook.Allow, nil),
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want.Records, seen); diff != "" {
			t.Errorf("observed: %s", diff)
		}
		if diff := cmp.Diff([]string{"slow perdure user", "quick perdure user", "plain perdure user"}, order); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunTakesTheStrictestVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		verdicts []hook.Verdict
		want     hook.Verdict
	}{
		{nil, hook.Allow},
		{[]hook.Verdict{hook.Allow, hook.Allow}, hook.Allow},
		{[]hook.Verdict{hook.Warn, hook.Allow}, hook.Warn},
		{[]hook.Verdict{hook.Block, hook.Warn, hook.Allow}, hook.Block},
		{[]hook.Verdict{hook.Allow, hook.Block}, hook.Block},
	}
	for _, tt := range tests {
		var regs []hook.Registration
		for i, v := range tt.verdicts {
			regs = append(regs, at(hook.OnError, string(rune('a'+i)), says(v, "")))
		}
		r := newRunner(t, hook.Config{Handlers: regs})
		got, err := r.Run(t.Context(), message(hook.OnError, nil))
		if err != nil || got.Verdict != tt.want || len(got.Records) != len(tt.verdicts) {
			t.Errorf("%v: %s of %d records, %v; want %s", tt.verdicts, got.Verdict, len(got.Records), err, tt.want)
		}
		if r.Has(hook.OnError) != (len(regs) > 0) || r.Has(hook.LoopStart) || r.Has("none") {
			t.Error("Has is wrong")
		}
	}
}

func TestInjectionsAreCut(t *testing.T) {
	t.Parallel()
	inject := func(text string) hook.Reply {
		r := hook.NewReply(hook.Allow, "")
		r.Metadata.Inject = text
		return r
	}
	tests := []struct {
		most int
		want string
		cut  bool
	}{
		{100, "äöü\n\nsecond", false}, {14, "äöü\n\nsecond", false}, {13, "äöü\n\nse…", true}, {8, "äö…", true},
		{-1, "", true},
	}
	for _, tt := range tests {
		r := newRunner(t, hook.Config{MaxInject: tt.most, Handlers: []hook.Registration{
			at(hook.PreIteration, "a", answers(inject(" äöü\n"))), at(hook.PreIteration, "none", answers(inject("\n"))),
			at(hook.PreIteration, "b", answers(inject("second"))),
		}})
		got, err := r.Run(t.Context(), message(hook.PreIteration, nil))
		if err != nil || got.Inject != tt.want || got.Cut != tt.cut {
			t.Errorf("at most %d: %q, cut %v, %v", tt.most, got.Inject, got.Cut, err)
		}
	}
}

// failing are handlers in this process that fail, by the kind of their fault.
func failing() map[hook.FaultKind]hook.Func {
	return map[hook.FaultKind]hook.Func{
		hook.FaultReturned: func(context.Context, hook.Message) (hook.Reply, error) {
			return hook.Reply{}, errors.New("no disk,\napi_key=sk-verysecretverysecret")
		},
		hook.FaultPanic: func(context.Context, hook.Message) (hook.Reply, error) { panic("index out of range\nand more") },
		hook.FaultReply: func(context.Context, hook.Message) (hook.Reply, error) { return hook.Reply{}, nil },
		hook.FaultStatus: func(context.Context, hook.Message) (hook.Reply, error) {
			return hook.Reply{}, &hook.FaultError{Kind: hook.FaultStatus}
		},
		hook.FaultTimeout: func(ctx context.Context, _ hook.Message) (hook.Reply, error) {
			<-ctx.Done()
			return hook.Reply{}, ctx.Err()
		},
		hook.FaultHung: func(ctx context.Context, _ hook.Message) (hook.Reply, error) {
			<-ctx.Done()
			<-time.After(time.Hour)
			return hook.NewReply(hook.Allow, ""), nil
		},
	}
}

// What a fault comes to is the policy of the hook, or of the handler.
func TestFaultPolicies(t *testing.T) {
	t.Parallel()
	calls := map[string]map[string]any{
		"unknown": nil, "destructive": {"destructive": true}, "harmless": {"destructive": false},
		"odd": {"destructive": "no"},
	}
	tests := []struct {
		hook   hook.Name
		own    hook.OnFault
		inputs string
		want   hook.Verdict
	}{
		{hook.PreIteration, "", "unknown", hook.Allow},
		{hook.PreIteration, hook.FaultBlocks, "unknown", hook.Block},
		{hook.PostIteration, "", "destructive", hook.Allow},
		{hook.RegressionDetected, "", "harmless", hook.Block},
		{hook.RegressionDetected, hook.FaultContinues, "unknown", hook.Allow},
		{hook.StuckLoopDetected, "", "unknown", hook.Block},
		{hook.PreToolCall, "", "unknown", hook.Block},
		{hook.PreToolCall, "", "destructive", hook.Block},
		{hook.PreToolCall, "", "odd", hook.Block},
		{hook.PreToolCall, "", "harmless", hook.Allow},
		{hook.PreToolCall, hook.FaultBlocks, "harmless", hook.Block},
		{hook.PreToolCall, hook.FaultContinues, "destructive", hook.Allow},
	}
	for _, tt := range tests {
		name := string(tt.hook) + " " + string(tt.own) + " " + tt.inputs
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for kind, h := range failing() {
					r := newRunner(t, hook.Config{Handlers: []hook.Registration{
						{Hook: tt.hook, Name: "broken", Handler: h, OnFault: tt.own, Timeout: time.Second},
						at(tt.hook, "fine", says(hook.Allow, "")),
					}})
					got, err := r.Run(t.Context(), message(tt.hook, calls[tt.inputs]))
					if err != nil || got.Verdict != tt.want || len(got.Records) != 2 || len(got.Faults()) != 1 {
						t.Fatalf("%s: %+v, %v; want %s", kind, got, err, tt.want)
					}
					wantRecord(t, got, kind, tt.want)
					if err := r.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// wantRecord checks what is written down of a fault that came to a verdict.
func wantRecord(t *testing.T, got hook.Outcome, kind hook.FaultKind, verdict hook.Verdict) {
	t.Helper()
	rec := got.Faults()[0]
	if verdict == hook.Allow {
		verdict = ""
	}
	if rec.Fault.Kind != kind || rec.Verdict != verdict || strings.Contains(rec.Fault.Message, "\n") ||
		strings.Contains(rec.Fault.Message, "verysecret") {
		t.Errorf("record is %+v, %+v; want %s with verdict %q", rec, rec.Fault, kind, verdict)
	}
	if kind == hook.FaultPanic && !strings.Contains(rec.Fault.Detail, "runner_test.go") {
		t.Errorf("the stack does not say where: %s", rec.Fault.Detail)
	}
	if (verdict == hook.Block) != (len(got.Reasons) == 1) {
		t.Errorf("reasons are %+v", got.Reasons)
	}
}

// A fault never makes milder what the handler said.
func TestFaultKeepsTheVerdict(t *testing.T) {
	t.Parallel()
	for _, v := range []hook.Verdict{hook.Allow, hook.Warn, hook.Block} {
		text := `{"content":"tests are gone","metadata":{"verdict":"` + string(v) +
			`","inject":"mind it","regression_type":"laziness","severity":"high"}}`
		r := newRunner(t, hook.Config{Handlers: []hook.Registration{at(hook.PostIteration, "detector",
			hook.Func(func(context.Context, hook.Message) (hook.Reply, error) { return hook.DecodeReply([]byte(text)) }))}})
		got, err := r.Run(t.Context(), message(hook.PostIteration, nil))
		if err != nil || got.Verdict != v || len(got.Faults()) != 1 || got.Inject != "" || got.Regressions != nil {
			t.Errorf("%s: %+v, %v", v, got, err)
		}
		if v != hook.Allow && (len(got.Reasons) != 1 || got.Reasons[0].Content != "tests are gone") {
			t.Errorf("%s: reasons %+v", v, got.Reasons)
		}
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		hook hook.Name
		own  time.Duration
		want time.Duration
	}{
		{hook.PreIteration, 0, 5 * time.Second}, {hook.PreToolCall, 0, 2 * time.Second},
		{hook.RegressionDetected, 0, 10 * time.Second},
		{hook.RegressionDetected, time.Minute, time.Minute}, {hook.StuckLoopDetected, time.Hour, time.Hour},
		{hook.StuckLoopDetected, 0, 0}, {hook.OnError, hook.NoTimeout, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var limit time.Duration
			h := hook.Func(func(ctx context.Context, _ hook.Message) (hook.Reply, error) {
				if end, ok := ctx.Deadline(); ok {
					limit = time.Until(end)
				}
				return hook.NewReply(hook.Allow, ""), nil
			})
			r := newRunner(t, hook.Config{
				Handlers: []hook.Registration{{Hook: tt.hook, Name: "h", Handler: h, Timeout: tt.own}}})
			if _, err := r.Run(t.Context(), message(tt.hook, nil)); err != nil || limit != tt.want {
				t.Errorf("%s with %s: %s, %v; want %s", tt.hook, tt.own, limit, err, tt.want)
			}
		})
	}
}

// A Go value that does not return holds up the loop for its time-out and a
// second, once; the runner knows of it until it has returned.
func TestHungHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, calls := make(chan struct{}), new(atomic.Int32)
		h := hook.Func(func(context.Context, hook.Message) (hook.Reply, error) {
			calls.Add(1)
			<-release
			return hook.NewReply(hook.Allow, ""), nil
		})
		r := newRunner(t, hook.Config{
			Handlers: []hook.Registration{at(hook.OnError, "stone", h), at(hook.OnError, "next", says(hook.Warn, "here"))}})
		for i, want := range []time.Duration{6 * time.Second, 0} {
			began := time.Now()
			got, err := r.Run(t.Context(), message(hook.OnError, nil))
			if err != nil || got.Verdict != hook.Warn || len(got.Faults()) != 1 || got.Faults()[0].Fault.Kind != hook.FaultHung {
				t.Fatalf("run %d: %+v, %v", i, got, err)
			}
			if took := time.Since(began); took != want || calls.Load() != 1 {
				t.Errorf("run %d took %s with %d calls, want %s with 1", i, took, calls.Load(), want)
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"stone"`) {
			t.Errorf("close: %v", err)
		}
		close(release)
		synctest.Wait()
		got, err := r.Run(t.Context(), message(hook.OnError, nil))
		if err != nil || len(got.Faults()) != 0 || calls.Load() != 2 {
			t.Errorf("after it returned: %+v, %v, %d calls", got, err, calls.Load())
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Late verdicts: no reply was waited for after the timeout, but BLOCK is
// BLOCK.
func TestLateReply(t *testing.T) {
	t.Parallel()
	for _, v := range []hook.Verdict{hook.Allow, hook.Block} {
		synctest.Test(t, func(t *testing.T) {
			h := hook.Func(func(ctx context.Context, _ hook.Message) (hook.Reply, error) {
				<-ctx.Done()
				return hook.NewReply(v, "late"), nil
			})
			r := newRunner(t, hook.Config{Handlers: []hook.Registration{at(hook.OnError, "late", h)}})
			got, err := r.Run(t.Context(), message(hook.OnError, nil))
			if err != nil || got.Verdict != v || len(got.Faults()) != 1 || got.Faults()[0].Fault.Kind != hook.FaultTimeout {
				t.Errorf("%s: %+v, %v", v, got, err)
			}
		})
	}
}

func TestGoexit(t *testing.T) {
	t.Parallel()
	h := hook.Func(func(context.Context, hook.Message) (hook.Reply, error) {
		runtime.Goexit()
		return hook.Reply{}, nil
	})
	r := newRunner(t, hook.Config{Handlers: []hook.Registration{at(hook.StuckLoopDetected, "gone", h)}})
	got, err := r.Run(t.Context(), message(hook.StuckLoopDetected, nil))
	if err != nil || got.Verdict != hook.Block || len(got.Faults()) != 1 || got.Faults()[0].Fault.Kind != hook.FaultPanic {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	asked := 0
	first := hook.Func(func(ctx context.Context, _ hook.Message) (hook.Reply, error) {
		asked++
		stop()
		<-ctx.Done()
		return hook.Reply{}, ctx.Err()
	})
	r := newRunner(t, hook.Config{Handlers: []hook.Registration{at(hook.OnError, "first", first),
		at(hook.OnError, "second", first)}})
	got, err := r.Run(ctx, message(hook.OnError, nil))
	if !errors.Is(err, context.Canceled) || got.Verdict != hook.Block || asked != 1 || len(got.Records) != 1 {
		t.Fatalf("%+v, %v, %d asked", got, err, asked)
	}
	if got.Records[0].Fault.Kind != hook.FaultCanceled {
		t.Errorf("%+v", got.Records[0].Fault)
	}
}

func TestRunRefusesMessages(t *testing.T) {
	t.Parallel()
	r := newRunner(t, hook.Config{})
	for want, m := range map[string]hook.Message{
		`did you mean "loop_start"?`:                     message("loop_strat", nil),
		"metadata.hook_name: is missing":                 {},
		"metadata.iteration: want a whole number from 0": {Metadata: hook.Metadata{HookName: hook.OnError, Iteration: -1}},
		"metadata.loop_id: is 201, the": {
			Metadata: hook.Metadata{HookName: hook.OnError, LoopID: strings.Repeat("x", 201)}},
		`role: want "user"`: {Role: hook.RoleAssistant, Metadata: hook.Metadata{HookName: hook.OnError}},
	} {
		got, err := r.Run(t.Context(), m)
		if err == nil || !strings.Contains(err.Error(), want) || got.Verdict != hook.Block {
			t.Errorf("%s, %v; want %q", got.Verdict, err, want)
		}
	}
}

func TestNewNamesAllFaults(t *testing.T) {
	t.Parallel()
	fine := says(hook.Allow, "")
	_, err := hook.New(hook.Config{Handlers: []hook.Registration{
		at("on_eror", "a", fine), at(hook.OnError, "a", nil), at(hook.OnError, "a", fine), at(hook.OnError, "", fine),
		at(hook.OnError, "b\x1b[2J", fine), at(hook.OnError, strings.Repeat("c", 101), fine),
		{Hook: hook.OnError, Name: "d", Handler: fine, OnFault: "ignore"},
	}})
	for _, want := range []string{
		`Handlers[0].Hook: there is no hook "on_eror"; did you mean "on_error"?`, "Handlers[1].Handler: is missing",
		`Handlers[2].Name: "a" is there twice at this hook`,
		"Handlers[3].Name: is missing", "Handlers[4].Name: contains a control character",
		"Handlers[5].Name: is 101, the limit is 100",
		`Handlers[6].OnFault: want one of continue, block`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

// closing is a handler that can be closed.
type closing struct {
	hook.Func
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return errors.New("close it")
}

type closingPointer struct{ closing }

func TestCloseClosesHandlers(t *testing.T) {
	t.Parallel()
	once, never := 0, 0
	pointer := &closingPointer{closing{says(hook.Allow, ""), &once}}
	plain := closing{says(hook.Allow, ""), &never} // holds a function: it is not comparable
	r := newRunner(t, hook.Config{Handlers: []hook.Registration{
		at(hook.OnError, "a", pointer), at(hook.LoopStart, "b", pointer), at(hook.LoopStart, "c", plain),
	}})
	if err := r.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "close it") || once != 1 || never != 0 {
		t.Errorf("%v, closed %d and %d times", err, once, never)
	}
}

// Tool calls may come at once.
func TestRunConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		notices, entered, all := 0, 0, make(chan struct{})
		h := hook.Func(func(ctx context.Context, _ hook.Message) (hook.Reply, error) {
			mu.Lock()
			if entered++; entered == 8 {
				close(all)
			}
			mu.Unlock()
			<-all // each waits for the others
			return hook.NewReply(hook.Allow, ""), nil
		})
		r := newRunner(t, hook.Config{
			Handlers: []hook.Registration{at(hook.PreToolCall, "h", h)},
			Observe:  func(hook.Notice) { mu.Lock(); notices++; mu.Unlock() },
		})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := r.Run(t.Context(), message(hook.PreToolCall, nil)); err != nil || got.Verdict != hook.Allow {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		if notices != 8 || r.Metrics().Stats()[0].Count != 8 {
			t.Errorf("%d notices", notices)
		}
	})
}
