package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
)

// FuzzAnswers sends any bytes: each line has one answer of the right form, or
// none; nothing is an internal error, and the server answers afterwards.
func FuzzAnswers(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"task.stats"},7]`,
		`{"jsonrpc":"2.0","id":"x","method":"task.submit","params":{"prompt":"p","agent":null,"priority":5,` +
			`"metadata":{"tree_id":"t","depth":[]},"id":"a"}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"task.start\",\"params\":[\"task-0001\",7]}\n" +
			"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"task.append_output\",\"params\":[\"task-0001\",\"é\"]}\n" +
			"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"task.complete\",\"params\":[\"task-0001\",{\"a\":1}]}",
		`{"jsonrpc":"2.0","id":5,"method":"task.update","params":{"taskId":"task-0001","updates":{"state":"failed",` +
			`"error":{"kind":"k"},"metadata":{"a":null},"output":"x","z":[1e999]}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"task.fail","params":{"taskId":"task-0001","error":"x","retry":true,"fence":1}}`,
		`{"jsonrpc":"2.0","id":7,"method":"task.list","params":{"state":"queued","limit":1e1,"before":"task-0001"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"task.cleanup","params":{"maxAge":0,"includeFailed":true}}`,
		`{"jsonrpc":"2.0","id":9,"method":"task.cancel","params":{"id":"a","reason":"r"}}`,
		`{"jsonrpc":"2.0","id":10,"method":"task.get","params":{"task_id":"task-0001"}}`,
		`{"jsonrpc":"2.0","id":11,"method":"daemon.status","params":{}}`,
		"\xff", "[[", "\"\\ud800\"", strings.Repeat("x", 5000),
	} {
		f.Add([]byte(line))
	}
	store, err := perdure.Open(context.Background(), perdure.Config{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	s, err := rpc.New(rpc.Config{Store: store, MaxLineBytes: 4000})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.OpenForTest(context.Background()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.CloseForTest(context.Background()) })
	f.Fuzz(func(t *testing.T, text []byte) {
		out := s.AnswerForTest(t.Context(), text)
		lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
		if len(out) == 0 {
			lines = nil
		}
		if most := bytes.Count(text, []byte("\n")) + 1; len(lines) > most {
			t.Errorf("%d answers to %d lines", len(lines), most)
		}
		for _, line := range lines {
			if got := outline(string(line)); strings.HasPrefix(got, "no ") || strings.Contains(got, "-32603") {
				t.Errorf("%q: answer %q", text, line)
			}
		}
		if got := outline(strings.TrimSpace(
			string(s.AnswerForTest(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))))); got != "1 ok" {
			t.Errorf("afterwards it says %s", got)
		}
	})
}

// FuzzLines reads any bytes in any parts: the lines are those of a simpler
// reader, and none is longer than allowed.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Add([]byte("\n\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		if most < 1 || most > 1<<20 {
			t.Skip()
		}
		var want [][]byte
		parts := bytes.Split(text, []byte("\n"))
		for i, part := range parts {
			switch {
			case len(part) > most:
				want = append(want, nil)
			case i < len(parts)-1 || len(part) > 0:
				want = append(want, append([]byte{}, part...))
			}
		}
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(text),
			"in halves": iotest.HalfReader(bytes.NewReader(text))} {
			got, err := rpc.Lines(r, most)
			if err != nil {
				t.Fatal(err)
			}
			same := slices.EqualFunc(want, got, func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) })
			if !same {
				t.Errorf("%s: %d lines, want %d", name, len(got), len(want))
			}
		}
	})
}

// FuzzMetadata keeps any object word for word, on the wire and in the store.
func FuzzMetadata(f *testing.F) {
	f.Add(`{"tree_id":"t","depth":1.50,"a":{"b":[1e400,"\u00e9"]}}`)
	f.Add(`{"":null,"rlm_state":[]}`)
	store, err := perdure.Open(context.Background(), perdure.Config{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	s, err := rpc.New(rpc.Config{Store: store})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var given map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &given) != nil || given == nil || !utf8.ValidString(text) ||
			strings.Contains(text, "\\u0000") || strings.Contains(text, "perdure_import") {
			t.Skip()
		}
		line := `{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"p","metadata":` +
			strings.ReplaceAll(text, "\n", " ") + `}}`
		var a struct {
			Result struct{ Metadata map[string]json.RawMessage }
			Error  *rpc.Error
		}
		out := s.AnswerForTest(t.Context(), []byte(line))
		if err := json.Unmarshal(out, &a); err != nil || a.Error != nil {
			t.Fatalf("%s: %v %+v", out, err, a.Error)
		}
		for key, want := range given {
			if got := a.Result.Metadata[key]; canonical(t, got) != canonical(t, want) {
				t.Errorf("%q is %s, was given as %s", key, got, want)
			}
		}
	})
}

func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
