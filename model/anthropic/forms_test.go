package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/anthropic"
)

// The form of a reply is read from its bytes, whatever its header says. A stream is complete with
// the reason to stop; what is cut before is an error.
func TestFormsOfReplies(t *testing.T) {
	t.Parallel()
	const (
		begin = `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":"50","output_tokens":1.0}}}`
		text  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"The answer is 42."}}`
		end   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":"7"}}`
		final = `{"type":"message_stop"}`
		whole = `{"type":"message","content":[{"type":"text","text":"The answer is 42."}],"stop_reason":"end_turn",` +
			`"usage":{"input_tokens":50.0,"output_tokens":"7"}}`
	)
	events := func(all ...string) string { return "data: " + strings.Join(all, "\n\ndata: ") + "\n\n" }
	tests := []struct {
		name, body string
		kind       model.Kind
	}{
		{"a stream", events(begin, text, end, final), ""},
		{"no last event", events(begin, text, end), ""},
		{"a last event without its end", strings.TrimSpace(events(begin, text, end)), ""},
		{"an end of another protocol", events(begin, text, end, "[DONE]"), ""},
		{"a mark", "\uFEFF" + events(begin, text, end, final), ""},
		{"line ends of CR", strings.ReplaceAll(events(begin, text, end, final), "\n", "\r"), ""},
		{"pings", "event: ping\ndata: {\"type\":\"ping\"}\n\n" + events(begin, text, `{"type":"ping"}`, end), ""},
		{"documents by lines", strings.Join([]string{begin, text, end, final}, "\n"), ""},
		{"a document", whole, ""},
		{"a document with a mark", "\uFEFF\n" + whole, ""},
		{"rubbish behind the end", events(begin, text, end) + "data: {\n\n", ""},

		{"cut", events(begin, text), model.KindCut},
		{"cut in the last event", events(begin, text) + "data: " + end[:40], model.KindCut},
		{"cut behind a reason that is null", events(begin, text, `{"type":"message_delta","delta":{"stop_reason":null}}`),
			model.KindCut},
		{"an error",
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
			model.KindUnavailable},
		{"an error behind text", events(begin, text) + events(`{"type":"error","error":{"type":"api_error","message":"x"}}`),
			model.KindUnavailable},
		{"a page", "<html>Sign in</html>", model.KindUnavailable},
	}
	for _, test := range tests {
		for _, kind := range []string{"text/event-stream", "application/json", "text/plain"} {
			srv := replyserver.Start(t, func(replyserver.Request) []byte {
				return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind,
					len(test.body), test.body)
			})
			m, err := anthropic.New(anthropic.Config{Model: "small", BaseURL: srv.Root()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			got, err := ask(t, m)
			switch {
			case test.kind != "":
				wantKind(t, err, test.kind)
			case err != nil || got.Text != "The answer is 42." ||
				got.Usage != model.Usage{InputTokens: 50, OutputTokens: 7}:
				t.Errorf("%s as %q: %+v, %v", test.name, kind, got, err)
			}
		}
	}
}
