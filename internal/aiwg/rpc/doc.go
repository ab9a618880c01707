// Package rpc answers existing clients of the daemon of the .aiwg layout:
// JSON-RPC 2.0 on a Unix socket, one message a line.
//
// The methods are those of that daemon (ping, daemon.status, task.submit,
// task.cancel, task.list, task.get, task.stats) and those of its store of tasks
// (task.update, task.start, task.complete, task.fail, task.append_output,
// task.cleanup). Records are those of daemon/tasks.json, made by package aiwg.
//
// A task that is submitted is a tree of its own. Either somebody at the other
// end of a connection does it, under a lease that task.start gives, or the
// daemon itself does; docs/decisions/0030 tells which, and what becomes of a
// lease whose connection ends.
package rpc

import "time"

// Limits and defaults of [Config].
const (
	// DefaultMaxLineBytes bounds a line: a request, or a whole batch.
	DefaultMaxLineBytes = 16 << 20
	// MaxBatch bounds the requests of a batch.
	MaxBatch = 1000
	// DefaultMaxConns bounds the connections that are open at once.
	DefaultMaxConns = 1024
	// DefaultWriteTimeout is how long a client may not read before its
	// connection is closed.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultSilence is how long a task stays with a worker whose connection
	// ended and who was not heard of since.
	DefaultSilence = 30 * time.Second
	// DefaultDrainTimeout is how long workers may end what they do when the
	// server stops.
	DefaultDrainTimeout = 30 * time.Second
	// DefaultList is how many tasks task.list gives when nothing is said,
	// MaxList the most.
	DefaultList = 20
	MaxList     = 1000
	// MaxAnswerBytes bounds the records of one answer to task.list.
	MaxAnswerBytes = 64 << 20
	// MaxIDBytes bounds the ID that a client gives a submission.
	MaxIDBytes = 512
	// DefaultAge is how long ago the tasks have ended that task.cleanup removes.
	DefaultAge = 7 * 24 * time.Hour
)

// Error codes: those of JSON-RPC 2.0, and those of this server in the range that
// the standard leaves to servers.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeUnknownMethod  = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603

	// CodeUnavailable: the store cannot be written now, or the server stops;
	// the same request may be sent again later.
	CodeUnavailable = -32000
	// CodeConflict: the task, or another of its ID, is not in a state for this.
	CodeConflict = -32001
	// CodeLease: somebody else works on the task, or took it over.
	CodeLease = -32002
	// CodeLineTooLong: the line was longer than [Config].MaxLineBytes and was
	// not looked at; the next one is.
	CodeLineTooLong = -32003
	// CodeAnswerTooLong: the answer would be longer than MaxAnswerBytes.
	CodeAnswerTooLong = -32004
	// CodeTooManyConns: there are [Config].MaxConns connections already; this
	// one is closed.
	CodeTooManyConns = -32005
)
