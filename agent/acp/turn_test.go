package acp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// piped makes an agent of a script in this process.
func piped(t *testing.T, cfg acp.Config, script func(f *fake)) *acp.Agent {
	t.Helper()
	a, err := acp.Piped(cfg, func(in io.Reader, out io.Writer, killed <-chan struct{}) {
		f := newFake(in, out)
		f.killed = killed
		script(f)
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run does a turn with a script. The script gets the rest of what the client
// says after it returned.
func run(t *testing.T, cfg acp.Config, tr *agent.Turn, script func(f *fake)) (*agent.Result, []string, error) {
	t.Helper()
	var seen []agent.Event
	if tr.Dir == "" {
		tr.Dir, tr.Prompt = "/w", "do it"
	}
	if tr.Observe == nil {
		tr.Observe = func(e agent.Event) { seen = append(seen, e) }
	}
	got, err := piped(t, cfg, func(f *fake) {
		script(f)
		for f.recv().ID != nil {
		}
	}).Run(t.Context(), tr)
	return got, brief(seen), err
}

// ended is run for a prompt that the script does, with session and end around
// it.
func ended(t *testing.T, tr *agent.Turn, script func(f *fake)) (*agent.Result, []string) {
	t.Helper()
	got, events, err := run(t, acp.Config{}, tr, func(f *fake) {
		p := f.begin()
		script(f)
		f.finish(p)
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, events
}

func decides(allow bool) func(context.Context, agent.ToolCall) agent.Decision {
	return func(context.Context, agent.ToolCall) agent.Decision { return agent.Decision{Allow: allow} }
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	const (
		both = `[{"optionId":"aa","kind":"allow_always"},{"optionId":"a1","kind":"allow_once"},{"optionId":"ra",` +
			`"kind":"reject_always"},{"optionId":"r1","kind":"reject_once"}]`
		always  = `[{"optionId":"aa","kind":"allow_always"},{"optionId":"ra","kind":"reject_always"}]`
		strange = `[{"optionId":"x","kind":"ask_mother"},7]`
	)
	selected := func(id string) string { return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	const cancelled = `{"outcome":{"outcome":"cancelled"}}`
	tests := []struct {
		name    string
		decide  func(context.Context, agent.ToolCall) agent.Decision
		options string
		want    string
		notes   int
	}{
		{"no decision", nil, both, selected("a1"), 0},
		{"allowed", decides(true), both, selected("a1"), 0},
		{"denied", decides(false), both, selected("r1"), 0},
		{"allowed, only always", decides(true), always, selected("aa"), 1},
		{"denied, only always", decides(false), always, selected("ra"), 0},
		{"allowed, no way to", decides(true), strange, cancelled, 1},
		{"denied, no way to", decides(false), strange, cancelled, 0},
		{"denied, nothing offered", decides(false), `null`, cancelled, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := ""
			got, _ := ended(t, &agent.Turn{Decide: tt.decide}, func(f *fake) {
				answer = f.askWith(`{"toolCallId":"c"}`, tt.options)
			})
			if answer != tt.want || len(got.Notes) != tt.notes {
				t.Errorf("answered %s, notes %q", answer, got.Notes)
			}
		})
	}
}

// A denied call may end the turn: that is not a failure of the agent.
func TestTurnThatEndsWithADenial(t *testing.T) {
	t.Parallel()
	script := func(f *fake) {
		p := f.begin()
		f.ask(`{"toolCallId":"c"}`)
		f.answer(p, `{"stopReason":"cancelled"}`)
	}
	got, _, err := run(t, acp.Config{}, &agent.Turn{Decide: decides(false)}, script)
	if err != nil || got.StopReason != "cancelled" || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	_, _, err = run(t, acp.Config{}, &agent.Turn{Decide: decides(true)}, script)
	wantKind(t, err, agent.KindFailed)
}

func TestManyPermissionsAtOnce(t *testing.T) {
	t.Parallel()
	const many = 100
	var open sync.WaitGroup
	open.Add(many)
	tr := &agent.Turn{Decide: func(_ context.Context, call agent.ToolCall) agent.Decision {
		open.Done()
		open.Wait() // all are asked before one is answered
		return agent.Decision{Allow: call.Title == "good"}
	}}
	answers := make(map[string]string)
	_, _ = ended(t, tr, func(f *fake) {
		for i := range many {
			title := []string{"good", "bad"}[i%2]
			f.say(`{"jsonrpc":"2.0","id":"p%d","method":"session/request_permission","params":{"sessionId":"s-1",`+
				`"toolCall":{"toolCallId":"c%d","title":%q},"options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no",`+
				`"kind":"reject_once"}]}}`, i, i, title)
		}
		for range many {
			m := f.recv()
			answers[string(m.ID)] = string(m.Result)
		}
	})
	if len(answers) != many || !strings.Contains(answers[`"p0"`], "yes") || !strings.Contains(answers[`"p99"`], "no") {
		t.Errorf("answers %v", answers)
	}
}

func TestTooManyPermissionsAtOnce(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	tr := &agent.Turn{Decide: func(context.Context, agent.ToolCall) agent.Decision {
		<-hold
		return agent.Decision{Allow: true}
	}}
	refused := 0
	_, _ = ended(t, tr, func(f *fake) {
		for range 300 { // of the same ID, too
			f.say(`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"options":[]}}`)
		}
		for range 44 {
			if m := f.recv(); len(m.Error) > 0 {
				refused++
			}
		}
		close(hold)
		for range 256 {
			f.recv()
		}
	})
	if refused != 44 {
		t.Errorf("%d were refused", refused)
	}
}

// A person may need hours: that is not a silent agent.
func TestPermissionTakesLongerThanIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &agent.Turn{
			IdleTimeout: time.Minute,
			Decide: func(context.Context, agent.ToolCall) agent.Decision {
				time.Sleep(3 * time.Hour)
				return agent.Decision{Allow: true}
			},
		}
		_, _ = ended(t, tr, func(f *fake) {
			f.ask(`{"toolCallId":"c"}`)
			time.Sleep(59 * time.Second)
		})
	})
}

func TestSlowObserverIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &agent.Turn{IdleTimeout: time.Minute, Observe: func(e agent.Event) {
			if e.Kind == agent.EventMessage {
				time.Sleep(time.Hour)
			}
		}}
		_, _ = ended(t, tr, func(f *fake) { f.message("a") })
	})
}

