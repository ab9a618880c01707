package clip

import "unicode/utf8"

// Tail is an io.Writer that keeps the last bytes written to it.
type Tail struct {
	// Limit is how many bytes are kept.
	Limit int

	kept []byte
	cut  bool
}

// Write keeps the end of p. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	most := t.Limit + utf8.UTFMax // so that End finds where a character begins
	t.kept = append(t.kept, p[max(0, len(p)-most):]...)
	t.cut = t.cut || len(t.kept) > t.Limit
	// Not at each write: moving the rest costs as much as it is long.
	if len(t.kept) > 2*most {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-most:]...)
	}
	return len(p), nil
}

// AddLine writes a line and its end.
func (t *Tail) AddLine(line []byte) {
	_, _ = t.Write(line)
	_, _ = t.Write([]byte("\n"))
}

// End returns the last bytes, without a part of a character at their beginning,
// and whether something was cut off before them.
func (t *Tail) End() (text string, cut bool) { return Suffix(string(t.kept), t.Limit), t.cut }

// String returns the last bytes, after [Mark] if something was cut off.
func (t *Tail) String() string {
	text, cut := t.End()
	if cut {
		return Mark + text
	}
	return text
}
