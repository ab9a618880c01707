// Package record keeps what loops write down: a row for each loop that says
// where it stands, one for each iteration, and one for each gate. They change
// together with the tasks and events of the loop's tree, in one transaction.
//
// Who runs a loop writes with [Records.Save], under the lease of its task;
// anybody else says what is wanted with [Records.Ask] and [Records.Answer], from
// any process.
//
// Runs have gates as well: a task for which no model is left waits with
// [Records.Wait] until somebody answers, and all those of a tree wait at one gate.
//
// The package is experimental until version 1.0.
package record
