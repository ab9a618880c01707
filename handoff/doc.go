// Package handoff reads and writes the work checkpoint in builder-state.json, a small
// structured record from which another agent continues an unfinished task. The package
// handles only files; package ledger keeps the full record, the ledger.
//
// # Overview
//
// [Find] finds the file, [Load] reads it, and [Document.Checkpoint] returns the
// checkpoint of a task at a [Place]: the active PRD or an ad-hoc item.
//
// To change it, lock the file, adopt the changes of other programs, project the ledger
// and write:
//
//	f, err := handoff.Lock(ctx, path)
//	theirs, err := f.Document().Checkpoint(handoff.PRD)
//	ledger, changes, err := handoff.Adopt(ledger, lastWritten, theirs)
//	ledger.CompletedSteps = append(ledger.CompletedSteps, step)
//	next := handoff.Project(ledger, 0) // at most 2,048 bytes
//	doc, err := f.Document().With(handoff.PRD, &next, time.Now())
//	err = f.Write(doc, rememberTheHash)
//	err = f.Close()
//
// All other bytes of the file, except the heartbeat, are not changed.
//
// To continue, [Ledger.Staleness] compares the content of the files with the checkpoint
// ([Checkpoint.Staleness] without a ledger), [FindContract] finds the verification
// contract, and [Resume.Prompt] returns the prompt for the next agent.
//
// # Guarantees
//
// Readers see the old file or the new one, also after a crash. A file that is not valid
// JSON is not changed, and the error has line and column. Writers that use the lock do
// not overwrite each other's changes; a change without the lock is detected, except
// during the rename. A file is fresh only if its content is the recorded one.
//
// Errors are of type [*Error]. The package is of the second tier: its functions
// and formats stay, and more may be added.
package handoff
