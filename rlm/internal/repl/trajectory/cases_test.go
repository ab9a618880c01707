package trajectory_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// gzipText compresses strings, one member of gzip each.
func gzipText(parts ...string) string {
	var b bytes.Buffer
	for _, text := range parts {
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text)) // to memory
		_ = w.Close()
	}
	return b.String()
}

// wide encodes a text in UTF-16 with a byte order mark.
func wide(text string, isBig bool) string {
	var b strings.Builder
	for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
		low, high := byte(unit), byte(unit>>8)
		if isBig {
			low, high = high, low
		}
		b.Write([]byte{low, high})
	}
	return b.String()
}

// Logs are read as they are found: with marks, other ends of lines, compressed, cut off.
func TestLogsAsTheyAreFound(t *testing.T) {
	t.Parallel()
	second := strings.Replace(iterationLine, `"iteration": 1`, `"iteration": 2`, 1)
	log := metadataLine + "\n" + iterationLine + "\n" + second + "\n"
	for _, tt := range []struct {
		name, log              string
		iterations, runs, torn int
	}{
		{"as it is", log, 2, 1, 0},
		{"without a newline at its end", strings.TrimSpace(log), 2, 1, 0},
		{"with a mark", "\ufeff" + log, 2, 1, 0},
		{"with CRLF", strings.ReplaceAll(log, "\n", "\r\n"), 2, 1, 0},
		{"with a mark and CRLF", "\ufeff" + strings.ReplaceAll(log, "\n", "\r\n"), 2, 1, 0},
		{"with empty lines", "\n" + strings.ReplaceAll(log, "\n", "\n\n \t\n"), 2, 1, 0},
		{"in UTF-16", wide(log, false), 2, 1, 0},
		{"in UTF-16, big-endian", wide(log, true), 2, 1, 0},
		{"compressed", gzipText(log), 2, 1, 0},
		{"compressed in two members", gzipText(log[:300], log[300:]), 2, 1, 0},
		{"compressed with a mark", gzipText("\ufeff" + log), 2, 1, 0},
		{"torn", log + second[:200], 2, 1, 4},
		{"torn, with a newline", log + second[:200] + "\n", 2, 1, 4},
		{"torn in a character", log + `{"type": "iteration", "response": "` + "日"[:2], 2, 1, 4},
		{"torn in an escape", log + `{"type": "iteration", "response": "\u00`, 2, 1, 4},
		{"torn in a name", log + `{"ty`, 2, 1, 4},
		{"torn in NaN", log + `{"type": "iteration", "iteration_time": Na`, 2, 1, 4},
		{"torn in -Infinity", log + `{"type": "iteration", "iteration_time": -Infi`, 2, 1, 4},
		{"torn in true", log + `{"type": "iteration", "ready": tr`, 2, 1, 4},
		{"zero bytes after a power failure", log + strings.Repeat("\x00", 100), 2, 1, 4},
		{"zero bytes after a torn line", log + second[:300] + strings.Repeat("\x00", 100), 2, 1, 4},
		{"compressed and torn", gzipText(log + second[:200]), 2, 1, 4},
		{"the settings only once", log + iterationLine + "\n" + second, 4, 2, 0},
		{"joined logs", log + log + log, 6, 3, 0},
		{"joined logs with marks", log + "\n" + log, 4, 2, 0},
		{"a run that made nothing", metadataLine + "\n" + log, 2, 1, 0},
		{"settings without a run at the end", log + metadataLine, 2, 1, 0},
		{"two questions without settings", iterationLine + "\n" + iterationLine, 2, 2, 0},
		{"no settings", iterationLine, 1, 1, 0},
		{"NaN and Infinity", strings.Replace(iterationLine, `"text"`, `[NaN, Infinity, -Infinity, "NaN"]`, 1), 1, 1, 0},
		{"Infinity in the settings", strings.Replace(log, `"environment_kwargs": {}`,
			`"environment_kwargs": {"timeout": Infinity, "p": NaN}`, 1), 2, 1, 0},
		{"no locals", strings.Replace(iterationLine, `"locals": {"context": "text"}, `, "", 1), 1, 1, 0},
		{"locals that are null", strings.Replace(iterationLine, `{"context": "text"}`, "null", 1), 1, 1, 0},
		{"messages in parts", strings.Replace(iterationLine, `"content": "u"`,
			`"content": [{"type": "text", "text": "u"}, {"type": "image_url", "image_url": {}}]`, 1), 1, 1, 0},
		{"a message without content", strings.Replace(iterationLine, `"content": "u"`, `"content": null`, 1), 1, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := trajectory.NewReader(strings.NewReader(tt.log))
			n := 0
			for {
				it, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if n++; it.CodeBlocks[0].Code != "print(1)" || it.Prompt[0].Content != "s" {
					t.Errorf("iteration %+v", it)
				}
			}
			if n != tt.iterations || r.Run() != tt.runs || r.Torn() != tt.torn {
				t.Errorf("%d iterations, %d runs, torn in line %d", n, r.Run(), r.Torn())
			}
		})
	}
}

