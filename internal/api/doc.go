// Package api is the folder of the packages that serve perdure's HTTP API.
//
// Package server is the handler of all endpoints under /v1. The daemon serves it on a
// socket. If no daemon runs, a command calls it through package inproc, a transport
// that passes each request to the handler inside the process. The client is the public
// package client in both cases.
package api
