package thoughts

import "strings"

// Stream passes the answer of a reply on while it arrives, without the thoughts. It can pass less
// than [Cut] finds, and it cannot know thoughts of which only the end is marked, unless Closed is set.
type Stream struct {
	// Pass receives the answer.
	Pass func(text string)
	// Closed is set if the replies of the model have the closing mark only.
	Closed bool
	// Style is that of the reply.
	Style Style

	held    string // was not passed yet
	inside  string // the name of the open mark
	middle  bool   // of a line
	begun   bool
	passing bool
	// inChannels is set in a reply in channels before the final one.
	inChannels bool
}

// finalChannel begins the answer of a reply in channels.
const finalChannel = "<|channel|>final<|message|>"

// longestMark is how much of a text is held to see whether it is a mark.
const longestMark = 64

// Add takes a part of the reply.
func (s *Stream) Add(text string) {
	if !s.begun {
		s.begun = true
		if s.Closed {
			s.inside = "think"
		}
	}
	s.held += text
	for s.step(false) {
	}
}

// Close passes what was held back.
func (s *Stream) Close() {
	for s.step(true) {
	}
}

// step takes a part of what is held, and reports whether there may be more to do.
func (s *Stream) step(last bool) bool {
	if s.held == "" {
		return false
	}
	if s.inside != "" {
		return s.skip()
	}
	if s.inChannels {
		return s.skipToFinal(last)
	}
	if !s.middle {
		return s.begin(last)
	}
	end := strings.IndexByte(s.held, '\n') + 1
	s.middle = end == 0
	if end == 0 {
		end = len(s.held)
	}
	s.emit(end)
	return s.held != ""
}

// skip passes over thoughts.
func (s *Stream) skip() bool {
	if at, length := closingOf(s.held, s.inside); at >= 0 {
		s.held, s.inside, s.middle = s.held[at+length:], "", false
		return true
	}
	s.held = s.held[max(0, len(s.held)-longestMark):]
	return false
}

// begin looks at the beginning of a line.
func (s *Stream) begin(last bool) bool {
	rest := strings.TrimLeft(s.held, " \t\r\n\ufeff")
	if rest == "" && !last && !s.passing {
		return false
	}
	begins := rest != "" && strings.IndexByte("<[`~\xE2", rest[0]) >= 0
	if begins && (!s.passing || s.Style == Generated) {
		m, ok := markAt(rest)
		if !ok {
			m, ok = fenceAt(rest)
		}
		if ok && !m.closing {
			s.held, s.inside = rest[m.length:], m.name
			return true
		}
		if !last && len(rest) < longestMark && !strings.ContainsAny(rest, ">]\n") {
			return false
		}
	}
	if strings.HasPrefix(rest, "<|channel|>") && !s.passing {
		s.held, s.inChannels = rest, true
		return true
	}
	s.middle, s.passing = true, true
	return true
}

// skipToFinal passes over a reply in channels up to the final one.
func (s *Stream) skipToFinal(last bool) bool {
	_, final, found := strings.Cut(s.held, finalChannel)
	switch {
	case found:
		s.held, s.inChannels, s.middle, s.passing = final, false, true, true
	case last:
		s.held = ""
	default:
		s.held = s.held[max(0, len(s.held)-len(finalChannel)+1):]
	}
	return found
}

func (s *Stream) emit(n int) {
	text := s.held[:n]
	s.held = s.held[n:]
	s.Pass(text)
}
