// Package hook is where others have a say in a loop: at named moments (hooks) a
// [Message] goes to handlers, and their replies say whether the loop may go on
// and the messages for the agent.
//
// This package is experimental: it may change until version 1.0.
//
// A handler is a Go value, a program ([Command]) or an HTTP endpoint
// ([Endpoint]). A [Runner] asks the handlers of a hook one after another in
// their order, each with its time-out, and puts the replies together in an
// [Outcome]: the strictest verdict wins, messages for the prompt and
// recommendations are collected.
//
// A handler that fails (time-out, panic, exit status, reply that is not
// understood) is a [FaultError]. What a fault comes to is the hook's policy: it is
// written down and the loop goes on, or, where going on could do harm, it counts
// as BLOCK; see [Table]. A fault never makes a verdict milder that the handler
// gave nevertheless.
//
// Every invocation is a [Record]: a line of hook-log.jsonl, see [Log] and
// [ReadLog], and told to [Config].Observe.
//
// # Programs
//
// A program gets the message as one JSON object on its standard input, and
// PERDURE_HOOK, PERDURE_LOOP and PERDURE_ITERATION in its environment. With exit
// status 0 it answers on its standard output: nothing is ALLOW, else exactly one
// JSON object, the reply. Exit status 2 is BLOCK, and standard error says why. All
// else is a fault, also text that is no JSON on standard output; what is meant
// for people belongs on standard error.
//
// # Endpoints
//
// An endpoint gets the message as the body of a POST. It answers with a status
// of 2xx and the reply, or no body for ALLOW. All else is a fault; redirects
// are not followed.
package hook
