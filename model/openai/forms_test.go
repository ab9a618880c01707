package openai_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
)

const (
	bom       = "\uFEFF"
	chunkA    = `{"choices":[{"index":0,"delta":{"content":"The total is not "},"finish_reason":null}]}`
	chunkB    = `{"choices":[{"index":0,"delta":{"content":"42, but 43."},"finish_reason":null}]}`
	chunkStop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	wholeText = `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",` +
		`"content":"The total is not 42, but 43."}}],"usage":{"prompt_tokens":50,"completion_tokens":7}}`
)

// lines joins lines, each with this end.
func lines(end string, all ...string) string { return strings.Join(all, end) + end }

// zipped compresses a text.
func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// serveRaw starts a server that answers with a body and its header as it is, and returns a model
// that asks it.
func serveRaw(t *testing.T, header, body string) *openai.Model {
	t.Helper()
	srv := replyserver.Start(t, func(replyserver.Request) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
	})
	m, err := openai.New(openai.Config{Model: "small", BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// The form of a reply is read from its bytes, whatever its header says. What is cut is an error.
func TestFormsOfReplies(t *testing.T) {
	t.Parallel()
	const text = "The total is not 42, but 43."
	stream := lines("\n\n", "data: "+chunkA, "data: "+chunkB, "data: "+chunkStop, "data: [DONE]")
	tests := []struct {
		name, body string
		want       string
		kind       model.Kind
	}{
		{"a stream", stream, text, ""},
		{"a mark before a stream", bom + stream, text, ""},
		{"a mark before each event", strings.ReplaceAll(stream, "data: ", bom+"data: "), text, ""},
		{"a mark before each document", strings.ReplaceAll(stream, "data: {", "data: "+bom+"{"), text, ""},
		{"line ends of CR", strings.ReplaceAll(stream, "\n", "\r"), text, ""},
		{"line ends of CRLF", strings.ReplaceAll(stream, "\n", "\r\n"), text, ""},
		{"mixed line ends", lines("\r\n\n", "data: "+chunkA, "data: "+chunkB, "data: "+chunkStop), text, ""},
		{"no blank after the colon", strings.ReplaceAll(stream, "data: ", "data:"), text, ""},
		{"comments first", ": PROCESSING\n\n: PROCESSING\n\n" + stream, text, ""},
		{"names of events", strings.ReplaceAll(stream, "data: ", "event: completion.chunk\nid: 7\ndata: "), text, ""},
		{"a field retry first", "retry: 3000\n\n" + stream, text, ""},
		{"an event of several lines", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"" + text +
			"\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", text, ""},
		{"blank lines before a stream", "\n\n\n" + stream, text, ""},
		{"blanks before a document", strings.Repeat(" \n", 5000) + wholeText, text, ""},
		{"a document", wholeText, text, ""},
		{"a mark before a document", bom + wholeText, text, ""},
		{"a document as an event", "data: " + wholeText + "\n\n", text, ""},
		{"documents by lines", lines("\n", chunkA, chunkB, chunkStop), text, ""},
		{"documents by lines with an end", lines("\n", chunkA, chunkB, chunkStop, "[DONE]"), text, ""},
		{"documents without lines", chunkA + chunkB + chunkStop, text, ""},
		{"a list of documents", "[" + chunkA + ",\n" + chunkB + "," + chunkStop + "]", text, ""},
		{"compressed without a header", zipped(stream), text, ""},
		{"a compressed document without a header", zipped(wholeText), text, ""},
		{"no [DONE]", lines("\n\n", "data: "+chunkA, "data: "+chunkB, "data: "+chunkStop), text, ""},
		{"no reason to stop", lines("\n\n", "data: "+chunkA, "data: "+chunkB, "data: [DONE]"), text, ""},
		{"the last event without its end", strings.TrimSpace(lines("\n\n", "data: "+chunkA, "data: "+chunkB, "data: "+
			chunkStop)), text, ""},
		{"a chunk as a document", strings.Replace(chunkA, `null`, `"stop"`, 1), "The total is not ", ""},
		{"other choices between", lines("\n\n", `data: {"choices":[{"index":1,"delta":{"content":"OTHER"}}]}`,
			"data: "+chunkA,
			`data: {"choices":[{"index":1,"delta":{"content":"X"}},{"index":0,"delta":{"content":"42, but 43."}}]}`,
			`data: {"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, "data: "+chunkStop), text, ""},
		{"other choices first", `{"choices":[{"index":1,"message":{"content":"OTHER"}},{"index":0,"message":{"content":"` +
			text + `"}}]}`, text, ""},
		{"the message again at the end", lines("\n\n", "data: "+chunkA, "data: "+chunkB,
			`data: {"choices":[{"index":0,"delta":{},"message":{"content":"`+text+`"},"finish_reason":"stop"}]}`), text, ""},
		{"texts of the older protocol", lines("\n\n", `data: {"choices":[{"index":0,"text":"The total is not "}]}`,
			`data: {"choices":[{"index":0,"text":"42, but 43.","finish_reason":"stop"}]}`), text, ""},
		{"content in parts", `{"choices":[{"message":{"content":[{"type":"text","text":"The total is not "},` +
			`"42, but 43."]}}]}`, text, ""},
		{"content as an object", `{"choices":[{"message":{"content":{"type":"text","text":"` + text + `"}}}]}`,
			text, ""},
		{"the reason null as text", lines("\n\n", "data: "+strings.ReplaceAll(chunkA, `null`, `"null"`),
			"data: "+chunkB, "data: "+chunkStop), text, ""},

		{"cut behind a reason null as text", "data: " + strings.ReplaceAll(chunkA, `null`, `"null"`) + "\n\n", "",
			model.KindCut},
		{"a cut stream", lines("\n\n", "data: "+chunkA, "data: "+chunkB), "", model.KindCut},
		{"a stream cut in an event", "data: " + chunkA + "\n\ndata: " + chunkB[:30], "", model.KindCut},
		{"the end of another choice only", lines("\n\n", "data: "+chunkA,
			`data: {"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`), "", model.KindCut},
		{"a cut document", wholeText[:80], "", model.KindCut},
		{"cut documents by lines", lines("\n", chunkA, chunkB) + chunkStop[:20], "", model.KindCut},
		{"documents by lines without an end", lines("\n", chunkA, chunkB), "", model.KindCut},
		{"cut while compressed", zipped(stream + wholeText)[:90], "", model.KindCut},
		{"an error as an event", "event: error\ndata: {\"message\":\"boom\",\"code\":\"503\"}\n\n", "",
			model.KindUnavailable},
		{"an error as an object", "data: {\"object\":\"error\",\"message\":\"boom\",\"code\":400}\n\n", "",
			model.KindInvalid},
		{"an error behind text", "data: " + chunkA + "\n\ndata: {\"error\":{\"message\":\"boom\",\"code\":429}}\n\n", "",
			model.KindRateLimit},
		{"a page", "<!DOCTYPE html><title>Sign in</title>", "", model.KindUnavailable},
		{"a line of text", "upstream connect error", "", model.KindUnavailable},
		{"nothing", "", "", model.KindUnavailable},
		{"a stream of another protocol", lines("\n", `{"message":{"role":"assistant","content":"43"},"done":false}`,
			`{"message":{"role":"assistant","content":"."},"done":true}`), "", model.KindUnavailable},
		{"events of another protocol", lines("\n\n", `data: {"token":"43"}`, `data: {"token":"."}`), "",
			model.KindUnavailable},
		{"a stream cut behind its first event", lines("\n\n", `data: {"id":"","object":"","choices":[]}`), "",
			model.KindCut},
	}
	for _, test := range tests {
		for _, kind := range []string{"text/event-stream", "application/json", "text/plain; charset=utf-8", ""} {
			header := ""
			if kind != "" {
				header = "Content-Type: " + kind + "\r\n"
			}
			got, err := ask(t, serveRaw(t, header, test.body))
			switch {
			case test.kind != "":
				wantKind(t, err, test.kind)
			case err != nil || got.Text != test.want:
				t.Errorf("%s as %q: %+v, %v, want %q", test.name, kind, got, err, test.want)
			}
		}
	}
}

// What a page says is in the error.
func TestPageIsNamed(t *testing.T) {
	t.Parallel()
	_, err := ask(t, serveRaw(t, "Content-Type: application/json\r\n", "<html>\n<title>Sign in</title>"))
	if err == nil || !strings.Contains(err.Error(), "a web page") || !strings.Contains(err.Error(), "Sign in") {
		t.Errorf("error = %v", err)
	}
}

// Usage is read wherever and however servers write it; what cannot be is estimated.
func TestFormsOfUsage(t *testing.T) {
	t.Parallel()
	reported := model.Usage{InputTokens: 50, OutputTokens: 7}
	tests := []struct {
		name, body string
		want       model.Usage
	}{
		{"numbers", `,"usage":{"prompt_tokens":50,"completion_tokens":7}`, reported},
		{"fractions", `,"usage":{"prompt_tokens":50.0,"completion_tokens":6.7}`, reported},
		{"exponents", `,"usage":{"prompt_tokens":5e1,"completion_tokens":7}`, reported},
		{"text", `,"usage":{"prompt_tokens":"50","completion_tokens":" 7 "}`, reported},
		{"newer names", `,"usage":{"input_tokens":50,"output_tokens":7}`, reported},
		{"of Groq", `,"x_groq":{"usage":{"prompt_tokens":50,"completion_tokens":7}}`, reported},
		{"cached", `,"usage":{"prompt_tokens":50,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":"32"}}`,
			model.Usage{InputTokens: 50, OutputTokens: 7, CachedTokens: 32}},
		{"null", `,"usage":null`, model.Usage{Estimated: true}},
		{"fields that are null", `,"usage":{"prompt_tokens":null,"completion_tokens":null}`, model.Usage{Estimated: true}},
		{"words", `,"usage":{"prompt_tokens":"many","completion_tokens":true}`, model.Usage{Estimated: true}},
		{"a list", `,"usage":[50,7]`, model.Usage{Estimated: true}},
		{"not a number", `,"usage":{"prompt_tokens":"NaN","completion_tokens":"Infinity"}`, model.Usage{Estimated: true}},
		{"negative", `,"usage":{"prompt_tokens":-50,"completion_tokens":7}`, model.Usage{Estimated: true}},
		{"missing", ``, model.Usage{Estimated: true}},
	}
	for _, test := range tests {
		whole := `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]` + test.body + `}`
		last := `{"choices":[]` + test.body + `}`
		streamed := lines("\n\n", `data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`, "data: "+last,
			`data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`)
		for _, body := range []string{whole, streamed} {
			got, err := ask(t, serveRaw(t, "", body))
			if err != nil || got.Usage.Estimated != test.want.Estimated || !test.want.Estimated && got.Usage != test.want {
				t.Errorf("%s: %+v, %v, want %+v", test.name, got, err, test.want)
			}
		}
	}
	got, err := ask(t, serveRaw(t, "", "data: "+chunkA+"\n\n"+`data: {"choices":[{"index":0,"delta":{},`+
		`"finish_reason":"stop","usage":{"prompt_tokens":50,"completion_tokens":7}}]}`+"\n\n"))
	if err != nil || got.Usage != reported {
		t.Errorf("in the choice: %+v, %v", got, err)
	}
}
