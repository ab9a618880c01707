// Package risk says how dangerous a call of a tool is that a coding agent is
// about to make: what it writes, deletes or discards, read from the files that it
// names and from its command line, which is parsed as a shell would. The rules
// are a published table ([Table]). The package looks at nothing but the call.
//
// It errs on the side of asking: a path that only the shell knows (a variable, a
// pattern) is unknown, and a command line that cannot be parsed is a risk of its
// own. It is no sandbox: a program that is run can do anything (a script that is there
// already, a target of make), and what it did is found by the comparison after the
// iteration.
package risk
