// Package record keeps the rows of loops: one for each loop, which says how far it
// is, and one for each iteration. They change in one transaction with the tasks,
// the events and the gates of the loop's tree.
//
// The process that executes a loop writes with [Records.Save], under the lease of
// its task. Any other process sends control requests with [Records.Ask] and answers
// the loop's gates with [perdure.Store.AnswerGate].
//
// The package is experimental until version 1.0.
package record
