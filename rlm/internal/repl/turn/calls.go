package turn

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// takeCall takes a call of a tool that the current line begins, or has behind text, if it is one.
func (s *scanner) takeCall() bool {
	line, _ := s.current()
	at := firstMark(line)
	if at < 0 {
		return false
	}
	rest := s.text[s.at+at:]
	for _, read := range s.readers(rest) {
		c, length := read(rest)
		if length == 0 {
			continue
		}
		s.write(line[:at])
		start := s.line
		if c.code != "" {
			s.take(c, start)
		} else if c.name != "" {
			s.skip("a call of " + c.name)
		}
		s.skipTo(s.at + at + length)
		return true
	}
	return false
}

// readers are what can read a call that a text begins with.
func (s *scanner) readers(text string) []func(string) (call, int) {
	switch {
	case text[0] == '{' || strings.HasPrefix(text, "[{"):
		return []func(string) (call, int){s.readBare}
	case text[0] == '[' || strings.HasPrefix(text, "<|python_tag|>"):
		return []func(string) (call, int){s.readToken}
	case strings.HasPrefix(text, "<|") || strings.HasPrefix(text, "<｜tool"):
		return []func(string) (call, int){s.readSection, s.readChannel}
	}
	return []func(string) (call, int){s.readInvoke, s.readFunctionTag, s.readToolCall, s.readElement}
}

// take takes the code of a call.
func (s *scanner) take(c call, line int) {
	if !c.runs() {
		s.skip(cmp.Or(c.language, c.name))
		return
	}
	s.add(c.code, line, false)
}

// marks are how calls of tools begin in a line. A JSON object begins the line itself.
func marks() []string {
	return []string{"<function_calls>", "<function=", "<invoke", "<tool_call", "<｜DSML｜", "<｜tool", "<|tool_call",
		"<|python_tag|>", "[TOOL_CALLS]", "<|channel|>", "<execute", "<python>", "<repl>", "<tool_code>",
		"<code_interpreter>", "<minimax:tool_call>", "<code>"}
}

// firstMark returns where a call of a tool can begin in a line, -1 if nowhere.
func firstMark(line string) int {
	const longest = 2000
	head := line[:min(len(line), longest)]
	trimmed := strings.TrimLeft(head, " \t")
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[{") || strings.HasPrefix(trimmed, "<code>") {
		return len(head) - len(trimmed)
	}
	if strings.IndexByte(head, '<') < 0 && !strings.Contains(head, "[TOOL_CALLS]") {
		return -1
	}
	first := -1
	for _, mark := range marks() {
		if i := strings.Index(head, mark); i >= 0 && (first < 0 || i < first) && strings.Count(head[:i], "`")%2 == 0 {
			first = i
		}
	}
	return first
}

// call is a call of a tool in the text of a reply.
type call struct {
	name, language, code string
}

// runs reports whether the call is one for the REPL.
func (c *call) runs() bool {
	for _, word := range []string{"bash", "shell", "terminal", "sql", "javascript", "node", "powershell", "search",
		"browser"} {
		if strings.Contains(strings.ToLower(c.name), word) || strings.EqualFold(c.language, word) {
			return false
		}
	}
	run, _ := tagRuns(c.language)
	return run
}

// codeKeys are the names of arguments that hold code.
func codeKeys() []string {
	return []string{"code", "python_code", "source", "script", "python", "cell", "snippet", "program", "code_string",
		"block"}
}

// ofArguments sets the code from the arguments of a call, which are an object or code itself.
func (c *call) ofArguments(raw json.RawMessage) bool {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		var inner map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &inner) == nil {
			return c.ofObject(inner)
		}
		if c.isPython() {
			c.code = text
		}
		return c.code != ""
	}
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && c.ofObject(object)
}

func (c *call) isPython() bool {
	name := strings.ToLower(c.name)
	return strings.Contains(name, "python") || strings.Contains(name, "repl") || strings.Contains(name, "exec") ||
		strings.Contains(name, "code")
}

func (c *call) ofObject(object map[string]json.RawMessage) bool {
	_ = json.Unmarshal(object["language"], &c.language)
	keys := codeKeys()
	if c.isPython() {
		keys = append(keys, "input", "query", "command", "expression")
	}
	for _, key := range keys {
		var lines []string
		if raw := object[key]; json.Unmarshal(raw, &c.code) == nil && c.code != "" {
			return true
		} else if json.Unmarshal(raw, &lines) == nil && len(lines) > 0 {
			c.code = strings.Join(lines, "\n")
			return true
		}
	}
	return false
}

