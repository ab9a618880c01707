// Package vendorhook implements the hooks of coding agents: programs that an agent runs
// around its tool calls, with JSON on standard input, and whose answers it obeys. It
// reads and writes the [Dialect] of each agent, and passes the question to the loop that
// the agent works for ([Ask], [Listen]).
//
// Agents ignore a hook that fails, except with exit status 2. A hook that cannot answer
// must therefore exit with status 2.
package vendorhook
