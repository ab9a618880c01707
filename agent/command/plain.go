package command

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// maxSaid is how many lines of standard error are looked at for what went
// wrong.
const maxSaid = 20

// lastLines keeps the first and the last lines that say something.
func lastLines(lines []string, line string) []string {
	if line = strings.TrimSpace(stripColour(line)); line == "" {
		return lines
	}
	if len(lines) == maxSaid {
		lines = append(lines[:1], lines[2:]...)
	}
	return append(lines, line)
}

// errorLine picks the line that says most about what went wrong: the last that
// calls itself an error, else the last.
func errorLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		lower := strings.ToLower(line)
		if strings.HasPrefix(lower, "error") || strings.HasPrefix(lower, "fatal") ||
			strings.HasPrefix(lower, "unknown argument") {
			return line
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// plainParser reads a plain program: what it writes last is the result.
type plainParser struct {
	stream
	tail clip.Tail
}

func (p *plainParser) stdout(line []byte) {
	p.tail.AddLine(line)
	p.rec.say(agent.EventOutput, string(line))
}

func (p *plainParser) finish(exit int) {
	end, cut := p.tail.End()
	text, changed := model.Clean(end)
	p.rec.text = text
	if changed {
		p.rec.note(noteReplaced)
	}
	if cut {
		p.rec.note("the output exceeded the limit; only its end is kept")
	}
	if exit == 0 {
		p.rec.over = true
		return
	}
	// A script that starts the agent of a vendor ends with its status and its words.
	for _, lines := range [][]string{p.said, strings.Split(strings.TrimSpace(end), "\n")} {
		if line := limitLine(lines); line != "" {
			p.rec.bad(line, 0)
			return
		}
	}
	p.rec.fault = &agent.Error{Kind: agent.KindFailed, Msg: message(errorLine(p.said))}
}
