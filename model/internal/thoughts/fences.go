package thoughts

import "strings"

// fences follows the fences of code in a text, from its beginning.
type fences struct {
	at   int    // the beginning of the line that is read next
	mark string // that of the open fence, empty between fences
	last int    // see lastFence: a fence that is open behind it is not closed
}

// openAt reports whether a fence is open at an offset, which never decreases.
func (f *fences) openAt(text string, offset int) bool {
	for f.at < offset {
		line, _, _ := strings.Cut(text[f.at:], "\n")
		if f.at+len(line) >= offset {
			break
		}
		f.read(line)
		f.at += len(line) + 1
	}
	return f.mark != ""
}

func (f *fences) read(line string) {
	mark, rest := fenceOf(line)
	switch {
	case mark == "":
	case f.mark == "":
		if mark[0] == '~' || !strings.Contains(rest, "`") {
			f.mark = mark
		}
	case mark[0] == f.mark[0] && len(mark) >= len(f.mark) && strings.TrimSpace(rest) == "":
		f.mark = ""
	}
}

// lastFence returns the offset of the last line that can close a fence, -1 if there is none.
func lastFence(text string) int {
	for end := len(text); end > 0; {
		begin := strings.LastIndexByte(text[:end], '\n') + 1
		if mark, rest := fenceOf(text[begin:end]); mark != "" && strings.TrimSpace(rest) == "" {
			return begin
		}
		end = begin - 1
	}
	return -1
}

// fenceOf returns the mark of the fence that a line begins with, empty if it has none.
func fenceOf(line string) (mark, rest string) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return "", ""
	}
	rest = strings.TrimLeft(line, line[:1])
	if n := len(line) - len(rest); n >= 3 {
		return line[:n], rest
	}
	return "", ""
}
