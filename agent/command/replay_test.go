package command_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

// testNow is when recorded turns are replayed.
func testNow() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// recorded reads a recording of testdata/PRESET/NAME.
func recorded(t testing.TB, preset, name string, exit int) command.Recorded {
	t.Helper()
	read := func(ending string) string {
		data, err := os.ReadFile(filepath.Join("testdata", preset, name+ending))
		if err != nil && (ending == ".jsonl" || !errors.Is(err, os.ErrNotExist)) {
			t.Fatal(err)
		}
		return string(data)
	}
	return command.Recorded{Preset: preset, Stdout: read(".jsonl"), Stderr: read(".stderr"), Log: read(".log"),
		Exit: exit, Now: testNow()}
}

// outline is what matters of a turn.
type outline struct {
	Kind    agent.Kind
	Until   time.Duration // from testNow
	Session string
	Stop    string
	Text    string
	Usage   agent.Usage
	Cost    int64 // -1 unknown
	Context agent.Context
	Notes   int
}

func outlineOf(res *agent.Result, err error) outline {
	o := outline{Session: res.Session, Stop: res.StopReason, Text: res.Text, Usage: res.Usage, Cost: -1,
		Notes: len(res.Notes)}
	if res.CostMicros != nil {
		o.Cost = *res.CostMicros
	}
	if res.Context != nil {
		o.Context = *res.Context
	}
	var e *agent.Error
	if errors.As(err, &e) {
		o.Kind = e.Kind
		if !e.Until.IsZero() {
			o.Until = e.Until.Sub(testNow())
		}
	}
	return o
}

