// Package engine runs the code blocks of a REPL. It has one interface and two
// implementations: python, a CPython process in a sandbox, and starlark, which needs no
// other program.
//
// A [Session] has one namespace. Its caller drives it: [Session.Exec] runs a block until it
// ends or calls a function of the host, such as llm_query. The caller may take any time to
// answer with [Session.Reply], also without holding a goroutine. An engine knows nothing of
// tasks, models and the store, and decides no limit but those of its process.
//
// # Determinism
//
// A session is a function of what it is given: the blocks with their clocks and seeds, and
// the replies. The same input gives the same requests in the same order, the same output and
// the same variables. That is how an interrupted block is taken up again: a new session is
// given the recorded replies. Time, random numbers and IDs that the code sees come from
// [Block] and [Reply]; the order of sets and the hashes of strings are fixed.
package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Session is a running engine with one namespace. Its methods must not be called at the same
// time, except Close, which also ends a call that is under way.
type Session interface {
	// Exec runs a block. The event is a request of the code, or the end of the block.
	Exec(ctx context.Context, b Block) (Event, error)
	// Reply answers the request that the last event was, and continues the block.
	Reply(ctx context.Context, r Reply) (Event, error)
	// Set sets variables between blocks, in the order given.
	Set(ctx context.Context, vars []Var) error
	// Sandbox is what confines the code; the zero value without one.
	Sandbox() Sandbox
	// Close ends the engine and everything that the code has started. It may be called
	// more than once.
	Close() error
}

// Sandbox describes what confines the code of a session.
type Sandbox struct {
	// Layers are those of the sandbox, each of which confines the code by itself.
	Layers []string
	// Checks are what the process tried when it started, before any code, and could not do.
	Checks []string
}

// Errors of Exec, Reply and Set are of the engine, and the session is of no further use:
// an [*Error], or the error of ctx. Errors of the code are in [Done].

// Block is code to run.
type Block struct {
	Code string
	// Clock is the time that the code sees when it begins. It advances only by sleeping
	// (which does not wait), by a millisecond whenever it is read, and with [Reply.Clock].
	Clock time.Time
	// Seed determines the random numbers and IDs of the block.
	Seed uint64
	// History are further messages of the conversation: from the first block that has some, the
	// variable history is the list of all of them. Code may bind the name to something else; with
	// KeepNames, perdure.history is the list in any case.
	History []Message
}