// A compressed log whose end is missing is used as far as it goes, and damaged data are an error.
func TestCompressedLogWithoutItsEnd(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	seed := uint32(1)
	for range 30 {
		var random strings.Builder // data that do not compress well
		for range 2000 {
			seed = seed*1664525 + 1013904223
			random.WriteByte('a' + byte(seed>>24)%26)
		}
		log.WriteString(strings.Replace(iterationLine, `"response": "r"`, `"response": "`+random.String()+`"`, 1) + "\n")
	}
	data := gzipText(log.String())
	for _, cut := range []int{10, len(data) / 4, len(data) / 2} {
		r := trajectory.NewReader(strings.NewReader(data[:len(data)-cut]))
		var err error
		n := -1
		for ; err == nil; n++ {
			_, err = r.Next()
		}
		if !errors.Is(err, io.EOF) || n == 0 || r.Torn() != n+1 {
			t.Errorf("without %d bytes: %d iterations, torn in line %d, %v", cut, n, r.Torn(), err)
		}
	}
	for name, damaged := range map[string]string{"header": data[:5], "data": data[:40] + "xxxx" + data[44:],
		"tail": data + strings.Repeat("tail", 5)} {
		r := trajectory.NewReader(strings.NewReader(damaged))
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if _, ok := errors.AsType[*trajectory.LineError](err); !ok || !strings.Contains(err.Error(), "gzip") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A value keeps the numbers that JSON does not have, and a text that names them stays text.
func TestNumbersThatJSONDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`[NaN, Infinity, -Infinity]`, `{"NaN": "Infinity \" NaN", "b": [-Infinity, "\\", NaN]}`,
		`"NaN"`, `NaN`, `[-0.0, 0, 1e99]`, `{"a": "-0e0 1e999"}`} {
		line := strings.Replace(iterationLine, `"text"`, value, 1)
		it, err := trajectory.NewReader(strings.NewReader(line)).Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(trajectory.Python(it.CodeBlocks[0].Result.Locals["context"])); got != value {
			t.Errorf("%s was read as %s", value, got)
		}
		var b bytes.Buffer
		w, err := trajectory.NewWriter(&b, new(trajectory.Metadata))
		if err == nil {
			err = w.Write(it)
		}
		compact := strings.NewReplacer(`: `, `:`, `, `, `,`).Replace(value)
		if err != nil || !strings.Contains(b.String(), compact) {
			t.Errorf("%s was written as %s, %v", value, b.String(), err)
		}
	}
}

