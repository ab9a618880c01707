// Package reinforce decides how firmly the agent of a loop is reminded of the
// rules, and writes the reminder: what fails and where, what is right, and the
// honest way out. It knows nothing of loops or stores; its functions are pure.
package reinforce