// ofJSON returns the call that a JSON value is.
func ofJSON(raw json.RawMessage) (c call, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, one := range list {
			if next, is := ofJSON(one); is {
				next.code = strings.TrimRight(next.code, "\n") + "\n"
				c.name, c.language, ok = next.name, next.language, true
				c.code += next.code
			}
		}
		return c, ok
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return c, false
	}
	if calls := o["tool_calls"]; calls != nil {
		return ofJSON(calls)
	}
	if f := o["function"]; len(f) > 0 && f[0] == '{' {
		return ofJSON(f)
	}
	for _, key := range []string{"name", "tool", "tool_name", "function", "action", "recipient_name"} {
		if json.Unmarshal(o[key], &c.name) == nil && c.name != "" {
			break
		}
	}
	for _, key := range []string{"arguments", "parameters", "input", "args", "action_input", "tool_input", "params"} {
		if raw := o[key]; raw != nil && c.ofArguments(raw) {
			return c, true
		}
	}
	if c.name == "" && (o["code"] == nil || len(o) > 2) {
		return c, false // an object that holds code among other things is an answer
	}
	return c, c.ofObject(o)
}

// jsonCall takes the code of a call that a fence holds as JSON.
func (s *scanner) jsonCall(text string, line int, name string) bool {
	trimmed := strings.TrimSpace(text)
	isTool := name == "" || name == "json" || strings.HasPrefix(name, "tool")
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || !isTool {
		return false
	}
	c, ok := ofJSON(json.RawMessage(trimmed))
	if ok && c.code != "" {
		s.take(c, line)
	}
	return ok && c.code != ""
}

// decode returns the JSON value that a text begins with, also one with line ends in its strings, and
// its length; 0 if it is none.
func (s *scanner) decode(text string) (json.RawMessage, int) {
	if s.decodings >= maxDecodings {
		return nil, 0
	}
	var raw json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text))
	if dec.Decode(&raw) == nil {
		return raw, int(dec.InputOffset())
	}
	s.decodings++
	const longest = 1 << 20
	repaired, length := escapeLines(text[:min(len(text), longest)])
	if length == 0 || !json.Valid([]byte(repaired)) {
		return nil, 0
	}
	return json.RawMessage(repaired), length
}

// escapeLines returns the object that a text begins with, with the line ends in its strings escaped, and its
// length in the text; 0 if it is not closed.
func escapeLines(text string) (out string, length int) {
	var b strings.Builder
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			b.WriteByte(text[i])
			continue
		case c == '"':
			inString = !inString
		case inString && c == '\n':
			b.WriteString(`\n`)
			continue
		case inString && c == '\t':
			b.WriteString(`\t`)
			continue
		case !inString && (c == '{' || c == '['):
			depth++
		case !inString && (c == '}' || c == ']'):
			if depth--; depth == 0 {
				b.WriteByte(c)
				return b.String(), i + 1
			}
		}
		b.WriteByte(text[i])
	}
	return "", 0
}

var (
	// Some models write the names of elements with a prefix.
	invokeTag = lazyregexp.New(`^(<(?:\w+:)?function_calls>\s*|<minimax:tool_call>\s*|<tool_call>\s*)?` +
		`<(?:\w+:|｜DSML｜)?invoke name="([^"\n]{1,100})"\s*>`)
	parameterTag = lazyregexp.New(`<(?:\w+:|｜DSML｜)?parameter name="([^"\n]{1,100})"[^>\n]{0,40}>\n?`)
	functionTag  = lazyregexp.New(`^(<tool_call>\s*)?<function=([^>\n]{1,100})>`)
	valueTag     = lazyregexp.New(`<parameter=([^>\n]{1,100})>\n?`)
	endInvoke    = lazyregexp.New(`</(?:\w+:|｜DSML｜)?invoke>`)
	endParameter = lazyregexp.New(`</(?:\w+:|｜DSML｜)?parameter>`)
	endFunction  = lazyregexp.New(`</function>`)
)