// Message is a message of the conversation in the variable history.
type Message struct {
	// Role is "user", or "assistant" for a reply of the model.
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Event is what stopped the code: exactly one field is set.
type Event struct {
	Request *Request
	Done    *Done
}

// Request is a call of a host function.
type Request struct {
	// Function is its name: one of [Functions].
	Function string
	// Args are its arguments by name, as a JSON object: defaults are filled in.
	Args json.RawMessage
}

// Reply is the outcome of a request.
type Reply struct {
	// Value is what the function returns, as JSON.
	Value json.RawMessage
	// Err, when set, is raised in the code as an exception with this text.
	Err string
	// Clock, when later than what the code saw, is the time that it sees from now on.
	Clock time.Time
}

// Done is the end of a block.
type Done struct {
	// Output is what the code printed, of which the engine keeps at most [MaxOutputBytes];
	// OutputBytes is the whole length, OutputSHA256 the hexadecimal hash of the whole.
	Output       string
	OutputBytes  int64
	OutputSHA256 string
	// Errors is what the code wrote to the standard error, if that is kept apart, see [Reference].
	Errors string
	// Failure is the exception that ended the block, nil if it ran to its end.
	Failure *Failure
	// Final is the first final answer that the code set in this block, nil if it set none.
	Final *Final
	// Draft is the text of answer["content"], which is the best answer so far if it is not
	// final, cut at [MaxAnswerBytes]; empty if it was not set.
	Draft string
	// Vars are the variables whose values changed, in the order of their names; Gone are those
	// that were deleted. After a failure they are those bound before it.
	Vars []Var
	Gone []string
}

// Failure is an exception of the code.
type Failure struct {
	// Type is the class of the exception, Message its text, Line the line of the block, from 1.
	Type    string `json:"type"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	// Traceback is the traceback as the language prints it, without lines of the engine. The
	// middle of a long one, or of a long Message, is left out.
	Traceback string `json:"traceback,omitempty"`
}

// Final is a final answer that the code set.
type Final struct {
	// Value is the answer as JSON: a string for text.
	Value json.RawMessage `json:"value"`
	// Text is the answer as the language prints it.
	Text string `json:"text"`
	// By is what set it: answer, FINAL, FINAL_VAR, SUBMIT or done.
	By string `json:"by"`
}

// Var is a variable of the namespace.
type Var struct {
	Name string `json:"name"`
	// Value is its value as JSON; nil if JSON cannot hold it exactly, or if it is longer than
	// [MaxVarBytes].
	Value json.RawMessage `json:"value,omitempty"`
	// Type is the name of the value's type in the language.
	Type string `json:"type"`
	// Repr is the beginning of how the language prints the value, if Value is nil. It has no
	// addresses of memory.
	Repr string `json:"repr,omitempty"`
	// SHA256 is the hexadecimal hash of the value: of its JSON or, without, of what identifies
	// it in every run.
	SHA256 string `json:"sha256"`
	// Bytes is the length of the value as JSON, or of its text.
	Bytes int64 `json:"bytes"`
}

// Limits of a session. Code that exceeds one is stopped with an exception that names the
// limit, or its process with an [*Error].
type Limits struct {
	// MemoryBytes bounds the memory of the engine's process; 0 means 1 GiB.
	MemoryBytes int64
	// CPU bounds the processor time of one block; 0 means one minute.
	CPU time.Duration
	// Wait bounds the time between two requests of a block, which may wait for an event that does
	// not come; 0 means ten minutes.
	Wait time.Duration
	// Processes bounds the processes and threads that the code may have; 0 means 16.
	Processes int
	// FileBytes bounds each file in the scratch folder; 0 means 256 MiB.
	FileBytes int64
	// FolderBytes bounds the scratch folder, in which a file counts as 4 KiB at least; 0 means
	// 2 GiB. Code that exceeds it is ended within seconds.
	FolderBytes int64
}

const (
	// MaxOutputBytes is what is kept of the output of a block.
	MaxOutputBytes = 1 << 20
	// MaxVarBytes is the longest value, as JSON, that is handed out.
	MaxVarBytes = 64 << 10
	// MaxRequestBytes is the longest request. Code that exceeds it gets an exception.
	MaxRequestBytes = 64 << 20
	// MaxAnswerBytes is the longest final answer, in the same way.
	MaxAnswerBytes = 8 << 20
)

// ToolFunction is the function of a tool of the user: name, args (by position), kwargs (by name).
// The code calls it by the name of the tool, see the configuration of the engine.
const ToolFunction = "tool"

// Reference are the rules of the reference implementation of recursive language models, for the code of
// its logs: a block that raises binds nothing, and the standard error is no output.
type Reference struct {
	// Environment is where the code ran: local, ipython or remote.
	Environment string `json:"environment"`
	// Context is the form of the context's text: empty for the text itself, json, or repr for a value
	// as Python prints it.
	Context string `json:"context,omitempty"`
}

// Functions of the host, and of which arguments their [Request.Args] consist:
//
//	llm_query           prompt, model
//	llm_query_batched   prompts, model
//	rlm_query           prompt, model
//	rlm_query_batched   prompts, model
//	budget
//	files               glob
//	search              query, k
//	grep                regex, glob, k
//	lines               file, first, last, column: the byte of the first line from which on it is read
//	cite                file, first, last
//	read                file, offset, length: bytes of a file, for a context that is read lazily
func Functions() []string {
	return []string{"llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "budget", "files", "search",
		"grep", "lines", "cite", "read"}
}

// Contents is what the variable context holds. Exactly one of Text and Files is set, unless
// there is no context.
type Contents struct {
	// Text is a context that is one text: context is a string.
	Text *File
	// Files are a context of several files: context is a dictionary from name to text.
	Files []File
}

// File is a text of the context. Its bytes are requested with the function read when the code
// needs them.
type File struct {
	// Name is as the user gave it, Bytes the length in UTF-8.
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// Chars is the number of code points; -1 if it was not counted yet.
	Chars int64 `json:"chars"`
}

// Kinds of [Error].
const (
	// KindUnsandboxed means that no sandbox could be made, and the session was not allowed to
	// start without.
	KindUnsandboxed = "unsandboxed"
	// KindMissing means that the program of the engine is missing or too old.
	KindMissing = "missing"
	// KindMemory, KindCPU, KindTime, KindFiles and KindKilled mean that the process ended because
	// it exceeded a limit, or for another reason.
	KindMemory = "memory"
	KindCPU    = "cpu"
	KindTime   = "time"
	KindFiles  = "files"
	KindKilled = "killed"
	// KindProtocol means that the process sent what is not the protocol: code interfered.
	KindProtocol = "protocol"
)

// Error is an error of an engine.
type Error struct {
	Kind string
	// Msg says what happened, Hint what to do.
	Msg, Hint string
	Err       error
}

// Error returns what happened.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return fmt.Sprintf("%s: %v", e.Msg, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
