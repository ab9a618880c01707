// Package handoff reads and writes the work checkpoint in builder-state.json:
// the small structured record from which another agent continues in the middle
// of a task. It knows files only; where the full record, the ledger, is kept is
// the caller's business.
//
// # A short tour
//
// [Find] finds the file, [Load] reads it, and [Document.Checkpoint] returns what
// stands in it for a task, at a [Place]: the active PRD or an ad-hoc item.
//
// To change it, take the lock, adopt what others did, project the ledger and
// write:
//
//	f, err := handoff.Lock(ctx, path)
//	theirs, err := f.Document().Checkpoint(handoff.PRD)
//	ledger, changes, err := handoff.Adopt(ledger, lastWritten, theirs)
//	ledger.CompletedSteps = append(ledger.CompletedSteps, step)
//	next := handoff.Project(ledger, 0) // at most 2,048 bytes, whatever it holds
//	doc, err := f.Document().With(handoff.PRD, &next, time.Now())
//	err = f.Write(doc, rememberTheHash)
//	err = f.Close()
//
// Every byte of the file that is not the checkpoint or the heartbeat stays as it
// was.
//
// To continue, [Ledger.Staleness] judges by content whether the files are still
// those of the checkpoint ([Checkpoint.Staleness] when there is no ledger),
// [FindContract] finds what success is, and [Resume.Prompt] writes the prompt
// for the next agent.
//
// # What is guaranteed
//
// A reader, also after a crash, finds the old file or the new one. A file that
// is not valid JSON is left alone with an error that names line and column.
// Writers that take the lock lose nothing of each other; those that do not are
// noticed before anything is overwritten, but for the instant of the rename.
// A file is called fresh only when its content is known to be the recorded one.
//
// Errors are of type [*Error]. The package is of the second tier: its functions
// and formats stay, and more may be added.
package handoff
