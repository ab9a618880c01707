// Package perdure is the durable core of perdure: a store of task trees that
// survives crashes, power loss, and changes of process.
//
// # Nouns
//
// A [Store] holds [Tree]s. A tree is one run: a root [Task] and its
// descendants. A process opens a [Session] on the store and claims tasks; a
// claim is a [Lease], the right to run the task until it is settled. While it
// runs, a task journals its [Call]s to models, spawns children, waits for them,
// and ends completed, failed or cancelled. Every change appends an [Event] in
// the same transaction.
//
// # Guarantees
//
// When a method that changes something returns nil, the change survives kill -9
// and power loss (SQLite with synchronous=FULL, PostgreSQL with its defaults).
// Concurrent callers share one disk flush.
//
// A write of a worker whose lease was taken over is refused ([ErrLeaseLost])
// and changes nothing. The lease of a process on this host that died may be
// taken over at once: the kernel's file lock, not a time-out, tells that it is
// dead. A finished call is never asked again: [Lease.BeginCall] answers from
// the journal.
//
// # Reading order
//
// task.go (states), lease.go (claim and settle), op.go and writer.go (how a
// batch of operations becomes one transaction), call.go (the journal), budget.go.
//
// Everything in this package may be used from several goroutines at once.
package perdure
