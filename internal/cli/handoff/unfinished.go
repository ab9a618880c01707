package handoff

import (
	"fmt"
	"os"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/text/human"
)

// maxGlance bounds the files that Unfinished reads: it is asked by commands that
// have other things to do.
const maxGlance = 1 << 20

// Unfinished says in one line what work checkpoint lies where a command starts
// work, and how it is continued; "" when there is none, or none that can be read,
// and for an agent that has a claim: it knows. Only the file is looked at.
func Unfinished(cwd string, getenv func(name string) string) string {
	if getenv(tokenVariable) != "" {
		return ""
	}
	loc, err := handoff.Find(cwd)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(loc.File); err != nil || info.Size() > maxGlance {
		return ""
	}
	doc, err := handoff.Load(loc.File)
	if err != nil {
		return ""
	}
	note, more := "", 0
	for _, place := range doc.Places() {
		task, err := doc.Task(place)
		if err != nil {
			continue
		}
		c, err := doc.Checkpoint(place)
		switch {
		case err != nil || c == nil:
		case note == "":
			note = unfinished(&task, c)
		default:
			more++
		}
	}
	if more > 0 {
		note += fmt.Sprintf("; there is a checkpoint of %s too", human.Count(int64(more), "other task"))
	}
	return note
}

func unfinished(task *handoff.Task, c *handoff.Checkpoint) string {
	done := len(c.CompletedSteps)
	if c.Cut != nil {
		done += c.Cut.CompletedSteps
	}
	by := ""
	if c.Metadata.CreatedBy != "" {
		by = fmt.Sprintf(", by %q", human.OneLine(c.Metadata.CreatedBy))
	}
	flag := ""
	if task.Place != handoff.PRD {
		flag = " --task " + quoted(human.OneLine(string(task.Place)))
	}
	return fmt.Sprintf("there is unfinished work on %q (%s%s, %s); `perdure handoff resume%s` continues it",
		human.OneLine(task.ID),
		human.Count(int64(done), "completed step"), by, human.Stamp(c.Metadata.LastUpdatedAt), flag)
}
