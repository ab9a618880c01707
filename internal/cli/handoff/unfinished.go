package handoff

import (
	"fmt"
	"os"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/text/human"
)

// maxFile bounds the size of the files that Unfinished reads.
const maxFile = 1 << 20

// Unfinished returns a note about unfinished work at a folder and the command that
// continues it. It returns "" if there is none, and for an agent with a claim. It reads
// only the file.
func Unfinished(cwd string, getenv func(name string) string) string {
	if getenv(tokenVariable) != "" {
		return ""
	}
	loc, err := handoff.Find(cwd)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(loc.File); err != nil || info.Size() > maxFile {
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
		note += fmt.Sprintf("; also on %s", human.Count(more, "other task"))
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
	return fmt.Sprintf("unfinished work on %q (%s%s, %s); `perdure handoff resume%s` continues it", human.OneLine(task.ID),
		human.Count(done, "completed step"), by, human.Stamp(c.Metadata.LastUpdatedAt), flag)
}
