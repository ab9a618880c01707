package boundary

import "bytes"

// rowScanner finds the rows of comma-separated values, which may have newlines between
// quotes.
type rowScanner struct {
	stateless

	out   *marks
	comma byte
	// quoted is set in a field whose end is in a later line; held counts the bytes since
	// its beginning.
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

// read follows the quotes of a line. A quote opens a field only at its beginning; one that
// is not closed within holdBytes did not open a field.
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

// lineScanner marks every line as a record that is not blank or the end of a value.
type lineScanner struct {
	stateless

	out *marks
}

func (s *lineScanner) line(off int64, text []byte) {
	if len(text) > 0 && bytes.IndexByte([]byte(" \t\r}],"), text[0]) < 0 {
		s.out.add(off, Record)
	}
}

// logScanner finds the entries of a log, each with the lines that continue it.
type logScanner struct {
	stateless

	out *marks
	// stamped is set for logs whose entries begin with a time or a level.
	stamped bool
}

func (s *logScanner) line(off int64, text []byte) {
	if s.stamped && stamped(text) || !s.stamped && entry(text) {
		s.out.add(off, Record)
	}
}

// entry reports whether a line of a log without times begins an entry.
func entry(text []byte) bool {
	return len(text) > 0 && bytes.IndexByte([]byte(" \t\r}])"), text[0]) < 0 &&
		!hasPrefix(text, []string{"Caused by", "Traceback", "at ", "goroutine ", "... "})
}

// stamped reports whether a line begins with a time, a level or an address, in a bracket
// or not.
func stamped(text []byte) bool {
	for range 2 {
		if len(text) > 0 && (text[0] == '[' || text[0] == '<' || text[0] == '(') {
			text = text[1:]
		}
	}
	switch {
	case len(text) < 5:
		return false
	case digit(text[0]):
		return numbered(text)
	case hasPrefix(text, []string{"Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ",
		"Dec ", "Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun ", "Mon,", "Tue,", "Wed,", "Thu,", "Fri,",
		"Sat,", "Sun,"}):
		return true
	case bytes.IndexByte([]byte("IWEFD"), text[0]) >= 0 && digit(text[1]) && digit(text[2]) && digit(text[3]) &&
		digit(text[4]):
		return true // I0102 15:04:05, as of klog
	case hasPrefix(text, []string{"time=", "ts=", "level="}):
		return true
	}
	return closes(text, []string{"INFO", "WARN", "WARNING", "ERROR", "DEBUG", "TRACE", "FATAL", "CRITICAL", "NOTICE",
		"SEVERE", "info", "warn", "warning", "error", "debug", "trace", "fatal"})
}

// numbered reports whether a number is that of a date, time, address or second.
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
