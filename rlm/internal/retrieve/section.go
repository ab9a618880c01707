package retrieve

import (
	"fmt"
	"slices"
	"strings"
)

// section is a part of the prompt. Passages and listings can be left out of later requests.
type section struct {
	text  string
	kind  kind
	shown int // of a passage, its number among those shown
	// group counts the requests that were made before.
	group int
}

// kind is the kind of a section.
type kind int

const (
	frame kind = iota
	passage
	listing
	gone // left out
)

// write adds text to the prompt that stays in it.
func (s *Session) write(format string, args ...any) {
	s.add(section{text: fmt.Sprintf(format, args...)})
}

func (s *Session) add(part section) {
	part.group = len(s.ends)
	s.sections = append(s.sections, part)
	s.left -= len(part.text)
}

// text returns the first n sections.
func (s *Session) text(n int) string {
	var b strings.Builder
	for _, part := range s.sections[:n] {
		b.WriteString(part.text)
	}
	return b.String()
}

// CanShorten reports whether [Session.Shorten] has something to leave out.
func (s *Session) CanShorten() bool { return s.optional() >= 2*leastRoom }

// optional is how many bytes of passages and listings the prompt has.
func (s *Session) optional() (bytes int) {
	for _, part := range s.sections {
		if part.kind == passage || part.kind == listing {
			bytes += len(part.text)
		}
	}
	return bytes
}

// Shorten leaves half of the passages and listings out of the following requests, because a
// model found the last one too long: first passages, those of the oldest request first and of
// these the worst, then listings. It reports whether that made the prompt shorter. From then on
// there is room for three quarters of what was refused.
func (s *Session) Shorten() bool {
	if !s.CanShorten() {
		return false
	}
	refused := len(s.text(len(s.sections)))
	excess := s.optional() / 2
	if s.LeftOut == 0 {
		s.write("\n(The requests became too long: what is marked as left out was shown in earlier ones. Ask for it again " +
			"if you need it.)\n")
	}
	for _, i := range s.leaveOutOrder() {
		if excess > 0 {
			excess -= s.leaveOut(&s.sections[i], excess)
		}
	}
	size := len(s.text(len(s.sections)))
	s.left = refused - refused/4 - size
	return size <= refused-leastRoom/2
}

// leaveOutOrder returns the numbers of the sections that can be left out, the least useful
// first.
func (s *Session) leaveOutOrder() []int {
	var passages, listings []int
	for i, part := range s.sections {
		switch part.kind {
		case passage:
			passages = append(passages, i)
		case listing:
			listings = append(listings, i)
		case frame, gone:
		}
	}
	slices.SortStableFunc(passages, func(i, j int) int {
		if a, b := s.sections[i].group, s.sections[j].group; a != b {
			return a - b
		}
		return j - i // passages are ordered from the best to the worst
	})
	return append(passages, listings...)
}

// leaveOut replaces a section by its beginning, so that the prompt has excess bytes less, or by
// a message if little would stay. It returns how many bytes less there are.
func (s *Session) leaveOut(part *section, excess int) (less int) {
	const message = "(left out)\n"
	before := len(part.text)
	if part.kind == listing {
		if before <= len(message) {
			return 0
		}
		s.LeftOut++
		part.text, part.kind = message, gone
		return before - len(message)
	}
	d := &s.shown[part.shown]
	short := excerpt{Document: d.Document}
	short.Text, _ = cutLines(d.Text, before-excess-len(d.File)-100)
	text, left := short.text()+"(the rest is left out)\n", passage
	if len(short.Text) < leastRoom {
		text, left = fmt.Sprintf("=== %q lines %d-%d === %s", d.File, d.StartLine, d.EndLine(), message), gone
	}
	if len(text) >= before {
		return 0
	}
	s.LeftOut++
	part.text, part.kind, d.leftOut = text, left, true
	return before - len(text)
}
