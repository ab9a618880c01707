package command

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// pieceBytes is the longest line of plain output that is handed on whole.
const pieceBytes = 64 << 10

// splitter cuts what is written to it into lines, without keeping more than
// one. It is not safe for concurrent use.
type splitter struct {
	// line receives each line without its end; it does not keep it.
	line func(line []byte)
	// max is the longest line. Longer ones are passed on in parts; when long
	// is set they are left out instead, and it is called.
	max  int
	long func()
	// heard is called for each write.
	heard func()

	kept []byte
	skip bool // to the end of this line
}

var _ io.Writer = (*splitter)(nil)

func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	if s.heard != nil {
		s.heard()
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.keep(p)
			break
		}
		s.keep(p[:end])
		s.end()
		p = p[end+1:]
	}
	return n, nil
}

// flush hands on a last line without an end.
func (s *splitter) flush() {
	if len(s.kept) > 0 {
		s.end()
	}
}

func (s *splitter) end() {
	if !s.skip {
		s.line(bytes.TrimSuffix(s.kept, []byte("\r")))
	}
	s.skip = false
	s.kept = s.kept[:0]
	if cap(s.kept) > pieceBytes {
		s.kept = nil
	}
}

func (s *splitter) keep(p []byte) {
	if s.skip {
		return
	}
	if s.long != nil && len(s.kept)+len(p) > s.max {
		s.long()
		s.kept, s.skip = nil, true
		return
	}
	for s.long == nil && len(s.kept)+len(p) > s.max {
		room := s.max - len(s.kept)
		s.kept = append(s.kept, p[:room]...)
		p = p[room:]
		whole := wholeCharacters(s.kept)
		s.line(s.kept[:whole])
		s.kept = append(s.kept[:0], s.kept[whole:]...)
	}
	s.kept = append(s.kept, p...)
}

// wholeCharacters returns how many bytes of b do not belong to a last character
// of which bytes may still come.
func wholeCharacters(b []byte) int {
	for i := len(b) - 1; i > 0 && i >= len(b)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				break
			}
			return i
		}
	}
	return len(b)
}
