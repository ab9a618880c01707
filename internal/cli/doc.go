// Package cli is the command line: one file for each command, and one package for
// each command with many subcommands. A command parses its arguments, calls the
// API's client and prints the results. If a daemon listens in the .perdure folder,
// the client calls it; otherwise the same handler runs inside the command.
//
// Results go to standard output, everything else to standard error.
//
// A command runs in the environment of package env: streams, settings, shared flags
// and the connection to the store. Packages loop, handoff, check, hook, install, meter, cache
// and schema implement the commands with the same names, package state implements var, checkpoint
// and repl, package transfer export and import, and package gate answer. After a run or
// a loop stopped at a gate, its command asks for the answer through package gate.
package cli
