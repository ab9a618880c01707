package thoughts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// channels returns the thoughts of a reply in the channels of gpt-oss, of which a server decoded the
// tokens: all before the final channel. Calls of tools belong to the answer.
func channels(text string) (span, bool) {
	const channel, message, analysis, final = "<|channel|>", "<|message|>", "analysis", "assistantfinal"
	if after, ok := strings.CutPrefix(text, analysis); ok { // the tokens were left out
		at := strings.Index(after, final)
		if at < 0 || after == "" || after[0] == ' ' && !strings.Contains(after[:at], "\n") {
			return span{}, false
		}
		return span{after[:at], len(analysis) + at + len(final)}, true
	}
	head := strings.TrimPrefix(text, "<|start|>assistant")
	if !strings.HasPrefix(head, channel) {
		return span{}, false
	}
	at := len(text) - len(head) + len(channel)
	name, _, found := strings.Cut(text[at:min(len(text), at+2*maxMark)], message)
	if !found || strings.Contains(name, "to=") {
		return span{}, false
	}
	at += len(name) + len(message)
	if strings.HasPrefix(name, "final") {
		return span{"", at}, true
	}
	end := at + messageEnd(text[at:])
	next := end
	if strings.HasPrefix(text[next:], "<|end|>") {
		next += len("<|end|>")
	}
	return span{text[at:end], next}, true
}

// messageEnd returns where the token behind a message begins.
func messageEnd(text string) int {
	for i := 0; i < len(text); i += 2 {
		next := strings.Index(text[i:], "<|")
		if next < 0 {
			break
		}
		i += next
		for _, token := range []string{"<|end|>", "<|start|>", "<|channel|>", "<|return|>"} {
			if strings.HasPrefix(text[i:], token) {
				return i
			}
		}
	}
	return len(text)
}

