package acp_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// recorded returns the lines of recorded agents.
func recorded(tb testing.TB) [][]byte {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", "*.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recordings: %v", err)
	}
	var lines [][]byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSpace(text), []byte("\n"))...)
	}
	return lines
}

// FuzzFrames checks that lines come back unchanged, whatever the parts they
// are read in, and that no more than the limit is held of one.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\r\n\nbc\n"), 4, 1)
	f.Add([]byte(strings.Repeat("x", 100)+"\ny"), 10, 7)
	f.Add([]byte(" \t\n\xff\x00\n"), 1, 3)
	f.Fuzz(func(t *testing.T, in []byte, limit, piece int) {
		limit, piece = 1+abs(limit)%4096, 1+abs(piece)%512
		data, cut, sizes := acp.Frames(&pieces{rest: in, size: piece}, limit)
		var want [][]byte
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			whole := bytes.TrimRight(line, "\r")
			if len(bytes.TrimSpace(line)) > 0 || len(whole) > limit {
				want = append(want, line)
			}
		}
		if len(data) != len(want) {
			t.Fatalf("%d lines, want %d", len(data), len(want))
		}
		for i, line := range want {
			if len(data[i]) > limit {
				t.Errorf("%d bytes held, limit %d", len(data[i]), limit)
			}
			if sizes[i] < int64(len(line)) || sizes[i] > int64(len(line)+1) {
				t.Errorf("line of %d bytes is said to have %d", len(line), sizes[i])
			}
			if !cut[i] && !bytes.Equal(data[i], bytes.TrimSpace(line)) {
				t.Errorf("line %q came as %q", line, data[i])
			}
			if cut[i] && len(line) <= limit {
				t.Errorf("line of %d bytes was cut, limit %d", len(line), limit)
			}
		}
	})
}

// blocks reads a few bytes at a time.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, os.ErrClosed
	}
	n := copy(to[:min(len(to), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// FuzzUpdate checks that whatever an agent says in an update becomes events
// that can be shown and stored.
func FuzzUpdate(f *testing.F) {
	for _, line := range recorded(f) {
		f.Add(string(line))
		if _, update, ok := strings.Cut(string(line), `"update":`); ok {
			f.Add(strings.TrimSuffix(update, "}}"))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		events, calls, held, err := acp.Story(line, line)
		if err == nil && len(events) == 0 {
			t.Error("an update without an event")
		}
		if held < 0 || calls == 0 && held != 0 {
			t.Errorf("%d calls hold %d bytes", calls, held)
		}
		for _, e := range events {
			wantShowable(t, &e)
		}
		if u := acp.UsageOf(line); u.InputTokens < 0 || u.OutputTokens < 0 || u.CachedTokens < 0 || u.CacheWriteTokens < 0 {
			t.Errorf("usage %+v", u)
		}
	})
}

func wantShowable(t *testing.T, e *agent.Event) {
	t.Helper()
	texts := []string{e.Text}
	if e.Call != nil {
		texts = append(texts, e.Call.ID, e.Call.Name, e.Call.Title, e.Call.Command)
		texts = append(texts, e.Call.Paths...)
		if e.Call.Kind == "" || e.Call.Status == "" {
			t.Errorf("call %+v", e.Call)
		}
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("text %q", text)
		}
	}
	if e.Context != nil && (e.Context.Used < 0 || e.Context.Size < 0) {
		t.Errorf("context %+v", e.Context)
	}
	switch e.Kind {
	case agent.EventMessage, agent.EventThought, agent.EventToolCall, agent.EventToolResult, agent.EventUsage,
		agent.EventRateLimited, agent.EventCompaction, agent.EventNotice, agent.EventUnknown:
	default:
		t.Errorf("kind %q", e.Kind)
	}
}

// FuzzStream plays anything as the output of an agent: the turn ends, and
// nothing is lost of the goroutines.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}` + "\n" +
		`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`))
	f.Add([]byte("plain\n\x00\xff\n{}\n[]\nnull\n"))
	f.Add(bytes.Join(recorded(f), []byte("\n")))
	f.Fuzz(func(t *testing.T, out []byte) {
		a := piped(t, acp.Config{MaxFrameBytes: 1 << 16}, func(f *fake) {
			go func() { // reads its input until the end
				for f.recv().ID != nil {
				}
			}()
			_, _ = f.out.Write(append(out, '\n'))
		})
		got, err := a.Run(t.Context(), &agent.Turn{Prompt: "p", Dir: "/w", Observe: func(agent.Event) {}})
		if got == nil || !utf8.ValidString(got.Text) || err == nil && got.Session == "" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
