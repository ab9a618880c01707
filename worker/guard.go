package worker

import "github.com/perdure/perdure/internal/process/guard"

// EnterGuard makes this process able to start programs: command agents, exec
// models, hooks, and the check commands of loops and handoffs. It must be the first
// call of main, and of TestMain in tests, before flags are read, files are opened
// and goroutines are started. Programs whose tasks run no other program do not need
// it.
//
// Each such program runs below a guard: a process that ends the program and
// everything the program started when the turn or call is over, and also when this
// process is killed. Without it, an agent that survived kill -9 would keep changing
// the workspace while another process repeats the task. The guard is this binary,
// started again under the name perdure-guard; in that process EnterGuard does the
// guard's work and does not return. In all others it returns at once. On Windows
// there is no guard process.
//
// On Linux this process adopts orphans while at least one such program runs: it is a
// child subreaper, see prctl(2). So it can kill what a program leaves that has killed
// its guard. Only processes that were started below a guard are killed and reaped.
// Other children of this process are not signalled and not waited for. If such a
// child leaves a process of its own running, that one becomes a child of this process
// instead of init, and remains as a zombie when it ends, until this process ends or
// waits for it.
//
// In a process that did not call EnterGuard, starting a program fails with an error
// that names this function, and so does loop.New. EnterGuard may be called more than
// once and from several goroutines; calls after the first have no effect.
func EnterGuard() { guard.Enter() }