// betweenWords returns thoughts between words: those of Granite 3.2 and Apriel, and of the program ollama.
func betweenWords(text string) (span, bool) {
	for _, pair := range [][2]string{{"Here is my thought process:", "Here is my response:"},
		{"Here's my thought process:", "Here's my response:"}, {"Thinking...\n", "\n...done thinking."},
		{"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}} {
		after, ok := strings.CutPrefix(text, pair[0])
		if !ok {
			continue
		}
		if at := strings.Index(after, pair[1]); at >= 0 {
			return span{after[:at], len(pair[0]) + at + len(pair[1])}, true
		}
	}
	return span{}, false
}

// closedOnly returns the thoughts before a closing mark whose opening one was in the prompt. It is the
// first mark of the text, and not in code.
func closedOnly(text string, style Style, lastFence int) (span, bool) {
	f := fences{last: lastFence}
	for i := range candidates(text) {
		m, ok := markAt(text[i:])
		if !ok || isQuoted(text, i, m.length) {
			continue
		}
		if f.openAt(text, i) && i < f.last {
			continue
		}
		if !m.closing || m.name == "details" || !endsThoughts(text, i, m.length, style) {
			return span{}, false
		}
		return span{text[:i], i + m.length}, true
	}
	return span{}, false
}

// endsThoughts reports whether a closing mark without an opening one ends thoughts, and is not the
// subject of its sentence.
func endsThoughts(text string, at, length int, style Style) bool {
	line, after := lineBefore(text, at), lineAfter(text, at+length)
	before := strings.TrimRight(line, " \t")
	alone := before == "" && strings.TrimSpace(after) == ""
	if alone || line == "" && style == Generated {
		return !isBehindTag(text[:at])
	}
	if style == Printed || strings.ContainsRune("{[<`", rune(text[0])) || isListed(before) || before == "" {
		return false
	}
	switch last := before[len(before)-1]; last {
	case '.', '!', '?', ')', '}', '`':
		return true
	case ':', '=', '(', '>', ',', '-':
		return false
	}
	if strings.TrimSpace(after) == "" {
		return line == before // "so 42</think>" and not "it ends with </think>"
	}
	return line == before && after[0] != ' ' && !strings.ContainsRune(".,;:!?)", rune(after[0]))
}

// isListed reports whether a line is an item of a list, a quote or a row of a table.
func isListed(line string) bool {
	line = strings.TrimLeft(line, " \t")
	for _, begin := range []string{"- ", "* ", "+ ", "> ", "| ", "# ", "## ", "### "} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

// isBehindTag reports whether the last line of a text before a mark is a tag of a document.
func isBehindTag(text string) bool {
	text = strings.TrimRight(text, " \t\r\n")
	line := strings.TrimSpace(lineBefore(text, len(text)))
	if len(line) < 3 || line[0] != '<' || line[len(line)-1] != '>' {
		return false
	}
	_, isMark := markAt(line)
	return !isMark
}

// cutLater passes the answer, and cuts thoughts out of it that begin a line.
func (c *cutter) cutLater() {
	f, from := fences{at: c.at, last: c.last()}, c.at
	closings := make(map[string]place)
	for {
		i, m := c.nextOpening(&f, from)
		if i < 0 || len(c.thoughts) == maxSpans {
			c.keepRest()
			return
		}
		inside := c.text[i+m.length:]
		end, length := c.closingBehind(closings, i+m.length, m.name)
		if !c.isOpening(i, m, end, length) {
			from = i + m.length
			if end < 0 { // no later mark of the name is closed either
				c.keepRest()
				return
			}
			continue
		}
		if end < 0 {
			end = len(inside)
		}
		c.kept = append(c.kept, strings.TrimRight(c.text[c.at:i], " \t\r\n"))
		c.think(inside[:end], i+m.length+end+length)
		c.at += len(c.text[c.at:]) - len(strings.TrimLeft(c.text[c.at:], " \t\r\n"))
		if c.at < len(c.text) {
			c.kept = append(c.kept, "\n")
		}
		from = c.at
		f = fences{at: from, last: f.last}
	}
}

// isOpening reports whether an opening mark at the beginning of a line begins thoughts, which end
// behind it, or are not closed if end is negative.
func (c *cutter) isOpening(at int, m mark, end, length int) bool {
	inside := c.text[at+m.length:]
	alone := strings.TrimSpace(lineAfter(c.text, at+m.length)) == ""
	if end < 0 {
		return alone || !isNotes(m.name) && !isSentence(inside) && isProse(inside)
	}
	after := inside[end+length:]
	return !mentions(inside[:end], after) && (alone || !isSentence(inside)) && !isElement(m.name, inside[:end], after)
}

// isProse reports whether a text begins with a word.
func isProse(text string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " \t"))
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// keepRest keeps the rest of the text as the answer, but not an opening mark behind its last sentence.
func (c *cutter) keepRest() {
	rest := strings.TrimRight(c.text[c.at:], " \t\r\n")
	at := strings.LastIndexAny(rest, "<[◁")
	if at < 1 || !strings.ContainsRune(".!?}。！？", lastRune(rest[:at])) {
		c.kept = append(c.kept, c.text[c.at:])
		return
	}
	m, ok := markAt(rest[at:])
	f := fences{at: c.at, last: c.last()}
	if !ok || m.closing || m.length != len(rest)-at || f.openAt(c.text, c.at+at) && c.at+at < f.last {
		c.kept = append(c.kept, c.text[c.at:])
		return
	}
	c.kept = append(c.kept, rest[:at])
	c.think("", len(c.text))
}

// lastRune returns the last character of a text.
func lastRune(text string) rune {
	r, _ := utf8.DecodeLastRuneInString(text)
	return r
}

// place is the place of a mark.
type place struct{ at, length int }

// closingBehind is closingOf for the text behind an offset. known has the last results by name: one that
// is further ahead is still the next.
func (c *cutter) closingBehind(known map[string]place, from int, name string) (at, length int) {
	p, ok := known[name]
	if !ok || p.at < from {
		if p.at, p.length = closingOf(c.text[from:], name); p.at < 0 {
			return -1, 0
		}
		p.at += from
		known[name] = p
	}
	return p.at - from, p.length
}

// nextOpening returns the next opening mark at the beginning of a line, -1 if there is none.
func (c *cutter) nextOpening(f *fences, from int) (at int, m mark) {
	for i := range lineCandidates(c.text, from) {
		m, ok := markAt(c.text[i:])
		isFence := false
		if !ok {
			m, isFence = fenceAt(c.text[i:])
		}
		switch {
		case !ok && !isFence, m.closing, m.name == "details", isBehindTag(c.text[:i]):
			continue
		case isFence && isIntroduced(c.text[:i]):
			continue
		case f.openAt(c.text, i) && i < f.last:
			continue
		}
		return i, m
	}
	return -1, mark{}
}

// isIntroduced reports whether a line before a fence introduces it as an example.
func isIntroduced(text string) bool {
	text = strings.TrimRight(text, " \t\r\n")
	return strings.HasSuffix(text, ":") || strings.HasSuffix(text, "：")
}
