package meter

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/model"
)

// API is a protocol in which models are asked.
type API string

// The protocols. Requests of other kinds pass the meter and are only counted.
const (
	Chat      API = "chat"      // OpenAI chat completions
	Responses API = "responses" // OpenAI responses
	Messages  API = "messages"  // Anthropic messages
	Generate  API = "generate"  // Gemini generateContent and streamGenerateContent
)

// apiOf returns the protocol of a request, and the model if the path names it.
func apiOf(method, path string) (API, string) {
	if method != http.MethodPost {
		return "", ""
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	name, verb, _ := strings.Cut(last, ":")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat, ""
	case last == "responses":
		return Responses, ""
	case last == "messages":
		return Messages, ""
	case verb == "generateContent" || verb == "streamGenerateContent":
		return Generate, name
	}
	return "", ""
}

// field is a part of a request or an answer that the meter reads.
type field byte

const (
	fieldNone field = iota
	fieldModel
	fieldInput
	fieldMoreInput // tokens that Gemini counts in addition
	fieldOutput
	fieldThoughts // tokens of thoughts that are not part of the output
	fieldCached
	fieldCacheWrite
	fieldText
	fieldStop
	fieldErrorMessage
	fieldErrorType
	fieldErrorCode
	fieldRetryDelay
	// Of requests.
	fieldSystem
	fieldFirst // the first message
	fieldTool
)

// answerField returns the field at a path of an answer, or of an event of a stream.
func answerField(api API, path string) field {
	switch path {
	case "error.message", "error":
		return fieldErrorMessage
	case "error.type", "error.status", "error.details.*.reason":
		return fieldErrorType
	case "error.code":
		return fieldErrorCode
	case "error.details.*.retryDelay":
		return fieldRetryDelay
	}
	switch api {
	case Chat:
		return chatField(path)
	case Responses:
		return responsesField(strings.TrimPrefix(path, "response."))
	case Messages:
		return messagesField(strings.TrimPrefix(path, "message."))
	case Generate:
		return generateField(strings.TrimPrefix(path, "response."))
	}
	return fieldNone
}

func chatField(path string) field {
	switch path {
	case "model":
		return fieldModel
	case "usage.prompt_tokens":
		return fieldInput
	case "usage.completion_tokens":
		return fieldOutput
	case "usage.prompt_tokens_details.cached_tokens":
		return fieldCached
	case "choices.*.delta.content", "choices.*.message.content", "choices.*.delta.tool_calls.*.function.arguments",
		"choices.*.message.tool_calls.*.function.arguments":
		return fieldText
	case "choices.*.finish_reason":
		return fieldStop
	}
	return fieldNone
}

func responsesField(path string) field {
	switch path {
	case "model":
		return fieldModel
	case "usage.input_tokens":
		return fieldInput
	case "usage.output_tokens":
		return fieldOutput
	case "usage.input_tokens_details.cached_tokens":
		return fieldCached
	case "delta", "output.*.content.*.text", "output.*.arguments":
		return fieldText
	case "incomplete_details.reason":
		return fieldStop
	case "error.message", "message":
		return fieldErrorMessage
	case "error.code", "code":
		return fieldErrorCode
	}
	return fieldNone
}

func messagesField(path string) field {
	switch path {
	case "model":
		return fieldModel
	case "usage.input_tokens":
		return fieldInput
	case "usage.output_tokens":
		return fieldOutput
	case "usage.cache_read_input_tokens":
		return fieldCached
	case "usage.cache_creation_input_tokens":
		return fieldCacheWrite
	case "delta.text", "delta.partial_json", "delta.thinking", "content.*.text":
		return fieldText
	case "stop_reason", "delta.stop_reason":
		return fieldStop
	}
	return fieldNone
}

