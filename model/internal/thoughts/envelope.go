package thoughts

import "strings"

// envelopes are the marks that models write around the answer behind their thoughts.
func envelopes() [][2]string {
	return [][2]string{
		{"<answer>", "</answer>"}, {"<final_answer>", "</final_answer>"}, {"<response>", "</response>"},
		{"<output>", "</output>"}, {"<solution>", "</solution>"},
		{"<|begin_of_solution|>", "<|end_of_solution|>"}, {"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
		{"<|START_TEXT|>", "<|END_TEXT|>"}, {"<|content|>", "<|end|>"}, {"[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"},
	}
}

// maxEnvelope is longer than each mark of an envelope.
const maxEnvelope = 32

// envelopeAt returns the marks of the envelope that a text begins with.
func envelopeAt(text string) (open, closing string, ok bool) {
	if text == "" || text[0] != '<' && text[0] != '[' {
		return "", "", false
	}
	for _, e := range envelopes() {
		if len(text) >= len(e[0]) && strings.EqualFold(text[:len(e[0])], e[0]) {
			return text[:len(e[0])], e[1], true
		}
	}
	return "", "", false
}

// isToken reports whether the mark of an envelope is a token of a model, which no document has.
func isToken(mark string) bool { return strings.HasPrefix(mark, "<|") || strings.HasPrefix(mark, "[") }

// openEnvelope returns an answer behind thoughts without the envelope around it. An element that is a
// document, or one of several, stays.
func openEnvelope(text string) string {
	trimmed := strings.TrimSpace(text)
	open, closing, ok := envelopeAt(trimmed)
	if !ok {
		return cutEndToken(text)
	}
	inside := trimmed[len(open):]
	at := indexFold(inside, closing)
	if at >= 0 && strings.TrimSpace(inside[at+len(closing):]) != "" {
		return text
	}
	if at >= 0 {
		inside = inside[:at]
	}
	inside = strings.TrimSpace(inside)
	if !isToken(open) && len(inside) > 1 && inside[0] == '<' && isLetter(inside[1]) {
		return text
	}
	return inside
}

// cutEndToken returns an answer without the token that ends it.
func cutEndToken(text string) string {
	trimmed := strings.TrimRight(text, " \t\r\n")
	for _, token := range []string{"<|end_of_solution|>", "<|END_RESPONSE|>", "<|END_TEXT|>", "[END FINAL RESPONSE]",
		"<|return|>", "<|im_end|>", "<|end|>"} {
		if rest, ok := strings.CutSuffix(trimmed, token); ok {
			return strings.TrimRight(rest, " \t\r\n")
		}
	}
	return text
}

// indexFold returns the place of a mark in any case, -1 if a text does not have it.
func indexFold(text, mark string) int {
	for i := 0; i+len(mark) <= len(text); i++ {
		next := strings.IndexByte(text[i:], mark[0])
		if next < 0 {
			return -1
		}
		i += next
		if i+len(mark) <= len(text) && strings.EqualFold(text[i:i+len(mark)], mark) {
			return i
		}
	}
	return -1
}

// lastEnvelope returns where an envelope begins a line of thoughts that are not closed, and ends the
// text: the answer is in it. It returns -1 if there is none.
func lastEnvelope(text string) int {
	trimmed := strings.TrimRight(text, " \t\r\n")
	for _, e := range envelopes() {
		if len(trimmed) < len(e[1]) || !strings.EqualFold(trimmed[len(trimmed)-len(e[1]):], e[1]) {
			continue
		}
		for end := len(trimmed); end > 0; {
			begin := strings.LastIndexByte(trimmed[:end], '\n') + 1
			head := trimmed[begin:min(len(trimmed), begin+maxEnvelope)]
			if open, _, ok := envelopeAt(head); ok && strings.EqualFold(open, e[0]) {
				return begin
			}
			end = begin - 1
		}
	}
	return -1
}

// analysis returns the analysis that a text begins with, if the answer in an envelope follows it.
func analysis(text string) (span, bool) {
	const open, closing = "<analysis>", "</analysis>"
	if len(text) < len(open) || !strings.EqualFold(text[:len(open)], open) {
		return span{}, false
	}
	inside := text[len(open):]
	at := indexFold(inside, closing)
	if at < 0 {
		return span{}, false
	}
	end := len(open) + at + len(closing)
	if _, _, ok := envelopeAt(strings.TrimLeft(text[end:], " \t\r\n")); !ok {
		return span{}, false
	}
	return span{inside[:at], end}, true
}
