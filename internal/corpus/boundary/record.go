package boundary

import (
	"bytes"
)

// rowScanner finds the rows of comma-separated values, which may hold newlines
// between quotes.
type rowScanner struct {
	out   *marks
	comma byte
	// quoted is set in a field whose end is in a later line; held counts the
	// bytes since its beginning.
	quoted bool
	held   int
}

func (s *rowScanner) line(off int64, text []byte) {
	if !s.quoted {
		s.out.add(off, Record)
		s.held = 0
	}
	s.read(text, true)
}

func (s *rowScanner) more(text []byte) { s.read(text, false) }

func (s *rowScanner) end() {}

func (s *rowScanner) settled(off int64) int64 { return off }

// read follows the quotes of a line. A quote opens a field only at its
// beginning; what is not closed for long never was open.
func (s *rowScanner) read(text []byte, begins bool) {
	if s.held += len(text) + 1; s.held > holdBytes {
		s.quoted, s.held = false, 0
		return
	}
	i := 0
	if !s.quoted {
		if i = s.opens(text, begins); i < 0 {
			return
		}
	}
	for {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			s.quoted = true
			return
		}
		i += n + 1
		if i < len(text) && text[i] == '"' {
			i++
			continue
		}
		if n = s.opens(text[i:], false); n < 0 {
			s.quoted = false
			return
		}
		i += n
	}
}

// opens returns the place after the next quote that opens a field; -1 for none.
func (s *rowScanner) opens(text []byte, begins bool) int {
	if begins && len(text) > 0 && text[0] == '"' {
		return 1
	}
	for i := 0; ; {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		if i > 1 && text[i-2] == s.comma {
			return i
		}
	}
}

// lineScanner takes every line that is not blank or the end of a value for a
// record.
type lineScanner struct{ out *marks }

func (s *lineScanner) line(off int64, text []byte) {
	if len(text) > 0 && bytes.IndexByte([]byte(" \t\r}],"), text[0]) < 0 {
		s.out.add(off, Record)
	}
}

func (s *lineScanner) more([]byte) {}

func (s *lineScanner) end() {}

func (s *lineScanner) settled(off int64) int64 { return off }

// logScanner finds the entries of a log with the lines that go on with them.
type logScanner struct {
	out *marks
	// stamped is set for logs whose entries begin with a time or a level.
	stamped bool
}

func (s *logScanner) line(off int64, text []byte) {
	if s.stamped && stamped(text) || !s.stamped && entry(text) {
		s.out.add(off, Record)
	}
}

func (s *logScanner) more([]byte) {}

func (s *logScanner) end() {}

func (s *logScanner) settled(off int64) int64 { return off }

// entry tells lines that do not look like the rest of an entry, in a log
// without times.
func entry(text []byte) bool {
	return len(text) > 0 && bytes.IndexByte([]byte(" \t\r}])"), text[0]) < 0 &&
		!hasPrefix(text, []string{"Caused by", "Traceback", "at ", "goroutine ", "... "})
}

// stamped tells lines that begin with a time, a level or an address, in a
// bracket or not.
func stamped(text []byte) bool {
	i := 0
	for i < len(text) && i < 2 && (text[i] == '[' || text[i] == '<' || text[i] == '(') {
		i++
	}
	text = text[i:]
	switch {
	case len(text) < 5:
		return false
	case digit(text[0]):
		return numbered(text)
	case hasPrefix(text, []string{"Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ",
		"Dec ",
		"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun ", "Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,"}):
		return true
	case bytes.IndexByte([]byte("IWEFD"), text[0]) >= 0 && digit(text[1]) && digit(text[2]) && digit(text[3]) &&
		digit(text[4]):
		return true // I0102 15:04:05, as of klog
	case hasPrefix(text, []string{"time=", "ts=", "level="}):
		return true
	}
	return closes(text, []string{"INFO", "WARN", "WARNING", "ERROR", "DEBUG", "TRACE", "FATAL", "CRITICAL", "NOTICE",
		"SEVERE",
		"info", "warn", "warning", "error", "debug", "trace", "fatal"})
}

// numbered tells the numbers of dates, times, addresses and seconds from
// others.
func numbered(text []byte) bool {
	const longest = 20
	digits, signs := 0, 0
	for i, c := range text[:min(len(text), longest)] {
		switch {
		case digit(c):
			digits++
		case c == '-' || c == '/' || c == ':' || c == '.' || c == 'T' || c == ',':
			signs++
		default:
			return digits >= 4 && signs >= 2 || i >= 10 && digits >= 10 || signs == 0 && c == '>'
		}
	}
	return digits >= 8
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
