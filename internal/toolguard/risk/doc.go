// Package risk assesses a tool call that a coding agent is about to make: what it writes,
// deletes or discards, by the files that it names and by its command line, which is
// parsed like a shell does. The rules are a published table ([Table]). The package reads
// only the call.
//
// In doubt it reports a risk: a path that only the shell knows (a variable, a glob) is
// unknown, and a command line that cannot be parsed is a risk of its own. It is no
// sandbox: a program that the call runs can do anything (an existing script, a make
// target); the comparison after the iteration finds its changes.
package risk
