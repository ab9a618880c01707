package source

import "bytes"

// Blank replaces comments and the contents of strings with blanks, or everything
// but the comments. Lines and columns stay.
func Blank(lang *Language, src string, comments bool) string {
	tokens, notes := new(lexer).lex(&lang.rules, src)
	out := bytes.Repeat([]byte{' '}, len(src))
	for i := range len(src) {
		if src[i] == '\n' {
			out[i] = '\n'
		}
	}
	if comments {
		for _, n := range notes {
			copy(out[n.off:], n.s)
		}
		return string(out)
	}
	for i := range tokens {
		t := &tokens[i]
		if t.kind != text {
			copy(out[t.off:], t.s)
			continue
		}
		out[t.off], out[int(t.off)+len(t.s)-1] = t.s[0], t.s[len(t.s)-1]
	}
	return string(out)
}
