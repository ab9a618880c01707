package loop

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/record"
)

// Ending describes a loop that has stopped, a line each: which files it changed, how long it took and
// what it used, and which commands come next.
func (s *Summary) Ending() []string {
	usage := human.Count(int64(s.in.Loop.Iteration), "iteration") + " in " + human.Duration(s.elapsed())
	if used := s.money(); used != "" {
		usage += "; " + used
	}
	if !s.in.Loop.Status.Ended() {
		return []string{usage}
	}
	lines := []string{usage}
	if text := s.changedFiles(); text != "" {
		lines = []string{text, usage}
	}
	if most := s.cfg.MaxIterations; s.in.Loop.Status == record.Failed && most > 0 && s.in.Loop.Iteration >= most {
		lines = append(lines, fmt.Sprintf("`perdure loop resume %s --max-iterations %d` goes on", s.ID(), 2*most))
	}
	return append(lines, fmt.Sprintf("`perdure loop report %s` shows what each iteration did", s.ID()))
}

// changedFiles returns which files differ from those before the loop, "" if that is not known.
func (s *Summary) changedFiles() string {
	changed := s.standing.Changed
	switch {
	case changed == nil || !s.in.Loop.Status.Ended():
		return ""
	case changed.Count == 0:
		return "no file changed"
	}
	text := human.Count(int64(changed.Count), "changed file") + ": " + oneLine(strings.Join(changed.Names, ", "), maxText)
	if more := changed.Count - len(changed.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
