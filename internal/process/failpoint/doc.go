// Package failpoint marks the places where a crash test kills the process.
//
// A place is marked with one line, for example
//
//	failpoint.Hit("blob.after_rename")
//
// Without the build tag failpoint that line is empty and costs nothing. With
// the tag, two variables of the environment decide what it does:
//
//   - PERDURE_FAILPOINT="name" or "name:n": the n-th hit of that name (the first
//     when n is missing) kills the own process with SIGKILL, so that no deferred
//     function, signal handler or buffer flush runs.
//   - PERDURE_FAILPOINT_LIST=FILE: the name of each place that is passed is
//     appended to FILE, one line per hit, so that a test can tell which places a
//     piece of work passes and how often.
//
// Names are "component.place" in lower case, for example "blob.before_sync".
package failpoint