func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		asked := ""
		got, _, err := run(t, acp.Config{}, &agent.Turn{IdleTimeout: time.Minute}, func(f *fake) {
			p := f.begin()
			time.Sleep(50 * time.Second)
			f.message("still here")
			asked = f.recv().Method
			f.answer(p, `{"stopReason":"cancelled","usage":{"inputTokens":1,"outputTokens":2}}`)
		})
		wantKind(t, err, agent.KindIdle)
		if took := time.Since(begin); took != 110*time.Second || asked != "session/cancel" {
			t.Errorf("took %s, asked for %q", took, asked)
		}
		if got.Text != "still here" || got.Usage.OutputTokens != 2 {
			t.Errorf("result %+v", got)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var late agent.Decision
		a := piped(t, acp.Config{}, func(f *fake) {
			p := f.begin()
			f.message("begun")
			answer := f.ask(`{"toolCallId":"c"}`)
			f.message(answer)
			f.say(`{"jsonrpc":"2.0","id":"late","method":"session/request_permission","params":{"options":[{"optionId":"yes",` +
				`"kind":"allow_once"}]}}`)
			m := f.recv()
			for m.Method != "" { // session/cancel
				m = f.recv()
			}
			f.message(string(m.Result))
			f.answer(p, `{"stopReason":"cancelled"}`)
			for f.recv().ID != nil {
			}
		})
		got, err := a.Run(ctx, &agent.Turn{Prompt: "p", Dir: "/w",
			Decide: func(ctx context.Context, _ agent.ToolCall) agent.Decision {
				cancel()
				<-ctx.Done()
				return late
			}})
		if e := wantKind(t, err, agent.KindCanceled); !errors.Is(e, context.Canceled) {
			t.Error(e)
		}
		if !strings.Contains(got.Text, `"cancelled"`) || strings.Contains(got.Text, "yes") {
			t.Errorf("result %+v", got)
		}
	})
}

func TestCancelThatIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		a := piped(t, acp.Config{Grace: 10 * time.Second}, func(f *fake) {
			f.begin()
			<-f.killed
		})
		_, err := a.Run(ctx, &agent.Turn{Prompt: "p", Dir: "/w"})
		wantKind(t, err, agent.KindTimeout)
		if took := time.Since(begin); took != time.Hour+10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestStartTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, _, err := run(t, acp.Config{StartTimeout: time.Minute}, &agent.Turn{}, func(f *fake) {
			f.greet()
			f.want("session/new")
			<-f.killed
		})
		if e := wantKind(t, err, agent.KindFailed); !strings.Contains(e.Error(), "no session within 1m0s") {
			t.Error(e)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func TestCancelWhileStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := piped(t, acp.Config{StartTimeout: -1}, func(f *fake) {
			f.greet()
			cancel()
			<-f.killed
		})
		got, err := a.Run(ctx, &agent.Turn{Prompt: "p", Dir: "/w"})
		wantKind(t, err, agent.KindCanceled)
		if got.Session != "" {
			t.Errorf("result %+v", got)
		}
		_, err = a.Run(ctx, &agent.Turn{Prompt: "p", Dir: "/w"})
		wantKind(t, err, agent.KindCanceled)
	})
}

