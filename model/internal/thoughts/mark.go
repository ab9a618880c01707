package thoughts

import (
	"iter"
	"strings"
)

// mark is a mark that begins or ends thoughts.
type mark struct {
	name    string
	closing bool
	length  int
}

// maxMark is the longest mark, with its attributes.
const maxMark = 120

// candidates yields the offsets at which a mark can begin.
func candidates(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range len(text) {
			if c := text[i]; (c == '<' || c == '[' || c == 0xE2) && !yield(i) {
				return
			}
		}
	}
}

// lineCandidates yields the offsets of lines, from an offset on, that can begin with a mark or a fence.
func lineCandidates(text string, from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from < len(text) {
			begins := from == 0 || text[from-1] == '\n'
			if begins && strings.IndexByte("<[`~\xE2", text[from]) >= 0 && !yield(from) {
				return
			}
			next := strings.IndexByte(text[from:], '\n')
			if next < 0 {
				return
			}
			from += next + 1
		}
	}
}

// markAt returns the mark that a text begins with.
func markAt(text string) (mark, bool) {
	switch {
	case strings.HasPrefix(text, "<|"):
		return tokenAt(text)
	case strings.HasPrefix(text, "<"):
		return tagAt(text)
	case strings.HasPrefix(text, "["):
		return wordAt(text, "[THINK]", "[/THINK]")
	case strings.HasPrefix(text, "◁"):
		return wordAt(text, "◁think▷", "◁/think▷")
	}
	return mark{}, false
}

// wordAt returns a mark that has one form.
func wordAt(text, open, closing string) (mark, bool) {
	switch {
	case strings.HasPrefix(text, open):
		return mark{name: open, length: len(open)}, true
	case strings.HasPrefix(text, closing):
		return mark{name: open, closing: true, length: len(closing)}, true
	}
	return mark{}, false
}

// tokenAt returns a mark that is a token of the model's vocabulary.
func tokenAt(text string) (mark, bool) {
	for _, pair := range [][2]string{{"<|START_THINKING|>", "<|END_THINKING|>"},
		{"<|begin_of_thought|>", "<|end_of_thought|>"}, {"<|channel>thought", "<channel|>"}, {"<|think|>", "<|/think|>"},
		{"<|think|>", "<|end|><|begin|>assistant"}} {
		if m, ok := wordAt(text, pair[0], pair[1]); ok {
			return m, true
		}
	}
	return mark{}, false
}

// tagAt returns a mark that is a tag, in any case and with attributes.
func tagAt(text string) (mark, bool) {
	if strings.HasPrefix(text, "<channel|>") {
		return mark{name: "<|channel>thought", closing: true, length: len("<channel|>")}, true
	}
	if m, ok := wordAt(text, "<unused94>thought", "<unused95>"); ok { // of MedGemma
		return m, true
	}
	text = text[:min(len(text), maxMark)]
	end := strings.IndexAny(text[1:], "<>\n") + 1
	if end == 0 || text[end] != '>' {
		return mark{}, false
	}
	inside, closing := strings.CutPrefix(text[1:end], "/")
	name, attributes, _ := strings.Cut(inside, " ")
	name = strings.ToLower(strings.TrimSpace(name))
	if closing && strings.TrimSpace(attributes) != "" || strings.HasSuffix(inside, "/") {
		return mark{}, false
	}
	if name == "details" {
		if !closing && !strings.Contains(attributes, `type="reasoning"`) {
			return mark{}, false
		}
	} else if !isTag(name) {
		return mark{}, false
	}
	return mark{name: name, closing: closing, length: end + 1}, true
}

// isTag reports whether a name is that of an element that holds thoughts.
func isTag(name string) bool {
	switch name {
	case "think", "thinking", "thought", "thoughts", "reasoning", "seed:think", "antthinking", "internal_thoughts":
		return true
	case "longcat_think", "think_fast", "think_faster", "thought_process", "inner_thoughts", "inner_monologue":
		return true
	}
	return isNotes(name)
}

// isNotes reports whether a name is that of an element that holds thoughts in a reply, and can be one of
// a document too.
func isNotes(name string) bool {
	switch name {
	case "scratchpad", "scratch_pad", "reflection":
		return true
	}
	return false
}

// isElement reports whether a mark is an element of a document: it holds elements, and no answer follows.
func isElement(name, inside, after string) bool {
	inside = strings.TrimSpace(inside)
	return isNotes(name) && len(inside) > 1 && inside[0] == '<' && isLetter(inside[1]) && strings.TrimSpace(after) == ""
}

// fenceMark is the name of a fence that holds thoughts.
const fenceMark = "```"

// fenceAt returns the fence with thoughts that a text begins with, at the beginning of a line.
func fenceAt(text string) (mark, bool) {
	if text == "" || text[0] != '`' && text[0] != '~' {
		return mark{}, false
	}
	line, _, found := strings.Cut(text[:min(len(text), maxMark)], "\n")
	ticks, tag := fenceOf(line)
	switch strings.ToLower(strings.TrimSpace(tag)) {
	case "thinking", "think", "thought", "thoughts", "reasoning", "scratchpad":
		if found {
			return mark{name: fenceMark + ticks, length: len(line) + 1}, true
		}
	}
	return mark{}, false
}

// fenceEnd returns the place of the line that closes a fence, and its length, -1 if it is not closed.
func fenceEnd(text, ticks string) (at, length int) {
	for at < len(text) {
		line, _, _ := strings.Cut(text[at:], "\n")
		closing, rest := fenceOf(line)
		if closing != "" && closing[0] == ticks[0] && len(closing) >= len(ticks) && strings.TrimSpace(rest) == "" {
			return at, len(line)
		}
		at += len(line) + 1
	}
	return -1, 0
}

// isQuoted reports whether a mark stands between quotes, or is code in its line.
func isQuoted(text string, at, length int) bool {
	before, after := lineBefore(text, at), text[at+length:]
	if before != "" && after != "" {
		switch first, last := after[0], before[len(before)-1]; last {
		case '"', '\'', '`', '*':
			if first == last {
				return true
			}
		case '(':
			if first == ')' {
				return true
			}
		}
		if strings.HasSuffix(before, "“") || strings.HasSuffix(before, "«") || strings.HasSuffix(before, "‘") {
			return true
		}
	}
	return strings.Count(before, "`")%2 == 1
}

// maxLine bounds what is read of a line before a mark.
const maxLine = 400

// lineBefore returns the text of a line before an offset.
func lineBefore(text string, at int) string {
	from := max(0, at-maxLine)
	return text[from+strings.LastIndexByte(text[from:at], '\n')+1 : at]
}

// lineAfter returns the text of a line behind an offset.
func lineAfter(text string, at int) string {
	line, _, _ := strings.Cut(text[at:min(len(text), at+maxLine)], "\n")
	return strings.TrimRight(line, "\r")
}
