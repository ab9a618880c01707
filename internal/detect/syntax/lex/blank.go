package lex

import "bytes"

// Blank replaces comments and the contents of strings with blanks, or everything
// but the comments. Lines and columns stay.
func Blank(rules *Rules, src string, comments bool) string {
	tokens, notes := new(Reader).Read(rules, src)
	out := bytes.Repeat([]byte{' '}, len(src))
	for i := range len(src) {
		if src[i] == '\n' {
			out[i] = '\n'
		}
	}
	if comments {
		for _, n := range notes {
			copy(out[n.Off:], n.S)
		}
		return string(out)
	}
	for i := range tokens {
		t := &tokens[i]
		if t.Kind != Text {
			copy(out[t.Off:], t.S)
			continue
		}
		out[t.Off], out[int(t.Off)+len(t.S)-1] = t.S[0], t.S[len(t.S)-1]
	}
	return string(out)
}
