// Package rlm executes runs: a prompt over any amount of context becomes a tree
// of tasks, each a durable record of the store, and the answers of the parts
// become one answer.
//
// This package is experimental: it may change until version 1.0.
//
// # Steps of a run
//
// [Executor.Launch] decides everything that can be decided before the first
// call to a model: it checks the [Config], finds the models, splits the context
// into parts that fit them, plans the shape of the tree, and refuses what
// cannot work, with the numbers. Then it creates the tree, whose root task
// carries the plan.
//
// [Executor.Handle] does one attempt of one task. The next step follows
// from what the store already has, so a task that was interrupted at any point
// continues where it was:
//
//   - a leaf reads its part of the context and asks its model; a call that was
//     finished before is answered from the journal;
//   - a task whose condition does not hold ends as skipped;
//   - a task that is to be planned asks its model for sub-tasks, has faults of the
//     plan corrected, and creates those whose time has come;
//   - an inner task without children creates all of them in one transaction and
//     waits;
//   - an inner task whose children have ended merges their results, with
//     map-reduce in a tree of further tasks;
//   - a result that has to satisfy a schema is checked, and corrected by the
//     model, before the task completes.
//
// # Plan
//
// The boundaries of the parts are durable with the tasks: the root's metadata
// holds all of them, each inner task's those below it, and a leaf's reference to
// the context is its own part. Nothing is split twice, so a later version of
// this package continues a tree with the parts it began with.
package rlm