func TestPermissionTakenBack(t *testing.T) {
	t.Parallel()
	tr := &agent.Turn{Decide: func(ctx context.Context, _ agent.ToolCall) agent.Decision {
		<-ctx.Done()
		return agent.Decision{Allow: true}
	}}
	answer := ""
	_, _ = ended(t, tr, func(f *fake) {
		f.say(`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"options":[{"optionId":"yes",` +
			`"kind":"allow_once"}]}}`)
		f.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"other"}}`)
		f.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}`)
		answer = string(f.recv().Result)
	})
	if answer != `{"outcome":{"outcome":"cancelled"}}` {
		t.Errorf("answered %s", answer)
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	tests := []struct {
		preset, reason string
		want           agent.Kind
	}{
		{"", "end_turn", ""},
		{"", "something_new", ""},
		{"", "max_tokens", agent.KindLimit},
		{"gemini", "max_tokens", agent.KindOverflow},
		{"", "max_turn_requests", agent.KindLimit},
		{"", "refusal", agent.KindFailed},
		{"", "cancelled", agent.KindFailed},
	}
	for _, tt := range tests {
		got, _, err := run(t, acp.Config{Preset: tt.preset}, &agent.Turn{}, func(f *fake) {
			f.answer(f.begin(), `{"stopReason":"`+tt.reason+`"}`)
		})
		var e *agent.Error
		errors.As(err, &e)
		if got.StopReason != tt.reason || (tt.want == "") != (err == nil) || e != nil && e.Kind != tt.want {
			t.Errorf("%s %s: %+v, %v", tt.preset, tt.reason, got, err)
		}
	}
}

func TestTurnsThatCannotBe(t *testing.T) {
	t.Parallel()
	a := piped(t, acp.Config{}, func(*fake) {})
	for _, tr := range []*agent.Turn{
		{Dir: "/w"}, {Prompt: "p"}, {Prompt: "p", Dir: "w"}, {Prompt: "\xff", Dir: "/w"},
		{Prompt: "p", Dir: "/w", IdleTimeout: -1},
	} {
		_, err := a.Run(t.Context(), tr)
		wantKind(t, err, agent.KindInvalid)
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cfg  acp.Config
		text string
	}{
		{acp.Config{}, "neither Command nor Preset"},
		{acp.Config{Command: []string{""}}, "neither Command nor Preset"},
		{acp.Config{Command: []string{"a\x00"}}, "NUL"},
		{acp.Config{Command: []string{"a"}, MaxFrameBytes: -1, MaxErrorBytes: -1}, "MaxErrorBytes"},
		{acp.Config{Command: []string{"a"}, Sight: "some"}, `"some"`},
		{acp.Config{Preset: "hal"}, `there is no agent "hal"`},
	} {
		_, err := acp.New(tt.cfg)
		if e := wantKind(t, err, agent.KindInvalid); !strings.Contains(e.Error(), tt.text) {
			t.Errorf("%+v: %v", tt.cfg, e)
		}
	}
}

func TestSight(t *testing.T) {
	t.Parallel()
	got := make(map[string]agent.Sight)
	for _, cfg := range []acp.Config{
		{}, {Preset: "gemini"}, {Preset: "gemini", Mode: "default"}, {Preset: "gemini", Mode: "yolo"}, {Preset: "codex"},
		{Preset: "codex", Mode: "agent"}, {Preset: "opencode"}, {Preset: "opencode", Ask: true, Mode: "build"},
		{Preset: "codex", Sight: agent.SightNone},
	} {
		got[cfg.Preset+" "+cfg.Mode+string(cfg.Sight)] = piped(t, cfg, func(*fake) {}).Sight()
	}
	want := map[string]agent.Sight{
		" ": agent.SightObserved, "gemini ": agent.SightNative, "gemini default": agent.SightNative,
		"gemini yolo": agent.SightObserved,
		"codex ":      agent.SightObserved, "codex agent": agent.SightObserved, "opencode ": agent.SightObserved,
		"opencode build": agent.SightNative, "codex none": agent.SightNone,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
