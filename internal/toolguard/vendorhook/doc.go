// Package vendorhook speaks with the hooks of coding agents: programs that an agent
// runs around its tool calls, with JSON on standard input, and whose answer it
// keeps to. It reads and writes the dialect that Claude Code and Codex share
// ([Read], [Event.Answer]), and carries the question to the loop that the agent
// works for ([Ask], [Listen]).
//
// Agents take a hook that fails for one that has nothing to say, but for exit
// status 2. So whoever runs the hook has to end with that whenever it cannot say
// what it was asked.
package vendorhook