func generateField(path string) field {
	switch path {
	case "modelVersion":
		return fieldModel
	case "usageMetadata.promptTokenCount":
		return fieldInput
	case "usageMetadata.toolUsePromptTokenCount":
		return fieldMoreInput
	case "usageMetadata.candidatesTokenCount":
		return fieldOutput
	case "usageMetadata.thoughtsTokenCount":
		return fieldThoughts
	case "usageMetadata.cachedContentTokenCount":
		return fieldCached
	case "candidates.*.content.parts.*.text":
		return fieldText
	case "candidates.*.finishReason":
		return fieldStop
	}
	return fieldNone
}

// requestField returns the field at a path of a request.
func requestField(path string) field {
	switch path {
	case "model":
		return fieldModel
	case "instructions", "system", "system.*.text", "systemInstruction.parts.*.text":
		return fieldSystem
	case "messages.*.content", "messages.*.content.*.text", "input", "input.*.content", "input.*.content.*.text",
		"contents.*.parts.*.text":
		return fieldFirst
	case "tools.*.name", "tools.*.type", "tools.*.function.name", "tools.*.functionDeclarations.*.name":
		return fieldTool
	}
	return fieldNone
}

// count is a number of tokens; known is false if none was reported.
type count struct {
	n     int64
	known bool
}

// set reads a number. Others are ignored, negative ones count as 0.
func (c *count) set(text string) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) {
		return
	}
	c.n, c.known = int64(min(max(n, 0), 1<<53)), true
}

// answer is what the meter reads of an answer.
type answer struct {
	api                                        API
	model, stop                                string
	input, more, output, thoughts, read, write count
	text                                       int64
	fault                                      model.Fault
}

func (a *answer) set(path, value string, size int64) {
	if value == "null" && size == int64(len("null")) {
		return
	}
	switch answerField(a.api, path) {
	case fieldModel:
		a.model = value
	case fieldInput:
		a.input.set(value)
	case fieldMoreInput:
		a.more.set(value)
	case fieldOutput:
		a.output.set(value)
	case fieldThoughts:
		a.thoughts.set(value)
	case fieldCached:
		a.read.set(value)
	case fieldCacheWrite:
		a.write.set(value)
	case fieldText:
		a.text += size
	case fieldStop:
		a.stop = value
	case fieldErrorMessage:
		a.fault.Message = value
	case fieldErrorType:
		a.fault.Type = strings.TrimSpace(a.fault.Type + " " + value)
	case fieldErrorCode:
		a.fault.Code = value
	case fieldRetryDelay:
		if wait, err := time.ParseDuration(value); err == nil {
			a.fault.RetryAfter = max(wait, 0)
		}
	default:
	}
}

// usage returns the tokens that the provider counted, and whether it reported any. The input
// includes cached tokens, the output thoughts.
func (a *answer) usage() (u model.Usage, known bool) {
	u = model.Usage{InputTokens: a.input.n + a.more.n, OutputTokens: a.output.n + a.thoughts.n,
		CachedTokens: a.read.n, CacheWriteTokens: a.write.n}
	if a.api == Messages {
		u.InputTokens += u.CachedTokens + u.CacheWriteTokens
	}
	return u, a.input.known || a.output.known
}

// complete reports whether the answer said that it is complete. Programs close a stream after
// that, often before its last bytes were sent.
func (a *answer) complete() bool {
	return a.stop != "" || a.api == Responses && a.output.known
}

// overflow reports whether the request did not fit into the model's context.
func (a *answer) overflow(status int) bool {
	if a.stop == "model_context_window_exceeded" {
		return true
	}
	if status < http.StatusBadRequest { // an error in a stream, or in a response that failed
		status = http.StatusBadRequest
		if a.fault.Message+a.fault.Code+a.fault.Type == "" {
			return false
		}
	}
	// A server that counts the text, too, refused the text and the answer together.
	limit, isLimit := a.fault.TokenLimit(status)
	return a.fault.Kind(status) == model.KindTooLong || isLimit && limit.Counted > 0
}

// limited reports whether the provider refused the request because of a limit of its rate.
func (a *answer) limited(status int) bool {
	return status == http.StatusTooManyRequests ||
		status < http.StatusBadRequest && strings.Contains(a.fault.Type+" "+a.fault.Code, "rate_limit")
}
