// Package perdure is a durable store of task trees. It survives crashes, power
// loss, and changes of process.
//
// # Nouns
//
// A [Store] holds [Tree]s. A tree is one run: a root [Task] and its
// descendants. A process opens a [Session] on the store and claims tasks. A
// claim returns a [Lease], the right to run the task until it is settled. A
// running task journals its [Call]s to models, spawns children, waits for them,
// and ends completed, failed or cancelled. Every change appends an [Event] in
// the same transaction.
//
// Packages that keep rows of their own in the store write them in the same transaction:
// see [Store.WriteTx].
//
// # Guarantees
//
// When a method that changes something returns nil, the change survives kill -9
// and power loss (SQLite with synchronous=FULL, PostgreSQL with its defaults).
// Concurrent callers share one disk flush.
//
// A worker whose lease was taken over cannot write any more: its calls return
// [ErrLeaseLost]. The leases of a process on this host can be taken over as soon as it
// dies, without a timeout, because the kernel releases its file lock. A finished call is
// not repeated: [Lease.BeginCall] returns its result from the journal.
//
// # Reading order
//
// task.go (states), lease.go and settle.go (claim and settle), writer.go and
// batch.go (how the operations of many callers become one transaction),
// journal.go (calls), budget.go. docs/architecture.md lists where everything
// else is.
//
// All methods are safe for concurrent use.
package perdure
