package pipe

import (
	"bytes"
	"strings"
)

// errorText keeps the end of what a process writes to its standard error.
type errorText struct{ kept []byte }

// mostErrorText is how much of it is kept.
const mostErrorText = 4 << 10

// Write keeps the end of what was written. It never fails.
func (e *errorText) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p...)
	if len(e.kept) > mostErrorText {
		e.kept = append([]byte(nil), e.kept[len(e.kept)-mostErrorText:]...)
	}
	return len(p), nil
}

// lastLine returns the last line that is not empty, "" if there is none.
func (e *errorText) lastLine() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(bytes.TrimSpace(e.kept)), "?"))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