// readInvoke reads a call with elements invoke and parameter.
func (s *scanner) readInvoke(text string) (c call, length int) {
	inside := strings.TrimLeft(strings.TrimPrefix(text, "<｜DSML｜function_calls>"), "\n ")
	at := invokeTag().FindStringSubmatchIndex(head(inside))
	if at == nil {
		return c, 0
	}
	c.name = inside[at[4]:at[5]]
	body, end := untilMatch(inside[at[1]:], endInvoke())
	c.ofElements(body, parameterTag())
	return c, len(text) - len(inside) + at[1] + end
}

// readFunctionTag reads a call as Qwen3-Coder writes it.
func (s *scanner) readFunctionTag(text string) (c call, length int) {
	at := functionTag().FindStringSubmatchIndex(head(text))
	if at == nil {
		return c, 0
	}
	c.name = text[at[4]:at[5]]
	body, end := untilMatch(text[at[1]:], endFunction())
	c.ofElements(body, valueTag())
	return c, at[1] + end
}

// matcher is a regular expression.
type matcher interface {
	FindStringIndex(s string) []int
	FindAllStringSubmatchIndex(s string, n int) [][]int
}

// ofElements sets the code from the elements of a call that have the names of arguments.
func (c *call) ofElements(body string, tag matcher) {
	const most = 50
	values := make(map[string]json.RawMessage)
	for _, at := range tag.FindAllStringSubmatchIndex(body, most) {
		value, _ := untilMatch(body[at[1]:], endParameter())
		raw, err := json.Marshal(strings.TrimSuffix(value, "\n"))
		if err == nil {
			values[body[at[2]:at[3]]] = raw
		}
	}
	c.ofObject(values)
}

// head returns the beginning of a text, which an expression is matched with.
func head(text string) string {
	const longest = 500
	return text[:min(len(text), longest)]
}

// untilMatch returns a text up to a closing tag, and the length with the tag: all if there is none.
func untilMatch(text string, tag matcher) (inside string, length int) {
	at := tag.FindStringIndex(text)
	if at == nil {
		return text, len(text)
	}
	return text[:at[0]], at[1]
}

// until is untilMatch for the first of several marks.
func until(text string, marks ...string) (inside string, length int) {
	end, length := len(text), len(text)
	for _, mark := range marks {
		if at := strings.Index(text[:end], mark); at >= 0 {
			end, length = at, at+len(mark)
		}
	}
	return text[:end], length
}

// readToolCall reads a call in the element tool_call: JSON, or the elements of GLM.
func (s *scanner) readToolCall(text string) (c call, length int) {
	inside, ok := strings.CutPrefix(text, "<tool_call>")
	if !ok {
		return c, 0
	}
	trimmed := strings.TrimLeft(inside, " \t\r\n")
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		raw, n := s.decode(trimmed)
		if n == 0 {
			return c, 0
		}
		c, _ = ofJSON(raw)
		end := len(text) - len(trimmed) + n
		if rest := strings.TrimLeft(text[end:], " \t\r\n"); strings.HasPrefix(rest, "</tool_call>") {
			end = len(text) - len(rest) + len("</tool_call>")
		}
		return c, end
	}
	body, n := until(inside, "</tool_call>")
	name, rest, found := strings.Cut(body, "<arg_key>")
	if !found {
		return c, 0
	}
	c.name = strings.TrimSpace(name)
	values := make(map[string]json.RawMessage)
	for part := range strings.SplitSeq(rest, "<arg_key>") {
		key, value, _ := strings.Cut(part, "</arg_key>")
		_, value, _ = strings.Cut(value, "<arg_value>")
		value, _, _ = strings.Cut(value, "</arg_value>")
		if raw, err := json.Marshal(value); err == nil {
			values[strings.TrimSpace(key)] = raw
		}
	}
	c.ofObject(values)
	return c, len(text) - len(inside) + n
}

