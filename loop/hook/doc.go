// Package hook runs handlers at named moments of a loop (hooks). A handler receives
// a [Message]; its reply says whether the loop may continue, and may carry messages
// for the agent.
//
// This package is experimental: it may change until version 1.0.
//
// A handler is a Go value, a program ([Command]) or an HTTP endpoint
// ([Endpoint]). A [Runner] asks the handlers of a hook one after another in
// their order, each with its time-out, and puts the replies together in an
// [Outcome]: the strictest verdict wins, messages for the prompt and
// recommendations are collected.
//
// A handler that fails (time-out, panic, exit status, invalid reply) returns a
// [FaultError]. The hook's policy decides how a fault is treated: it is logged and
// the loop continues, or, where continuing could do harm, it counts as BLOCK; see
// [Table]. If the handler also returned a verdict, a fault never makes it milder.
//
// Every invocation is a [Record]: it is a line of hook-log.jsonl, see [Log] and
// [ReadLog], and is passed to [Config].Observe.
//
// # Programs
//
// A program receives the message as one JSON object on its standard input, and
// PERDURE_HOOK, PERDURE_LOOP and PERDURE_ITERATION in its environment. With exit
// status 0 its standard output is the reply: empty for ALLOW, else exactly one JSON
// object. Exit status 2 is BLOCK, with the reason on standard error. Everything else
// is a fault, also text on standard output that is not JSON; write messages for users
// to standard error.
//
// # Endpoints
//
// An endpoint receives the message as the body of a POST. It responds with a status
// of 2xx and the reply, or an empty body for ALLOW. Everything else is a fault;
// redirects are not followed.
package hook
