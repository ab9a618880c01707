package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/acp"
	"github.com/perdure/perdure/loop/record"
)

// noHost has no stores.
type noHost struct{}

var errNoStore = errors.New("no store here")

func (noHost) Open(context.Context, *acp.OpenRequest) (*acp.Project, error) { return nil, errNoStore }
func (noHost) Trust(context.Context, *acp.OpenRequest) error                { return errNoStore }

type noView struct{}

func (noView) Line(*perdure.Event) string                   { return "" }
func (noView) Summary(*record.Loop) string                  { return "" }
func (noView) Answer(*client.Result) (text, problem string) { return "", "" }

// output keeps what the agent writes.
type output struct{ bytes.Buffer }

func (o *output) Close() error { return nil }

// answer is a message of the agent.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Error   *struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// serve returns the messages with which the agent answers an input.
func serve(t *testing.T, in string, limit int) []answer {
	t.Helper()
	var out output
	cfg := acp.Config{Host: noHost{}, View: noView{}, Mode: acp.ModeRun, MaxMessageBytes: limit}
	if err := acp.Serve(t.Context(), cfg, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var all []answer
	lines := bufio.NewScanner(&out.Buffer)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil || a.Version != "2.0" {
			t.Fatalf("the agent wrote %q", lines.Text())
		}
		all = append(all, a)
	}
	return all
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n"

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := strings.Trim(fmt.Sprintf("%q", t.TempDir()), `"`)
	for _, c := range []struct {
		name, line, id string
		code           int64
	}{
		{"not JSON", `{"jsonrpc"`, "null", -32700},
		{"a number", "7", "null", -32600},
		{"a batch", `[{"jsonrpc":"2.0","id":2,"method":"initialize"}]`, "null", -32600},
		{"another version", `{"jsonrpc":"1.0","id":2,"method":"initialize"}`, "2", -32600},
		{"no version", `{"id":2,"method":"initialize"}`, "2", -32600},
		{"an object as ID", `{"jsonrpc":"2.0","id":{},"method":"initialize"}`, "null", -32600},
		{"no method", `{"jsonrpc":"2.0","id":2}`, "2", -32600},
		{"method of another type", `{"jsonrpc":"2.0","id":"x","method":[]}`, `"x"`, -32600},
		{"unknown method", `{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`, "2", -32601},
		{"no parameters", `{"jsonrpc":"2.0","id":2,"method":"session/new"}`, "2", -32602},
		{"relative folder", `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"."}}`, "2", -32602},
		{"missing folder", `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"` + dir + `/no"}}`, "2", -32602},
		{"unknown mode", `{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":"x","modeId":"y"}}`,
			"2", -32602},
		{"unknown session", `{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":"x","modeId":"run"}}`,
			"2", -32002},
		{"error of the host",
			`{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"x","cwd":"` + dir + `"}}`, "2", -32603},
		{"too large", `{"jsonrpc":"2.0","id":2,"method":"session/new","params":"` + strings.Repeat("x", 2000) + `"}`, "2",
			-32600},
		{"too large, the ID last", `{"method":"` + strings.Repeat("x", 2000) + `","id":2}`, "null", -32600},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := serve(t, hello+c.line+"\n", 1000)
			if len(got) != 2 || got[1].Error == nil || got[1].Error.Code != c.code || string(got[1].ID) != c.id ||
				got[1].Error.Message == "" {
				t.Errorf("answered %+v, want %d with ID %s", got[1:], c.code, c.id)
			}
		})
	}
}

// Requests before initialize are refused. Notifications and responses are never answered.
func TestSilentMessages(t *testing.T) {
	t.Parallel()
	got := serve(t, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}`+"\n", 0)
	if len(got) != 1 || got[0].Error == nil || got[0].Error.Code != -32600 {
		t.Errorf("before initialize: %+v", got)
	}
	for _, line := range []string{`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`,
		`{"jsonrpc":"2.0","method":"session/cancel"}`, `{"jsonrpc":"2.0","method":"x/y"}`,
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{}}`, "", "  "} {
		if got := serve(t, hello+line+"\n", 0); len(got) != 1 {
			t.Errorf("%s: answered %+v", line, got[1:])
		}
	}
}

// Whatever an editor sends, the agent writes messages only, and answers each request once.
func FuzzServe(f *testing.F) {
	for _, line := range []string{"{", "[]", "null", `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/"}}`,
		`{"jsonrpc":"2.0","id":-0,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"a"}]}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}`, `{"jsonrpc":"2.0","id":"\ud800"}`,
		`{"id":[],"method":"initialize"}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\xff"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, in string) {
		requests := 0
		for line := range strings.Lines(in) {
			if strings.TrimSpace(line) != "" {
				requests++
			}
		}
		answers := 0
		for _, a := range serve(t, in, 0) {
			if a.Method == "" {
				answers++
			}
		}
		if answers > requests {
			t.Errorf("%d answers to %d lines", answers, requests)
		}
	})
}

// The output breaks: the agent ends.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	_ = r.CloseWithError(io.ErrClosedPipe)
	cfg := acp.Config{Host: noHost{}, View: noView{}, Mode: acp.ModeRun}
	if err := acp.Serve(t.Context(), cfg, strings.NewReader(hello), w); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