// readToken reads a call behind a token of Llama or Mistral.
func (s *scanner) readToken(text string) (c call, length int) {
	if inside, ok := strings.CutPrefix(text, "<|python_tag|>"); ok {
		body, n := until(inside, "<|eom_id|>", "<|eot_id|>")
		c = call{name: "python", code: body}
		if object := strings.TrimSpace(body); strings.HasPrefix(object, "{") {
			if from, is := ofJSON(json.RawMessage(object)); is {
				c = from
			}
		}
		return c, len(text) - len(inside) + n
	}
	inside, ok := strings.CutPrefix(text, "[TOOL_CALLS]")
	if !ok {
		return c, 0
	}
	at := strings.IndexAny(head(inside), "[{")
	if args := strings.Index(head(inside), "[ARGS]"); args >= 0 && args == at {
		c.name = strings.TrimSpace(inside[:at])
		at += len("[ARGS]")
	} else if at >= 0 {
		c.name = strings.TrimSpace(inside[:at])
	}
	if at < 0 {
		return c, 0
	}
	raw, n := s.decode(inside[at:])
	if n == 0 {
		return c, 0
	}
	if c.name != "" {
		c.ofArguments(raw)
	} else {
		c, _ = ofJSON(raw)
	}
	return c, len(text) - len(inside) + at + n
}

// readSection reads the calls of DeepSeek and Kimi.
func (s *scanner) readSection(text string) (c call, length int) {
	inside := text
	for _, token := range []string{"<｜tool▁calls▁begin｜>", "<|tool_calls_section_begin|>", "\n", "<｜tool▁call▁begin｜>",
		"<|tool_call_begin|>"} {
		inside = strings.TrimPrefix(inside, token)
	}
	if len(inside) == len(text) || strings.HasPrefix(text, "\n") {
		return c, 0
	}
	body, n := until(inside, "<｜tool▁call▁end｜>", "<|tool_call_end|>")
	name, arguments, found := strings.Cut(body, "<｜tool▁sep｜>")
	if !found {
		if name, arguments, found = strings.Cut(body, "<|tool_call_argument_begin|>"); !found {
			return c, 0
		}
	}
	if name == "function" { // of DeepSeek, before its version 3.1
		name, arguments, _ = strings.Cut(arguments, "\n")
	}
	c.name = strings.TrimSpace(strings.TrimPrefix(name, "functions."))
	arguments = strings.TrimSpace(strings.Trim(strings.TrimPrefix(strings.TrimSpace(arguments), "```json"), "` \n"))
	if raw, used := s.decode(arguments); used > 0 {
		c.ofArguments(raw)
	} else if c.isPython() {
		c.code = arguments
	}
	return c, len(text) - len(inside) + n
}

var channelTag = lazyregexp.New(`^<\|channel\|>[^<\n]{0,40}to=([\w.]{1,60})[^<\n]{0,40}` +
	`(?:<\|constrain\|>[^<\n]{0,20})?<\|message\|>`)

// readChannel reads a call of gpt-oss.
func (s *scanner) readChannel(text string) (c call, length int) {
	at := channelTag().FindStringSubmatchIndex(head(text))
	if at == nil {
		return c, 0
	}
	c.name = strings.TrimPrefix(text[at[2]:at[3]], "functions.")
	body, n := until(text[at[1]:], "<|call|>", "<|end|>", "<|start|>")
	if raw, used := s.decode(strings.TrimSpace(body)); used > 0 {
		c.ofArguments(raw)
	} else if c.isPython() {
		c.code = body
	}
	return c, at[1] + n
}

// readElement reads code in an element that is named for it.
func (s *scanner) readElement(text string) (c call, length int) {
	for _, name := range []string{"execute", "execute_ipython", "execute_python", "python", "repl", "tool_code",
		"code_interpreter", "code"} {
		inside, ok := strings.CutPrefix(text, "<"+name+">")
		if !ok || name == "code" && !strings.HasPrefix(inside, "\n") {
			continue // an element code in a line is one of HTML
		}
		if s.decodings >= maxDecodings {
			return c, 0
		}
		end := strings.Index(inside, "</"+name+">")
		if end < 0 {
			s.decodings++
			return c, 0
		}
		code := strings.Trim(inside[:end], "\n")
		if o := openingOf(firstLine(code)); o != nil { // a fence within the element
			return c, 0
		}
		return call{name: "python", code: code}, len(text) - len(inside) + end + len("</"+name+">")
	}
	return c, 0
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// readBare reads a call as a JSON object that begins a line.
func (s *scanner) readBare(text string) (c call, length int) {
	if text[0] != '{' && !strings.HasPrefix(text, "[{") {
		return c, 0
	}
	raw, n := s.decode(text)
	if n == 0 {
		return c, 0
	}
	c, ok := ofJSON(raw)
	if !ok || c.code == "" {
		return call{}, 0
	}
	return c, n
}
