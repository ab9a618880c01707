// Package check is the folder of the packages that run a project's checks and read
// their results.
//
// Package project recognises the projects of a workspace, and adds arguments to a test
// command so that its runner writes results. Package testreport reads these results
// and compares two reports test by test. Package coverage reads which lines the tests
// covered and finds the lines that lost their coverage.
package check
