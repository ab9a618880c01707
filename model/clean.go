package model

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// replacement replaces invalid UTF-8 and NUL bytes.
const replacement = "\uFFFD"

// NoteReplaced is the note of a response whose text was not valid UTF-8 or
// contained NUL bytes.
const NoteReplaced = "the answer was not valid UTF-8 or contained NUL bytes; these were replaced by U+FFFD"

// NoteNoTemperature is the note of a response whose model takes no temperature.
const NoteNoTemperature = "the temperature was not sent: this model takes none"

// NoteNoSeed is the note of a response whose model takes no seed.
const NoteNoSeed = "the seed was not sent: this model takes none"

// NoteNoSchema is the note of a response to a request without the schema of its answer.
const NoteNoSchema = "the schema of the answer was not sent: the server refuses it"

// NoteCutRequest is the note of a response to a request that was probably not read to its
// end.
const NoteCutRequest = "the server counted fewer tokens than the request has words: it probably read a part of it " +
	"only; give the server a larger context, or set --context-window to the one it has"

// Clean returns s as valid UTF-8 without NUL bytes, and whether it had to
// change anything: each NUL byte and each run of invalid bytes becomes U+FFFD.
func Clean(s string) (clean string, changed bool) {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s, false
	}
	s = strings.ToValidUTF8(s, replacement)
	return strings.ReplaceAll(s, "\x00", replacement), true
}

// Collector collects an answer that arrives in parts, up to a limit. It is an
// io.Writer. The zero value collects without a limit. It is not safe for
// concurrent use.
type Collector struct {
	// Limit is how many bytes are taken; 0 means no limit.
	Limit int
	// Most is how many bytes are kept: the text is cut there, and Write returns
	// [ErrOverLimit]. 0 means no limit. See [MostAnswerBytes].
	Most int
	// OnText, when set, receives the text while it arrives, cleaned, never
	// split inside a character.
	OnText func(text string)

	text strings.Builder
	// streamed is how many bytes of text OnText has received.
	streamed int
}

// Write adds p. When the limit is passed it keeps nothing of p and returns an
// error of [KindTooLarge].
func (c *Collector) Write(p []byte) (int, error) {
	if c.Limit > 0 && c.text.Len()+len(p) > c.Limit {
		return 0, TooLarge(c.Limit)
	}
	over := c.Most > 0 && c.text.Len()+len(p) > c.Most
	if over {
		p = p[:max(c.Most-c.text.Len(), 0)]
		p = p[:wholeCharacters(string(p))]
	}
	c.text.Write(p)
	c.stream(false)
	if over {
		return len(p), ErrOverLimit
	}
	return len(p), nil
}

// ErrOverLimit is returned by [Collector.Write] for a text that is longer than was
// asked for.
var ErrOverLimit = errors.New("the answer is longer than was asked for")

// bytesPerToken is more than the mean length of a token in any text that models write:
// about twice that of English.
const bytesPerToken = 8

// MostAnswerBytes returns the length in bytes beyond which an answer certainly has more
// than so many tokens; 0, no limit, for 0 tokens.
func MostAnswerBytes(tokens int) int {
	if tokens <= 0 || tokens > math.MaxInt/bytesPerToken-1024 {
		return 0
	}
	return bytesPerToken*tokens + 1024
}

// WriteString is Write for a string.
func (c *Collector) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// Len returns how many bytes were collected.
func (c *Collector) Len() int { return c.text.Len() }

// Finish hands the rest to OnText and returns the whole answer, cleaned, and
// whether cleaning changed it.
func (c *Collector) Finish() (text string, changed bool) {
	c.stream(true)
	return Clean(c.text.String())
}

func (c *Collector) stream(all bool) {
	if c.OnText == nil {
		return
	}
	rest := c.text.String()[c.streamed:]
	if !all {
		rest = rest[:wholeCharacters(rest)]
	}
	if rest == "" {
		return
	}
	c.streamed += len(rest)
	clean, _ := Clean(rest)
	c.OnText(clean)
}

// wholeCharacters returns how many bytes of s do not belong to a last
// character of which bytes may still arrive.
func wholeCharacters(s string) int {
	for i := len(s) - 1; i >= 0 && i >= len(s)-utf8.UTFMax+1; i-- {
		if !utf8.RuneStart(s[i]) {
			continue
		}
		if !utf8.FullRuneInString(s[i:]) {
			return i
		}
		break
	}
	return len(s)
}

// TooLarge returns the error of an answer over limit bytes.
func TooLarge(limit int) *Error {
	return &Error{
		Kind: KindTooLarge,
		Msg:  fmt.Sprintf("answer is larger than %d bytes", limit),
		Hint: "ask for a shorter answer, or raise the limit for answers",
	}
}
