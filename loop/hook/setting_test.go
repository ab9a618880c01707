package hook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/loop/hook"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	regs, err := hook.Settings{
		{Hook: hook.PreToolCall, Command: "./check --strict", OnFault: hook.FaultContinues},
		{Hook: hook.OnError, Name: "alarm", URL: "https://example.org/alarm", Timeout: time.Minute},
		{Hook: hook.PreToolCall, Name: "alarm", Command: "true", Timeout: hook.NoTimeout},
	}.Handlers(hook.Place{})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Hook    hook.Name
		Name    string
		Timeout time.Duration
		OnFault hook.OnFault
	}
	var got []row
	for _, reg := range regs {
		got = append(got, row{reg.Hook, reg.Name, reg.Timeout, reg.OnFault})
	}
	want := []row{
		{hook.PreToolCall, "hooks[0]", 0, hook.FaultContinues}, {hook.OnError, "alarm", time.Minute, ""},
		{hook.PreToolCall, "alarm", hook.NoTimeout, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := newRunner(t, hook.Config{Handlers: regs}).Close(t.Context()); err != nil {
		t.Error(err)
	}
	if regs, err := (hook.Settings{}).Handlers(hook.Place{}); err != nil || len(regs) != 0 {
		t.Errorf("no settings: %v, %v", regs, err)
	}
}

func TestSettingsNameAllFaults(t *testing.T) {
	t.Parallel()
	err := hook.Settings{
		{Hook: "pre_tool", Command: "x"},
		{Hook: hook.OnError, Command: "check --password geheim", URL: "http://x", OnFault: "ignore", Timeout: 25 * time.Hour},
		{Command: " ", Name: "a"},
		{Hook: hook.OnError, URL: "http://me:geheim@x", Name: "a\n"},
		{Hook: hook.OnError},
		{Hook: hook.OnError, Command: "x", Name: "b"},
		{Hook: hook.OnError, Command: "y", Name: "b"},
		{Hook: hook.LoopStart, Command: "y\x00geheim", Name: "b"},
	}.Validate()
	if err == nil {
		t.Fatal("taken")
	}
	want := []string{
		`loop.hooks[0].hook: there is no hook "pre_tool"; did you mean "pre_tool_call"?`,
		`loop.hooks[1].on_fault: want one of continue, block; found "ignore"`,
		`loop.hooks[1].timeout: is 25h0m0s, the longest is 24h0m0s; a negative one is none`,
		`loop.hooks[1].url: there is a command too; a handler has one of them`,
		`loop.hooks[2].hook: is missing`,
		`loop.hooks[2].command: is empty`,
		`loop.hooks[3].name: contains a control character`,
		`loop.hooks[3].url: contains a user or password, which must not be stored in files`,
		`loop.hooks[4].command: is missing, and no url is set`,
		`loop.hooks[6].name: is that of loop.hooks[5] too, at the same hook`,
		`loop.hooks[7].command: contains a NUL byte`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Error(diff)
	}
	if _, err := (hook.Settings{{}}).Handlers(hook.Place{}); err == nil {
		t.Error("handlers were made of nothing")
	}
}