// A file of another program is named, and one of the format is not taken for one.
func TestFilesOfOtherProgramsAreNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, want string }{
		{`{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}`, "chat messages (OpenAI)"},
		{`{"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}`, "chat messages (OpenAI)"},
		{`{"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": {}}`, "batch of model calls"},
		{`{"id": "b", "custom_id": "r1", "response": {"status_code": 200}, "error": null}`, "batch of model calls"},
		{`{"id": "chatcmpl-1", "object": "chat.completion", "choices": []}`, "answers of the OpenAI API"},
		{`{"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}`, "Anthropic API"},
		{`{"conversations": [{"from": "human", "value": "hi"}]}`, "ShareGPT"},
		{`{"role": "user", "content": "hi"}` + "\n" + `{"role": "assistant", "content": "ho"}`, "chat messages"},
		{`{"id": "1", "trace_id": "2", "run_type": "llm", "inputs": {}, "outputs": {}, "dotted_order": "x"}`, "LangSmith"},
		{`[{"id": "1", "run_type": "chain", "inputs": {}}]`, "LangSmith"},
		{`{"id": "t", "name": "x", "observations": [], "scores": []}`, "Langfuse"},
		{`{"id": "o", "traceId": "t", "type": "GENERATION", "input": {}, "output": {}}`, "Langfuse"},
		{`{"resourceSpans": [{"resource": {}}]}`, "OpenTelemetry"},
		{`{"name": "llm", "context": {"trace_id": "0x1", "span_id": "0x2"}, "parent_id": null}`, "OpenTelemetry"},
		{`{"info": {"trace_id": "tr-1"}, "data": {"spans": []}}`, "MLflow"},
		{`{"type": "summary", "summary": "Fix", "leafUuid": "x"}`, "Claude Code"},
		{`{"parentUuid": null, "sessionId": "s", "type": "user", "uuid": "u", "message": {}}`, "Claude Code"},
		{`{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}`, "Claude Code"},
		{`{"type": "system", "subtype": "init", "session_id": "s", "tools": []}`, "Claude Code"},
		{`{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "x"}}`, "Codex"},
		{`{"type": "thread.started", "thread_id": "x"}`, "Codex"},
		{`{"sessionId": "s", "projectHash": "h", "messages": []}`, "Gemini CLI"},
		{`[{"sessionId": "s", "messageId": 0, "type": "user", "message": "hi"}]`, "Gemini CLI"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "initialize"}`, "JSON-RPC"},
		{`{"level": "info", "msg": "started", "time": "now"}`, "a log of a program"},
		{`{"level": 30, "time": 1, "pid": 1, "msg": "up"}`, "a log of a program"},
		{`{"asctime": "now", "levelname": "INFO", "message": "up"}`, "a log of a program"},
		{"2026-01-01 12:00:00 INFO started\n", "plain text"},
		{"[2026-01-01 12:00:00] INFO started\n", "a plain text log"},
		{"# aider chat started at 2026-01-01 12:00:00\n", "aider"},
		{"event: message_start\ndata: {}\n", "stream of events"},
		{"<!DOCTYPE html><html></html>", "an HTML page"},
		{"iteration,prompt,response\n1,a,b\n", "plain text"},
		{"{\n  \"cells\": [],\n  \"nbformat\": 4\n}\n", "a Jupyter notebook"},
		{`{"log": {"version": "1.2", "entries": []}}`, "a HAR file"},
		{"{\n \"trajectory\": [],\n \"history\": []\n}", "SWE-agent"},
		{`[{"title": "x", "mapping": {}}]`, "ChatGPT"},
		{`{"id": "1", "model": "m", "prompt": "p", "response": "r", "conversation_id": "c"}`, "a log of llm"},
		{`{"type": "manifest", "format": "perdure-export", "version": 1, "tree_id": "tree-1"}`, "an export of perdure"},
		{`{"run_metadata": {"root_model": "m"}, "iterations": []}`, "in one object"},
		{"[" + metadataLine + ",\n" + iterationLine + "]", "a list of the lines of a log"},
		{strings.ReplaceAll(metadataLine, ", ", ",\n  ") + "\n", "a log with lines that are broken"},
		{`{"a": 1, "b": 2}`, `JSON with the members "a", "b"`},
		{"[]", "an empty JSON list"},
		{"{not json", "no JSON"},
		{"PK\x03\x04\x14\x00\x00\x00", "a zip archive"},
		{"\x28\xb5\x2f\xfd\x04\x00", "zstd"},
		{"SQLite format 3\x00\x10\x00", "SQLite"},
		{"caf\xe9 ferm\xe9\n", "no UTF-8 text"},
		{gzipText(`{"messages": []}`), "chat messages"},
		{"\ufeff" + `{"messages": []}`, "chat messages"},
	} {
		_, err := trajectory.NewReader(strings.NewReader(tt.file)).Next()
		bad, ok := errors.AsType[*trajectory.LineError](err)
		if !ok || !strings.Contains(err.Error(), "this is ") || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "not a log of the reference implementation") {
			t.Errorf("%.60q: %v, want %s", tt.file, err, tt.want)
		}
		if ok && bad.Line != 1 {
			t.Errorf("%.60q: line %d", tt.file, bad.Line)
		}
	}
	for _, twin := range []string{
		strings.Replace(iterationLine, `"type"`, `"messages": [], "sessionId": "s", "type"`, 1),
		strings.Replace(iterationLine, `"role": "user"`, `"role": "user", "jsonrpc": "2.0"`, 1),
		strings.Replace(iterationLine, `"text"`, `{"run_type": "llm", "messages": []}`, 1),
	} {
		if _, err := trajectory.NewReader(strings.NewReader(twin)).Next(); err != nil {
			t.Errorf("%.80q: %v", twin, err)
		}
	}
}
