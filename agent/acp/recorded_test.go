package acp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

var update = flag.Bool("update", false, "rewrite what the recordings give")

// play says what a recorded agent said, each answer when it is asked for.
func play(f *fake, lines [][]byte) {
	seen := make(map[string]bool) // "request ID" and "answer ID"
	wait := func(what string) {
		for !seen[what] {
			m := f.recv()
			switch {
			case m.Method != "":
				seen["request "+string(m.ID)] = true
			case m.ID != nil:
				seen["answer "+string(m.ID)] = true
			default:
				return
			}
		}
	}
	last := 0 // the last request is the prompt
	for _, line := range lines {
		var m frame
		_ = json.Unmarshal(line, &m)
		if id, err := strconv.Atoi(string(m.ID)); err == nil && m.Method == "" {
			last = max(last, id)
		}
	}
	before := "request 1"
	for _, line := range lines {
		var m frame
		_ = json.Unmarshal(line, &m)
		wait(before)
		if m.Method == "" && m.ID != nil {
			wait("request " + string(m.ID))
			if id, err := strconv.Atoi(string(m.ID)); err == nil && id < last {
				before = "request " + strconv.Itoa(id+1) // what follows came after it was asked for
			}
		}
		f.say("%s", line)
		if m.Method != "" && m.ID != nil {
			wait("answer " + string(m.ID))
		}
	}
}

// TestRecorded plays recordings of real agents, with the lists of models and
// commands shortened, and compares what they give.
func TestRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playTurn(t, name, bytes.Split(bytes.TrimSpace(text), []byte("\n")))
			golden := strings.TrimSuffix(file, ".jsonl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
		})
	}
}

// playTurn does the turn of a recording and tells what came of it.
func playTurn(t *testing.T, name string, lines [][]byte) string {
	t.Helper()
	preset, rest, _ := strings.Cut(name, "-")
	cfg := acp.Config{Preset: preset}
	if preset == "gemini" {
		cfg.Model = "auto" // as then: a request more
	}
	tr := &agent.Turn{Prompt: "p", Dir: "/w", Decide: decides(!strings.HasPrefix(rest, "denied"))}
	if strings.HasSuffix(name, "-2") && !strings.HasPrefix(rest, "denied") || name == "gemini-2" {
		tr.Session = sessionOf(lines)
	}
	var out strings.Builder
	tr.Observe = func(e agent.Event) {
		out.WriteString(brief([]agent.Event{e})[0])
		if e.Call != nil {
			raw, _ := json.Marshal(e.Call)
			out.WriteString(" " + string(raw))
		}
		out.WriteString("\n")
	}
	a := piped(t, cfg, func(f *fake) {
		play(f, lines)
		for f.recv().ID != nil {
		}
	})
	got, err := a.Run(t.Context(), tr)
	raw, _ := json.MarshalIndent(got, "", " ")
	out.Write(raw)
	if err != nil {
		out.WriteString("\n" + err.Error())
	}
	return out.String() + "\n"
}

// sessionOf finds the session of a recording.
func sessionOf(lines [][]byte) string {
	for _, line := range lines {
		var m struct {
			Params struct {
				SessionID string `json:"sessionId"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) == nil && m.Params.SessionID != "" {
			return m.Params.SessionID
		}
	}
	return "a-session"
}
