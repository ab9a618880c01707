package trajectory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// program is a program that writes files which are no logs of the reference implementation.
type program struct {
	// name completes "this is …".
	name string
	// members are those that its first object has, values how the text of some begins.
	members []string
	values  map[string]string
	hint    string
}

// programs are the known ones: the first that matches counts.
func programs() []program {
	type has = map[string]string
	return []program{
		{name: "an export of perdure", members: []string{"format", "tree_id"}, values: has{"type": "manifest"},
			hint: "import it with perdure import FILE, or export the tree with --format rlm-jsonl"},
		{name: "a trajectory of the reference implementation in one object", members: []string{"run_metadata", "iterations"},
			hint: "write its iterations one a line: jq -c '.iterations[]' FILE > run.jsonl"},
		{name: "a trajectory of the reference implementation in one object", members: []string{"metadata.iterations"},
			hint: "write its iterations one a line: jq -c '.metadata.iterations[]' FILE > run.jsonl"},
		{name: "a session of Gemini CLI", members: []string{"sessionId", "projectHash"}},
		{name: "a log of Gemini CLI", members: []string{"sessionId", "messageId", "message"}},
		{name: "a session of Claude Code", members: []string{"sessionId", "type"}},
		{name: "a session of Claude Code", members: []string{"leafUuid", "summary"}},
		{name: "a session of Claude Code", members: []string{"messageId", "snapshot"}},
		{name: "the output of Claude Code", members: []string{"session_id", "type"}},
		{name: "a session of Codex", members: []string{"timestamp", "type", "payload"}},
		{name: "a session of Codex", members: []string{"id", "timestamp", "instructions"}},
		{name: "the output of Codex", values: has{"type": "thread.started"}},
		{name: "the output of Codex", members: []string{"id", "msg.type"}},
		{name: "a file of a batch of model calls", members: []string{"custom_id"}},
		{name: "an export of LangSmith", members: []string{"run_type"}},
		{name: "an export of LangSmith", members: []string{"inputs", "outputs"}},
		{name: "an export of Langfuse", members: []string{"observations"}},
		{name: "an export of Langfuse", members: []string{"traceId", "type"}},
		{name: "an export of Langfuse", members: []string{"projectId"}},
		{name: "an export of Langfuse", members: []string{"htmlPath"}},
		{name: "a batch of events of Langfuse", members: []string{"type", "body"}},
		{name: "an export of OpenTelemetry", members: []string{"resourceSpans"}},
		{name: "an export of OpenTelemetry", members: []string{"resource_spans"}},
		{name: "an export of OpenTelemetry", members: []string{"resourceLogs"}},
		{name: "a file of spans of OpenTelemetry", members: []string{"traceId", "spanId"}},
		{name: "a file of spans of OpenTelemetry", members: []string{"trace_id", "span_id"}},
		{name: "a file of spans of OpenTelemetry", members: []string{"context.trace_id"}},
		{name: "a trace of MLflow", members: []string{"info.trace_id"}},
		{name: "a trace of MLflow", members: []string{"info.request_id"}},
		{name: "a trace of Weave", members: []string{"op_name"}},
		{name: "a log of LiteLLM", members: []string{"litellm_call_id"}},
		{name: "an export of traces", members: []string{"trace_id"}},
		{name: "a log of JSON-RPC messages", members: []string{"jsonrpc"}},
		{name: "a HAR file of a browser", members: []string{"log.entries"}},
		{name: "a Jupyter notebook", members: []string{"cells", "nbformat"}},
		{name: "a trajectory of mini-swe-agent", members: []string{"trajectory_format"}},
		{name: "a trajectory of SWE-agent", members: []string{"trajectory"}},
		{name: "a log of Inspect", members: []string{"eval", "status"}},
		{name: "a file of events of OpenHands", members: []string{"source", "action"}},
		{name: "a file of events of OpenHands", members: []string{"source", "observation"}},
		{name: "a file of messages of LangChain", members: []string{"lc", "kwargs"}},
		{name: "an export of ChatGPT", members: []string{"mapping", "title"}},
		{name: "an export of Claude", members: []string{"chat_messages"}},
		{name: "a log of llm", members: []string{"conversation_id", "prompt", "response"}},
		{name: "a file of rollouts of a training", members: []string{"prompt", "completion", "reward"}},
		{name: "a file of answers of the OpenAI API", values: has{"object": "chat.completion"}},
		{name: "a file of answers of the OpenAI API", values: has{"object": "response"}},
		{name: "a file of answers of the OpenAI API", members: []string{"choices"}},
		{name: "a file of answers of the Anthropic API", members: []string{"role", "content", "stop_reason"}},
		{name: "a file of chat messages (OpenAI)", members: []string{"messages"}},
		{name: "a file of chat messages (ShareGPT)", members: []string{"conversations"}},
		{name: "a file of chat messages", members: []string{"role", "content"}},
		{name: "a file of training data", members: []string{"prompt", "completion"}},
		{name: "a file of training data", members: []string{"instruction", "output"}},
		{name: "a log of a program", members: []string{"level", "msg"}},
		{name: "a log of a program", members: []string{"level", "message"}},
		{name: "a log of a program", members: []string{"levelname", "message"}},
		{name: "a log of a program", members: []string{"severity", "message"}},
		{name: "a log of a program", members: []string{"event", "level"}},
		{name: "a log of a program", members: []string{"event", "timestamp"}},
	}
}

