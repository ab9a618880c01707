package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

// Whatever an agent writes, its turn ends with a result or an error of a kind,
// and all strings are valid.
func fuzzStream(f *testing.F, preset string) {
	paths, err := filepath.Glob(filepath.Join("testdata", preset, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d recordings, %v", len(paths), err)
	}
	for _, path := range paths {
		stdout, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		stderr, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".stderr")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.Fatal(err)
		}
		f.Add(string(stdout), string(stderr), "", 0)
		f.Add(string(stdout), string(stderr), streamSession(string(stdout))+"#1.2.3.4.5", 1)
	}
	f.Add("{\"type\":3,\"usage\":[]}\n{}\n\xff{\x00}", "\xff", "s", 145)
	f.Fuzz(func(t *testing.T, stdout, stderr, session string, exit int) {
		events, res, err := command.Replay(t.Context(), command.Recorded{
			Preset: preset, Session: session, Stdout: stdout, Stderr: stderr, Exit: exit % 256, Now: testNow(),
		})
		var e *agent.Error
		if err != nil && (!errors.As(err, &e) || e.Kind == "" || !utf8.ValidString(e.Error()) ||
			!utf8.ValidString(e.Detail)) {
			t.Errorf("error %#v", err)
		}
		if !utf8.ValidString(res.Text) || strings.ContainsRune(res.Text, 0) || len(res.Text) > agent.MaxTextBytes {
			t.Errorf("text %q", res.Text)
		}
		if u := res.Usage; !u.Reported && (u.InputTokens != 0 || u.OutputTokens != 0) {
			t.Errorf("usage %+v", u)
		}
		for _, ev := range events {
			if !utf8.ValidString(ev.Text) || strings.ContainsRune(ev.Text, 0) || ev.Raw != nil && !utf8.Valid(ev.Raw) {
				t.Errorf("event %+v", ev)
			}
			if (ev.Kind == agent.EventToolCall || ev.Kind == agent.EventToolResult) != (ev.Call != nil) {
				t.Errorf("event %+v", ev)
			}
			if ev.Kind == agent.EventUnknown && ev.Raw == nil {
				t.Error("an unknown event without what the agent sent")
			}
		}
	})
}

func FuzzClaude(f *testing.F)   { fuzzStream(f, "claude") }
func FuzzCodex(f *testing.F)    { fuzzStream(f, "codex") }
func FuzzGemini(f *testing.F)   { fuzzStream(f, "gemini") }
func FuzzOpencode(f *testing.F) { fuzzStream(f, "opencode") }

// A log in addition to the stream changes figures and nothing else.
func FuzzCodexLog(f *testing.F) {
	rec := recorded(f, "codex", "compact", 0)
	f.Add(rec.Log)
	f.Add(`{"timestamp":3,"type":"event_msg","payload":{"type":"token_count",` +
		`"info":{"total_token_usage":{"input_tokens":-5}}}}`)
	f.Fuzz(func(t *testing.T, log string) {
		rec.Log = log
		_, res, err := command.Replay(t.Context(), rec)
		if err != nil || res.Text != "Summary." || res.Usage.InputTokens < 0 || res.Usage.OutputTokens < 0 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func FuzzClassify(f *testing.F) {
	for _, text := range []string{
		"usage limit reached|1795183200", "try again at Nov 21st, 2026 3:05 PM", "resets 3pm",
		"retry in 2 days 3 hours and 1s",
		"reset 2026-11-20T12:30:00Z", "\x1b[91m\x1b[", "try again in 99999999999999999999 weeks",
	} {
		f.Add(text, 429)
	}
	f.Fuzz(func(t *testing.T, text string, status int) {
		e := command.Classify(text, status, testNow())
		if e.Kind == "" || !utf8.ValidString(e.Msg) {
			t.Errorf("%+v", e)
		}
		if !e.Until.IsZero() && !e.Until.After(testNow()) {
			t.Errorf("until %v", e.Until)
		}
	})
}

func FuzzSession(f *testing.F) {
	f.Add("id#1.2.3.4.5")
	f.Add("#0.0.0.0.0")
	f.Fuzz(func(t *testing.T, text string) {
		id, again := command.SessionOf(text)
		id2, again2 := command.SessionOf(again)
		if id2 != id && again != "" || again2 != again {
			t.Errorf("%q: %q %q, then %q %q", text, id, again, id2, again2)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("a\nb\r\n", "c\xff\xc3", 4, true)
	f.Add(strings.Repeat("é", 20), "\n", 5, false)
	f.Fuzz(func(t *testing.T, one, two string, limit int, leaveOut bool) {
		limit = 4 + max(0, limit)%100
		lines, _ := command.Split([]string{one, two}, limit, leaveOut)
		for _, line := range lines {
			if len(line) > limit {
				t.Errorf("line of %d bytes, at most %d", len(line), limit)
			}
		}
		if !leaveOut {
			strip := func(s string) string { return strings.NewReplacer("\n", "", "\r", "").Replace(s) }
			if got := strip(strings.Join(lines, "")); got != strip(one+two) {
				t.Errorf("%q became %q", one+two, lines)
			}
		}
	})
}
