// Package verify is the folder of the packages that verify a change by running its
// tests.
//
// Package evidence runs detection over the files that changed between two snapshots,
// and decides together with the test results which findings count. Package cleancheck
// then repeats a check that passed in a clean copy of the work, and with the tests of
// the baseline. Package mutate finds small changes of code, and package trial runs the
// new tests of an iteration against them. Package decider finds changed files that
// decide what the check runs. Package machine records what the check uses
// outside of the workspace.
package verify
