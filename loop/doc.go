// Package loop repeats a coding agent on a folder until a check passes, notices
// what it broke, and leaves the best iteration.
//
// A loop is a tree of kind [perdure.KindLoop]: its root decides, each iteration
// is a child task in which the agent does one turn. An [Engine] is the handler
// of both for a worker. It is a machine of steps, and each ends in a durable
// write: a process that dies is followed by one that goes on with the step that
// was interrupted.
//
// The engine runs the completion command itself; an agent's word that it is done
// is never enough.
//
// A program that uses the package calls worker.EnterGuard first in main, because
// agents, hooks and completion commands are programs; [New] refuses without it.
//
// The package is experimental until version 1.0.
package loop
