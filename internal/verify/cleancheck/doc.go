// Package cleancheck runs a completion command in a clean copy of an agent's work, and
// with the baseline's tests laid over it.
//
// A copy is made of a snapshot in a temporary folder outside of the workspace. Of the
// files that git ignores it has only those that are as they were at the baseline
// ([Keep]); other ignored files that the agent left are not copied. What passes in the
// workspace has to pass in the copy, test by test. If it does not, ignored files are
// added in steps until the cause is known: dependencies and build products made during
// the loop are accepted and named; other files are a regression; and if even the baseline
// does not reach its own result in a copy, a clean-copy check is impossible, which is no
// regression. The same holds if nothing passes for the baseline, so that it does not show
// whether the check can pass in a copy. A later check of the loop then at least compares
// the machine ([CompareMachine]).
//
// Tests that were weakened (as package detect reports) are then replaced by the
// baseline's versions in a second copy. See overlay.go for the rules.
//
// Each run in a copy has a home folder, build caches and folders for temporary files of its
// own, and the PATH of the loop's start; a check of which a program was replaced since fails.
// Caches of downloaded packages are shared unless recorded files in them were changed. On
// Linux it runs in a sandbox without network and without writes outside of the copy, where
// the system allows it, unless the baseline passes only outside of it; the verdict says so. Commands see and
// signal other processes of the user.
package cleancheck