// matches reports whether an object is of the program.
func (p *program) matches(object map[string]json.RawMessage) bool {
	for _, path := range p.members {
		name, inner, isNested := strings.Cut(path, ".")
		value, ok := object[name]
		var nested map[string]json.RawMessage
		if !ok || isNested && (json.Unmarshal(value, &nested) != nil || nested[inner] == nil) {
			return false
		}
	}
	for name, want := range p.values {
		var text string
		if json.Unmarshal(object[name], &text) != nil || !strings.HasPrefix(text, want) {
			return false
		}
	}
	return true
}

// isLogLine reports whether a line has the type of a line of a log.
func isLogLine(line []byte) bool {
	var kind struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(line, &kind)
	return err == nil && (kind.Type == typeMetadata || kind.Type == typeIteration)
}

// foreign is the error of a file whose first line is no line of a log.
func (r *Reader) foreign(line []byte) error {
	name, hint := r.nameOf(line)
	if hint == "" {
		hint = "write a log with the logger of github.com/alexzhang13/rlm, or with perdure export --format rlm-jsonl"
	}
	return &LineError{Line: r.line, Msg: "this is " + name + ", not a log of the reference implementation", Hint: hint}
}

// nameOf names what a file is by its first line, and what to do with it. A document in several lines is
// read to its end.
func (r *Reader) nameOf(line []byte) (name, hint string) {
	if name := binaryName(line); name != "" {
		return name, ""
	}
	if line[0] != '{' && line[0] != '[' {
		return textName(line), ""
	}
	var document json.RawMessage
	const most = 64 << 20
	rest := io.MultiReader(bytes.NewReader(line), io.LimitReader(r.in, most))
	if err := json.NewDecoder(rest).Decode(&document); err != nil {
		if line[0] == '[' {
			return textName(line), ""
		}
		return fmt.Sprintf("text that is no JSON (%v)", err), ""
	}
	var list []json.RawMessage
	if json.Unmarshal(document, &list) == nil {
		if len(list) == 0 {
			return "an empty JSON list", ""
		}
		if isLogLine(list[0]) {
			return "a list of the lines of a log", "write one a line: jq -c '.[]' FILE > run.jsonl"
		}
		document = list[0]
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(document, &object) != nil {
		return "a JSON list without objects", ""
	}
	if isLogLine(document) {
		return "a log with lines that are broken", "write one object a line: jq -c . FILE > run.jsonl"
	}
	for _, p := range programs() {
		if p.matches(object) {
			return p.name, p.hint
		}
	}
	return "JSON with the members " + listMembers(object), ""
}

// listMembers lists the first members of an object.
func listMembers(object map[string]json.RawMessage) string {
	const most, long = 6, 40
	names := slices.Sorted(maps.Keys(object))
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(object)-most)
	}
	for i := range names {
		names[i] = fmt.Sprintf("%.*q", long, names[i])
	}
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, ", ") + more
}

// binaryName names a file that is no text by its first bytes, "" if it is text.
func binaryName(line []byte) string {
	for _, f := range []struct{ name, magic string }{
		{"a zip archive", "PK\x03\x04"}, {"a file that zstd compressed", "\x28\xb5\x2f\xfd"},
		{"a file that xz compressed", "\xfd7zXZ"}, {"a file that bzip2 compressed", "BZh"},
		{"a SQLite database", "SQLite format 3"}, {"a Parquet file", "PAR1"}, {"an Arrow file", "ARROW1"},
		{"a PDF document", "%PDF-"}, {"a pickled object of Python", "\x80\x04\x95"},
	} {
		if bytes.HasPrefix(line, []byte(f.magic)) {
			return f.name
		}
	}
	if bytes.IndexByte(line, 0) >= 0 || !utf8.Valid(line) {
		return "a file that is no UTF-8 text"
	}
	return ""
}

// textName names text by its first line.
func textName(line []byte) string {
	text := strings.ToLower(string(line[:min(len(line), 200)]))
	switch {
	case strings.HasPrefix(text, "# aider chat started"):
		return "a chat history of aider"
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return "an HTML page"
	case strings.HasPrefix(text, "<"):
		return "an XML document"
	case strings.HasPrefix(text, "data:"), strings.HasPrefix(text, "event:"):
		return "a stream of events of a model's answer"
	case strings.HasPrefix(text, "version https://git-lfs"):
		return "a pointer of Git LFS, without the file itself"
	case strings.HasPrefix(text, "[") && strings.Contains(text, "]"):
		return "a plain text log"
	}
	return "plain text"
}
