// Package thoughts finds what a model thought in the text of its reply, so that it is not taken
// for the answer.
//
// Models that reason write their thoughts between marks, such as <think> and </think>, and servers
// that do not know the marks of a model leave them in the reply. Some templates put the opening
// mark into the prompt, so that a reply has the closing one only. A text can also be about such
// marks, or quote them: marks in code, in a sentence and within XML are no thoughts.
package thoughts

import "strings"

// Style is how much of a text can be thoughts.
type Style int

const (
	// Generated is a text that a model wrote.
	Generated Style = iota
	// Printed is the output of a program, which can be a model's, or a file: only thoughts before
	// the answer are found.
	Printed
)

// Cut divides a reply into the answer and the thoughts; the thoughts are empty if there are none, and
// the answer is the text then. Cutting the answer again finds no more.
func Cut(text string, style Style) (answer, thoughts string) {
	var all []string
	answer = text
	for len(all) < maxSpans {
		c := &cutter{text: answer, style: style, thoughts: all}
		c.cutLeading()
		if style == Generated {
			c.cutLater()
		} else {
			c.kept = append(c.kept, c.text[c.at:])
		}
		if len(c.thoughts) == len(all) {
			break
		}
		all, answer = c.thoughts, openEnvelope(strings.Join(c.kept, "")) // what is left can begin with thoughts
	}
	if len(all) > 0 && strings.TrimSpace(answer) == "" {
		answer = ""
	}
	return answer, strings.Join(all, "\n\n")
}

// maxSpans bounds the thoughts of one reply, because the rest of the text is read for some of them.
const maxSpans = 64

// HasClosedOnly reports whether a reply begins with thoughts of which only the end is marked.
func HasClosedOnly(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n\ufeff")
	if _, ok := leadingOf(text); ok {
		return false
	}
	_, ok := closedOnly(text, Generated, lastFence(text))
	return ok
}

// cutter divides one text.
type cutter struct {
	text  string
	style Style
	at    int // what is before it has been divided
	kept  []string
	// lastFence is two more than the offset of the last line that can close a fence, 0 if not known.
	lastFence int

	thoughts []string
}

// last returns the offset of the last line that can close a fence, -1 if there is none.
func (c *cutter) last() int {
	if c.lastFence == 0 {
		c.lastFence = 2 + lastFence(c.text)
	}
	return c.lastFence - 2
}

// think notes thoughts that end at an offset, behind which the answer or other thoughts begin.
func (c *cutter) think(thoughts string, end int) {
	if thoughts = strings.TrimSpace(thoughts); thoughts == "" {
		thoughts = "(none)" // of a model that does not think
	}
	c.thoughts = append(c.thoughts, thoughts)
	c.at = end
}

// cutLeading passes the thoughts before the answer.
func (c *cutter) cutLeading() {
	before := len(c.thoughts)
	for len(c.thoughts) < maxSpans {
		rest := c.text[c.at:]
		begin := len(rest) - len(strings.TrimLeft(rest, " \t\r\n\ufeff"))
		found, ok := leadingOf(rest[begin:])
		if !ok {
			found, ok = closedOnly(rest[begin:], c.style, c.last()-c.at-begin)
		}
		if !ok {
			break
		}
		c.think(found.text, c.at+begin+found.end)
	}
	if len(c.thoughts) > before {
		c.at += len(c.text[c.at:]) - len(strings.TrimLeft(c.text[c.at:], " \t\r\n"))
	}
}

// span is thoughts at the beginning of a text, which end at an offset.
type span struct {
	text string
	end  int
}

// leadingOf returns the thoughts that a text begins with.
func leadingOf(text string) (span, bool) {
	if s, ok := channels(text); ok {
		return s, true
	}
	if s, ok := betweenWords(text); ok {
		return s, true
	}
	if s, ok := analysis(text); ok {
		return s, true
	}
	if strings.HasPrefix(text, solutionMark) {
		return span{"", len(solutionMark)}, true
	}
	open, ok := markAt(text)
	if !ok {
		open, ok = fenceAt(text)
	}
	if !ok || open.closing {
		return span{}, false
	}
	inside := text[open.length:]
	end, length := closingOf(inside, open.name)
	switch {
	case end >= 0 && mentions(inside[:end], inside[end+length:]), end < 0 && isSentence(inside):
		return span{}, false
	case end >= 0 && isElement(open.name, inside[:end], inside[end+length:]):
		return span{}, false
	case end < 0:
		if at := lastEnvelope(inside); at >= 0 {
			return span{inside[:at], open.length + at}, true
		}
		return span{inside, len(text)}, true
	}
	return span{inside[:end], open.length + end + length}, true
}

// solutionMark begins the answer of OpenThinker and its kin.
const solutionMark = "<|begin_of_solution|>"

// mentions reports whether the text between two marks only joins them: the reply is about the marks.
func mentions(inside, after string) bool {
	if strings.Contains(inside, "\n") {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(inside)) {
	case "and", "or", "to", "until", "with", "/", ",", "…", "...", "..", "-", "–":
		return strings.HasPrefix(after, " ") || strings.HasPrefix(after, ".") || strings.HasPrefix(after, ",")
	}
	return false
}

// isSentence reports whether a sentence goes on behind an opening mark that is not closed, as in
// "<think> is a mark".
func isSentence(after string) bool {
	if len(after) < 2 || after[0] != ' ' && after[0] != ',' && after[0] != '-' {
		return false
	}
	for _, verb := range []string{"is", "was", "are", "and", "or", "tags", "tag", "marks", "opens", "begins", "starts",
		"means", "stands", "in", "should", "must", "can", "elements", "blocks", "tokens", "token", "element", "block"} {
		if rest, ok := strings.CutPrefix(after[1:], verb); ok && (rest == "" || !isLetter(rest[0])) {
			return true
		}
	}
	return after[0] != ' '
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// closingOf returns the place and the length of the mark that closes thoughts with a name, -1 if
// they are not closed. A mark of another name closes them if theirs is missing.
func closingOf(text, name string) (at, length int) {
	if ticks, ok := strings.CutPrefix(name, fenceMark); ok {
		return fenceEnd(text, ticks)
	}
	other, otherLength := -1, 0
	for i := range candidates(text) {
		m, ok := markAt(text[i:])
		if !ok || !m.closing || isQuoted(text, i, m.length) {
			continue
		}
		if m.name == name {
			return i, m.length
		}
		if other < 0 && isTag(m.name) && isTag(name) {
			other, otherLength = i, m.length
		}
	}
	return other, otherLength
}
