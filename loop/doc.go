// Package loop repeats a coding agent on a folder until a check passes, notices
// what it broke, and leaves the best iteration.
//
// A loop is a tree of kind [perdure.KindLoop]: its root decides, each iteration
// is a child task in which the agent does one turn. An [Engine] is the handler
// of both for a worker. It is a state machine whose steps each end in a durable
// write: if the process dies, another one repeats the interrupted step.
//
// The engine runs the completion command itself; an agent's report that
// the task is done is not sufficient.
//
// A program that uses the package calls worker.EnterGuard first in main, because
// agents, hooks and completion commands are programs; [New] refuses without it.
//
// The package is experimental until version 1.0.
package loop
