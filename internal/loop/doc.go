// Package loop is the folder of the private packages of the loop; the public package
// of the same name calls them.
//
// In an iteration they are used in this order: reinforce writes the reminder of the
// rules in the prompt, turnguard judges the tool calls of the agent's turn, metric
// measures the workspace after it, checkfile separates the files that the check wrote
// from those of the agent, heldout keeps the check that the agent never sees, regression
// joins the findings and the test results into regressions, and branch commits the
// files. Package state defines the JSON documents in which the loop stores the results
// and from which the views read them.
package loop
