// Package rpc serves clients of the .aiwg daemon: JSON-RPC 2.0 on a Unix socket, one
// message a line.
//
// The methods are those of that daemon (ping, daemon.status, task.submit,
// task.cancel, task.list, task.get, task.stats) and those of its task store
// (task.update, task.start, task.complete, task.fail, task.append_output,
// task.cleanup). Records are those of daemon/tasks.json, made by package tree.
//
// A submitted task is a tree of its own. It is executed by a client, under a lease
// that task.start returns, or by the daemon; docs/decisions/0030 describes both, and
// the lease of a client whose connection ends.
package rpc

import "time"

// Limits and defaults of [Config].
const (
	// DefaultMaxLineBytes is the limit of a line, which is a request or a batch.
	DefaultMaxLineBytes = 16 << 20
	// MaxBatch is the limit of requests in a batch.
	MaxBatch = 1000
	// DefaultMaxConns is the limit of open connections.
	DefaultMaxConns = 1024
	// DefaultWriteTimeout is the timeout of a write to a client that does not read.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultSilence is how long a disconnected worker keeps its task.
	DefaultSilence = 30 * time.Second
	// DefaultDrainTimeout is how long a stopping server waits for its workers.
	DefaultDrainTimeout = 30 * time.Second
	// DefaultList is the default limit of tasks that task.list returns, MaxList the
	// highest.
	DefaultList = 20
	MaxList     = 1000
	// MaxAnswerBytes is the limit of the records in an answer to task.list.
	MaxAnswerBytes = 64 << 20
	// MaxIDBytes is the limit of the ID of a submission.
	MaxIDBytes = 512
	// DefaultAge is the default age of ended tasks that task.cleanup removes.
	DefaultAge = 7 * 24 * time.Hour
)

// Error codes of JSON-RPC 2.0, and of this server in the range for servers.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeUnknownMethod  = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603

	// CodeUnavailable: the store cannot be written now, or the server is stopping; the
	// request can be retried.
	CodeUnavailable = -32000
	// CodeConflict: the state of the task does not allow the request, or another task
	// has its ID.
	CodeConflict = -32001
	// CodeLease: another worker holds the task or took it over.
	CodeLease = -32002
	// CodeLineTooLong: the line was longer than [Config].MaxLineBytes and was skipped.
	CodeLineTooLong = -32003
	// CodeAnswerTooLong: the answer would be longer than MaxAnswerBytes.
	CodeAnswerTooLong = -32004
	// CodeTooManyConns: there are [Config].MaxConns connections already; this
	// one is closed.
	CodeTooManyConns = -32005
)
