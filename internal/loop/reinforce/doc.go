// Package reinforce decides how firmly the agent of a loop is reminded of the rules, and
// writes the reminder: what fails and where, the right way to fix it, and how to report
// that the task cannot be done. It knows nothing of loops or stores; its functions are
// pure.
package reinforce
