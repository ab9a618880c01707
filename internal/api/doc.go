// Package api is the folder of the packages that serve programs: the HTTP API, and the Agent
// Client Protocol.
//
// Package server is the handler of all endpoints under /v1. The daemon serves it on a
// socket. If no daemon runs, a command calls it through package inproc, a transport
// that passes each request to the handler inside the process. The client is the public
// package client in both cases.
//
// Package acp serves an editor over the Agent Client Protocol; it is a client of the HTTP API too.
package api
