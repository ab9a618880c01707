// Package jsonrpc is JSON-RPC 2.0 over lines of JSON, as the Agent Client Protocol uses it on
// standard input and output. A [Conn] is one side of a connection: the client that drives
// agents (package agent/acp), or the agent that an editor drives (package internal/api/acp).
package jsonrpc
