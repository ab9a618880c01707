// Package trial tries tests that an iteration added or changed: each has to fail when the lines that
// the same iteration changed are mutated (package mutate). A test that passes with every mutation
// would have passed without the work, too.
//
// The tests run in a copy of the work, in a sandbox, because mutated code can do what its author
// prevented. A trial takes at most its budget of time.
package trial
