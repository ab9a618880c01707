// Package cleancheck runs a completion command in a clean copy of what an agent left,
// and the baseline's tests laid over it.
//
// A copy is made of a snapshot in a temporary folder outside of the workspace. Of
// the files that git ignores it has those that are as they were at the baseline
// ([Keep]), and no others: what the agent left beside its work takes no part. What
// passes in the workspace has to pass there, test by test. Where it does not, one
// thing after the other is put back until it is known what makes the difference:
// dependencies and products that were made during the loop are held and named; other
// files that were left are a regression; and where not even the baseline comes
// to its own result in a copy, nothing can be sealed here, which is no regression.
//
// Tests that were weakened (package detect says which) are then laid over a
// second copy as the baseline has them. See overlay.go for what counts.
//
// A copy is no sandbox: its commands reach the network, the user's home folder with
// its caches, and whatever runs on the machine.
package cleancheck