// TestRecordedTurns replays what the real clients wrote.
func TestRecordedTurns(t *testing.T) {
	t.Parallel()
	const (
		opencode = "opencode"
	)
	reported := func(in, out, cached int64) agent.Usage {
		return agent.Usage{InputTokens: in, OutputTokens: out, CachedTokens: cached, Reported: true}
	}
	filled := func(used int64) agent.Context {
		return agent.Context{Used: used, Source: agent.SourceReported}
	}
	tests := []struct {
		preset, name string
		exit         int
		session      string
		want         outline
	}{
		{"claude", "ok", 0, "", outline{Session: "#2200.60.1400.0.4680", Stop: "end_turn", Text: "Done.",
			Usage: reported(2200, 60, 1400), Cost: -1, Context: filled(1210), Notes: 1}},
		{"claude", "resume", 0, "ID#2200.60.1400.0.4680", outline{Session: "#5200.90.2400.0.13480", Stop: "end_turn",
			Text: "Second done.", Usage: reported(3000, 30, 1000), Cost: -1, Context: filled(3030), Notes: 1}},
		{"claude", "denied", 0, "", outline{Session: "#2200.60.1400.0.4680", Stop: "end_turn", Text: "Done.",
			Usage: reported(2200, 60, 1400), Cost: -1, Context: filled(1210), Notes: 1}},
		{"claude", "interrupted", 0, "", outline{Kind: agent.KindFailed, Session: "#2100.100.800.0.0", Text: "go",
			Usage: reported(2100, 100, 800), Cost: -1, Context: filled(1150)}},
		{"claude", "nosession", 1, "06c6bb72", outline{Kind: agent.KindSession, Stop: "error_during_execution", Cost: -1}},
		{"claude", "429", 0, "", outline{Session: "#500.5.0.0.2100", Stop: "end_turn", Text: "Fine after all.",
			Usage: reported(500, 5, 0), Cost: -1, Context: filled(501), Notes: 1}},
		{"claude", "429x", 1, "", outline{Kind: agent.KindRateLimit, Until: 1226 * time.Millisecond, Session: "#0.0.0.0.0",
			Stop: "stop_sequence", Usage: reported(0, 0, 0)}},
		{"claude", "quota", 1, "", outline{Kind: agent.KindQuota, Session: "#0.0.0.0.0", Stop: "stop_sequence",
			Usage: reported(0, 0, 0)}},
		{"claude", "401", 1, "", outline{Kind: agent.KindAuth, Session: "#0.0.0.0.0", Stop: "stop_sequence",
			Usage: reported(0, 0, 0)}},
		{"claude", "404", 1, "", outline{Kind: agent.KindInvalid, Session: "#0.0.0.0.0", Stop: "stop_sequence",
			Usage: reported(0, 0, 0)}},
		{"claude", "over", 1, "", outline{Kind: agent.KindOverflow, Session: "#0.0.0.0.0", Stop: "stop_sequence",
			Usage: reported(0, 0, 0)}},
		{"claude", "500", 1, "", outline{Kind: agent.KindUnavailable, Until: 1009 * time.Millisecond, Session: "#0.0.0.0.0",
			Stop: "stop_sequence", Usage: reported(0, 0, 0)}},
		{"claude", "len", 1, "", outline{Kind: agent.KindLimit, Session: "#2000.16000.0.0.328000", Stop: "stop_sequence",
			Text: "An answer that was c", Usage: reported(2000, 16000, 0), Cost: -1, Context: filled(501), Notes: 1}},

		{"codex", "ok", 0, "", outline{Session: "#2200.60.1400.0.0", Stop: "completed", Text: "Done.",
			Usage: reported(2200, 60, 1400), Cost: -1}},
		{"codex", "resume", 0, "ID#2200.60.1400.0.0",
			outline{Session: "#5200.90.2400.0.0", Stop: "completed", Text: "Second done.", Usage: reported(3000, 30, 1000),
				Cost: -1}},
		{"codex", "resume", 0, "ID", outline{Session: "#5200.90.2400.0.0", Stop: "completed", Text: "Second done.",
			Cost: -1, Notes: 1}},
		{"codex", "nosession", 1, "ID", outline{Kind: agent.KindSession, Cost: -1}},
		{"codex", "badsession", 0, "rubbish", outline{Kind: agent.KindSession, Cost: -1}},
		{"codex", "429", 0, "", outline{Session: "#500.5.0.0.0", Stop: "completed", Text: "Fine after all.",
			Usage: reported(500, 5, 0), Cost: -1}},
		{"codex", "429x", 1, "", outline{Kind: agent.KindRateLimit, Session: "#0.0.0.0.0", Stop: "failed", Cost: -1}},
		{"codex", "quota", 1, "", outline{Kind: agent.KindQuota, Session: "#0.0.0.0.0", Stop: "failed", Cost: -1}},
		{"codex", "401", 1, "", outline{Kind: agent.KindAuth, Session: "#0.0.0.0.0", Stop: "failed", Cost: -1}},
		{"codex", "404", 1, "", outline{Kind: agent.KindInvalid, Session: "#0.0.0.0.0", Stop: "failed", Cost: -1}},
		{"codex", "over", 1, "", outline{Kind: agent.KindOverflow, Session: "#0.0.0.0.0", Stop: "failed", Cost: -1}},
		{"codex", "500", 1, "", outline{Kind: agent.KindUnavailable, Session: "#0.0.0.0.0", Stop: "failed", Cost: -1}},
		{"codex", "compact", 0, "", outline{Session: "#6210.62.1400.0.0", Stop: "completed", Text: "Summary.",
			Usage: reported(6210, 62, 1400), Cost: -1,
			Context: agent.Context{Used: 3210, Size: 1900, Source: agent.SourceReported}, Notes: 1}},
		{"codex", "len", 1, "", outline{Kind: agent.KindLimit, Session: "#0.0.0.0.0", Stop: "failed",
			Text: "An answer that was c", Cost: -1}},

		{"gemini", "ok", 0, "", outline{Stop: "success", Text: "Done.", Usage: reported(2210, 82, 1400), Cost: -1}},
		{"gemini", "resume", 0, "ID", outline{Stop: "success", Text: "Second done.", Usage: reported(3010, 32, 1000),
			Cost: -1}},
		{"gemini", "denied", 0, "", outline{Stop: "success", Text: "Done.", Usage: reported(28393, 31, 0), Cost: -1}},
		{opencode, "ruled", 0, "", outline{Stop: "stop", Text: "Done.", Usage: reported(2014, 3, 0), Cost: -1,
			Context: filled(6)}},
		{"gemini", "nosession", 42, "ID", outline{Kind: agent.KindSession, Cost: -1}},
		{"claude", "root", 1, "", outline{Kind: agent.KindInvalid, Cost: -1}},
		{opencode, "nomodel", 1, "", outline{Kind: agent.KindInvalid, Cost: -1}},
		{"gemini", "option", 1, "", outline{Kind: agent.KindInvalid, Cost: -1}},
		{"gemini", "untrusted", 55, "", outline{Kind: agent.KindInvalid, Cost: -1}},
		{"gemini", "429", 0, "", outline{Stop: "success", Text: "Fine after all.", Usage: reported(510, 7, 0), Cost: -1}},
		{"gemini", "quota", -1, "", outline{Kind: agent.KindQuota, Cost: -1}},
		{"gemini", "500", -1, "", outline{Kind: agent.KindUnavailable, Cost: -1}},
		{"gemini", "401", 145, "", outline{Kind: agent.KindAuth, Stop: "error", Usage: reported(10, 2, 0), Cost: -1}},
		{"gemini", "404", 148, "", outline{Kind: agent.KindInvalid, Stop: "error", Usage: reported(10, 2, 0), Cost: -1}},
		{"gemini", "over", 144, "", outline{Kind: agent.KindOverflow, Stop: "error", Usage: reported(10, 2, 0), Cost: -1}},
		{"gemini", "len", 0, "", outline{Stop: "success", Text: "An answer that was c", Usage: reported(510, 4002, 0),
			Cost: -1}},

		{opencode, "ok", 0, "", outline{Stop: "stop", Text: "Done.", Usage: reported(2200, 60, 1400), Cost: -1,
			Context: filled(1210)}},
		{opencode, "resume", 0, "ID", outline{Stop: "stop", Text: "Second done.", Usage: reported(3000, 30, 1000), Cost: -1,
			Context: filled(3030)}},
		{opencode, "nosession", 1, "ID", outline{Kind: agent.KindSession, Cost: -1}},
		{opencode, "denied", 0, "", outline{Stop: "stop", Text: "Done.", Usage: reported(2200, 60, 1400), Cost: -1,
			Context: filled(1210)}},
		{opencode, "rejected", 0, "", outline{Stop: "tool-calls", Text: "I run it.", Usage: reported(1000, 50, 400),
			Cost: -1, Context: filled(1050), Notes: 1}},
		{opencode, "429", 0, "", outline{Stop: "stop", Text: "Fine after all.", Usage: reported(500, 5, 0), Cost: -1,
			Context: filled(505)}},
		{opencode, "quota", -1, "", outline{Kind: agent.KindQuota, Cost: -1}},
		{opencode, "401", 1, "", outline{Kind: agent.KindAuth, Cost: -1}},
		{opencode, "404", 1, "", outline{Kind: agent.KindInvalid, Cost: -1}},
		{opencode, "over", -1, "", outline{Kind: agent.KindOverflow, Stop: "stop", Text: "a title",
			Usage: reported(60, 12, 0), Cost: -1, Context: filled(12), Notes: 1}},
		{opencode, "len", 0, "", outline{Kind: agent.KindLimit, Stop: "length", Text: "An answer that was c",
			Usage: reported(500, 4000, 0), Cost: -1, Context: filled(4500)}},
	}
	for _, tt := range tests {
		t.Run(tt.preset+"/"+tt.name+tt.session, func(t *testing.T) {
			t.Parallel()
			rec := recorded(t, tt.preset, tt.name, tt.exit)
			id := streamSession(rec.Stdout)
			if rest, ok := strings.CutPrefix(tt.session, "ID"); ok {
				tt.session = id + rest
			}
			rec.Session = tt.session
			_, res, err := command.Replay(t.Context(), rec)
			got := outlineOf(res, err)
			got.Session = strings.TrimPrefix(got.Session, id)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// TestRecordedModels: the model by which a turn is priced is the one that answered.
func TestRecordedModels(t *testing.T) {
	t.Parallel()
	for preset, name := range map[string]string{"claude": "ok", "gemini": "denied"} {
		_, res, err := command.Replay(t.Context(), recorded(t, preset, name, 0))
		if err != nil || res.Model == "" || res.Model == "auto" {
			t.Errorf("%s: %+v, %v", preset, res, err)
		}
	}
}

// Totals of a session that were not carried on, and versions that tell less.
func TestTotals(t *testing.T) {
	t.Parallel()
	older := strings.NewReplacer("model_usage_since_last_result", "something_else")
	priced := strings.NewReplacer(`"costBasis":"unknown"`, `"costBasis":"list"`)
	tests := []struct {
		name, preset, file, from string
		change                   []*strings.Replacer
		in, out                  int64
		cost                     int64
		after                    string
	}{
		{"a version without differences", "claude", "resume", "#2200.60.1400.0.4680", []*strings.Replacer{older, priced},
			3000, 30, 8800, "#5200.90.2400.0.13480"},
		{"a price that is known", "claude", "resume", "#2200.60.1400.0.4680", []*strings.Replacer{priced}, 3000, 30, 8800,
			"#5200.90.2400.0.13480"},
		{"a session given by itself", "claude", "resume", "", []*strings.Replacer{older, priced}, 3000, 30, -1,
			"#5200.90.2400.0.13480"},
		{"totals that began anew", "claude", "resume", "#9000.900.0.0.90000", []*strings.Replacer{older, priced}, 3000, 30,
			-1, "#5200.90.2400.0.13480"},
		{"a turn that was lost", "claude", "resume", "#4000.80.0.0.0", []*strings.Replacer{older}, 3000, 30, -1,
			"#5200.90.2400.0.13480"},
		{"totals that began anew", "codex", "resume", "#9000.900.0.0.0", nil, 0, 0, -1, "#5200.90.2400.0.0"},
		{"an interrupted turn", "claude", "interrupted", "#100.10.0.0.7", nil, 2100, 100, -1, "#2200.110.800.0.7"},
	}
	for _, tt := range tests {
		t.Run(tt.preset+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			rec := recorded(t, tt.preset, tt.file, 0)
			id := streamSession(rec.Stdout)
			rec.Session = id + tt.from
			for _, change := range tt.change {
				rec.Stdout = change.Replace(rec.Stdout)
			}
			_, res, err := command.Replay(t.Context(), rec)
			got := outlineOf(res, err)
			if got.Usage.InputTokens != tt.in || got.Usage.OutputTokens != tt.out || got.Cost != tt.cost ||
				got.Session != id+tt.after {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Windows and prices that the agent or the configuration knows.
func TestWindowsAndPrices(t *testing.T) {
	t.Parallel()
	rec := recorded(t, "claude", "ok", 0)
	rec.Stdout = strings.ReplaceAll(rec.Stdout, `"costBasis":"unknown"`, `"costBasis":"list"`)
	_, res, err := command.Replay(t.Context(), rec)
	if err != nil || res.Context.Size != 1000000 || res.CostMicros == nil || *res.CostMicros != 4680 ||
		len(res.Notes) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	rec.Config.ContextWindow = 200000
	_, res, err = command.Replay(t.Context(), rec)
	if err != nil || res.Context.Size != 200000 {
		t.Errorf("%+v, %v", res.Context, err)
	}
	rec = recorded(t, "opencode", "ok", 0)
	rec.Stdout = strings.ReplaceAll(rec.Stdout, `"cost":0`, `"cost":0.0015`)
	_, res, err = command.Replay(t.Context(), rec)
	if err != nil || res.CostMicros == nil || *res.CostMicros != 3000 {
		t.Errorf("%+v, %v", res, err)
	}
}

// The events of a running turn.
func TestRecordedEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		preset, name string
		want         []string
	}{
		{"claude", "ok", []string{"session", "message I write it.", "tool_call edit running [/workspace/outa.txt]",
			"usage 1000", "tool_result edit completed [/workspace/outa.txt]", "message Done."}},
		{"claude", "denied", []string{"session", "message I run it.",
			"tool_call execute running curl -s http://127.0.0.1:8080/",
			"tool_result execute denied curl -s http://127.0.0.1:8080/", "message Done."}},
		{"claude", "429x", []string{"session", "rate_limited 1/2", "rate_limited 2/2"}},
		{"codex", "ok", []string{"session", "tool_call execute running /bin/bash -lc 'echo hello > outc.txt'",
			"tool_result execute completed /bin/bash -lc 'echo hello > outc.txt'", "message Done.", "usage 2200"}},
		{"codex", "429", []string{"session", "rate_limited 1/1", "message Fine after all.", "usage 500"}},
		{"codex", "compact", []string{"session", "notice", "compaction", "usage 6210"}},
		{"gemini", "ok", []string{"session", "tool_call edit running [/workspace/outg.txt]",
			"tool_result edit completed [/workspace/outg.txt]", "message Done.", "usage 2210"}},
		{"gemini", "429", []string{"rate_limited 1/0", "session", "message Fine after all.", "usage 510"}},
		{"opencode", "ok", []string{"session", "message I write it.", "tool_call edit running [/workspace/out.txt]",
			"tool_result edit completed [/workspace/out.txt]", "usage 1000", "message Done.", "usage 2200"}},
		{"opencode", "rejected", []string{"tool_call execute running touch made-by-bash",
			"tool_result execute denied touch made-by-bash"}},
		{"gemini", "denied", []string{"tool_result execute completed ./mark yes a2 && ./mark yes a3",
			"tool_result execute denied ./mark yes && ./mark no3"}},
		{"opencode", "ruled", []string{"tool_result execute completed ./mark yes a2 && ./mark yes a3",
			"tool_result execute denied ./mark yes && ./mark no3"}},
		{"opencode", "denied", []string{"tool_call execute running []", "tool_result execute denied []"}},
		{"opencode", "quota", []string{"rate_limited 1/0", "rate_limited 2/0", "rate_limited 3/0"}},
		{"opencode", "over", []string{"notice", "message a title", "compaction", "notice", "compaction"}},
	}
	for _, tt := range tests {
		t.Run(tt.preset+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			events, _, _ := command.Replay(t.Context(), recorded(t, tt.preset, tt.name, 0)) // how it ended is tested above
			var got []string
			rest := tt.want
			for _, ev := range events {
				line := describeEvent(ev)
				got = append(got, line)
				if len(rest) > 0 && (line == rest[0] || strings.HasPrefix(line, rest[0]+" ")) {
					rest = rest[1:]
				}
			}
			if len(rest) > 0 {
				t.Errorf("no event %q in this place; there are\n%s", rest[0], strings.Join(got, "\n"))
			}
		})
	}
}

func describeEvent(ev agent.Event) string {
	switch {
	case ev.Kind == agent.EventRateLimited:
		return fmt.Sprintf("%s %d/%d %s", ev.Kind, ev.Attempt, ev.Of, ev.Text)
	case ev.Call != nil && ev.Call.Command != "":
		return fmt.Sprintf("%s %s %s %s", ev.Kind, ev.Call.Kind, ev.Call.Status, ev.Call.Command)
	case ev.Call != nil:
		return fmt.Sprintf("%s %s %s %v", ev.Kind, ev.Call.Kind, ev.Call.Status, ev.Call.Paths)
	case ev.Usage != nil:
		return fmt.Sprintf("%s %d", ev.Kind, ev.Usage.InputTokens)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", ev.Kind, ev.Text))
}

// streamSession finds the session's ID in a stream.
func streamSession(stream string) string {
	for _, key := range []string{`"session_id":"`, `"thread_id":"`, `"sessionID":"`} {
		if _, rest, ok := strings.Cut(stream, key); ok {
			id, _, _ := strings.Cut(rest, `"`)
			return id
		}
	}
	return ""
}
