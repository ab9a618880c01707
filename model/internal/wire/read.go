package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/sse"
	"github.com/perdure/perdure/model"
)

// bytesPerAnswerByte is how many bytes of JSON may come for one byte of an
// answer that is not streamed: "\u0041" and the fields around it.
const bytesPerAnswerByte = 8

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 32 << 20

// maxBlank bounds the white space before a reply, which some servers send to keep a connection
// open while the model works.
const maxBlank = 1 << 20

// byteOrderMark begins the replies of some gateways.
const byteOrderMark = "\uFEFF"

// maxShownPage bounds what an error shows of a reply that is neither JSON nor a stream, in bytes.
const maxShownPage = 200

// PageError is the error of a reply that is a web page or another text: a page to sign in, or a
// proxy's message.
type PageError struct {
	// HTML reports whether it is a web page.
	HTML bool
	// Text is its beginning.
	Text string
}

// Error describes the reply.
func (e *PageError) Error() string {
	kind := "text"
	if e.HTML {
		kind = "a web page"
	}
	return fmt.Sprintf("the reply is %s, not an answer of a model: %q", kind, e.Text)
}

// Unwrap returns [ErrNotAnswer].
func (e *PageError) Unwrap() error { return ErrNotAnswer }

// read reads a reply. Its first bytes decide its kind, because many gateways name another one in
// the header: a stream of events, one JSON document, or several ones. maxAnswer is the largest
// answer accepted, in bytes.
func read(body io.Reader, maxAnswer int, a Answer) error {
	r := bufio.NewReaderSize(body, 64<<10)
	if head, _ := r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) { // without the header that names it
		plain, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = bufio.NewReaderSize(plain, 64<<10)
	}
	first, err := firstByte(r)
	switch {
	case err == nil && first == 0:
		return model.TooLarge(maxAnswer)
	case errors.Is(err, io.EOF):
		return a.ReadEvents(Events(r, maxAnswer)) // which says that it is empty
	case err != nil:
		return err
	case first == '{' || first == '[':
		return readDocuments(r, maxAnswer, a)
	}
	head, _ := r.Peek(min(maxShownPage, r.Buffered()))
	if !isStream(head) {
		return &PageError{HTML: first == '<', Text: clip.Bytes(clip.OneLine(string(head)), maxShownPage)}
	}
	return a.ReadEvents(Events(r, maxAnswer))
}

// firstByte skips white space and byte order marks, and returns the byte after them; 0 if there
// are too many.
func firstByte(r *bufio.Reader) (byte, error) {
	for range maxBlank {
		head, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		skip := 1
		switch head[0] {
		case ' ', '\t', '\r', '\n':
		case byteOrderMark[0]:
			if mark, _ := r.Peek(len(byteOrderMark)); string(mark) != byteOrderMark {
				return head[0], nil
			}
			skip = len(byteOrderMark)
		default:
			return head[0], nil
		}
		if _, err := r.Discard(skip); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// isStream reports whether a text may be the beginning of a stream of events: a comment, or a
// field's name, which may be cut.
func isStream(head []byte) bool {
	name, _, found := bytes.Cut(head, []byte(":"))
	if found && len(name) == 0 {
		return true
	}
	name, _, _ = bytes.Cut(name, []byte("\n"))
	for _, field := range []string{"data", "event", "id", "retry"} {
		if string(name) == field || !found && len(name) > 0 && bytes.HasPrefix([]byte(field), name) {
			return true
		}
	}
	return false
}

// readDocuments reads one JSON document, or several ones or a list of them as the events of a
// stream.
func readDocuments(body io.Reader, maxAnswer int, a Answer) error {
	limit := int64(maxAnswer)*bytesPerAnswerByte + 1<<16
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil && len(data) == 0:
		return err
	case int64(len(data)) > limit:
		return model.TooLarge(maxAnswer)
	}
	documents, failed := splitDocuments(data)
	if failed == nil { // what follows complete documents matters only to a stream
		failed = err
	}
	switch {
	case len(documents) == 1 && documents[0][0] == '[':
		if _, isFault := model.ParseFault(documents[0]); isFault {
			return a.ReadWhole(documents[0])
		}
		var list []json.RawMessage
		_ = json.Unmarshal(documents[0], &list) // it was decoded before
		if slices.ContainsFunc(list, func(one json.RawMessage) bool { return one[0] != '{' }) {
			return ErrNotAnswer
		}
		return a.ReadEvents(eventsOf(list, failed))
	case len(documents) == 1 && (failed == nil || errors.Is(failed, err)):
		return a.ReadWhole(documents[0])
	case len(documents) <= 1:
		return failed
	}
	return a.ReadEvents(eventsOf(documents, failed))
}

// splitDocuments returns the JSON documents in data, one behind another. The error is
// io.ErrUnexpectedEOF if the last one is cut, and otherwise wraps [ErrNotAnswer].
func splitDocuments(data []byte) ([]json.RawMessage, error) {
	data = bytes.ReplaceAll(data, []byte("\n"+byteOrderMark), []byte("\n"))
	data = bytes.TrimSuffix(bytes.TrimSpace(data), []byte("[DONE]"))
	var documents []json.RawMessage
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var one json.RawMessage
		switch err := dec.Decode(&one); {
		case err == nil:
			documents = append(documents, one)
		case errors.Is(err, io.EOF):
			return documents, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return documents, err
		default:
			return documents, errors.Join(ErrNotAnswer, err)
		}
	}
}

// eventsOf returns documents as events. An error, if not nil, is the last element.
func eventsOf(documents []json.RawMessage, err error) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for _, one := range documents {
			if !yield(sse.Event{Data: one}, nil) {
				return
			}
		}
		if err != nil {
			yield(sse.Event{}, err)
		}
	}
}

// ReadWhole reads a reply that is not streamed into a value; isAnswer reports
// whether the value is an answer then. The error is a [ServerError]
// for an error of the server, and otherwise wraps [ErrNotAnswer].
func ReadWhole(document []byte, into any, isAnswer func() bool) error {
	if err := Decode(document, into); err != nil {
		return errors.Join(ErrNotAnswer, err)
	}
	if isAnswer() {
		return nil
	}
	if f, ok := model.ParseFault(document); ok {
		return &ServerError{f}
	}
	return ErrNotAnswer
}

// IsFault reports whether an event that is no part of an answer is an error of the server, which
// some send without a name.
func IsFault(event []byte) bool {
	f, ok := model.ParseFault(event)
	return ok && (f.Code != "" || strings.Contains(strings.ToLower(f.Type), "error") ||
		bytes.Contains(event, []byte(`"detail"`)))
}

// Events returns the events of a stream that have data. An error is the last
// element. The last event may lack its end. maxAnswer is the largest answer accepted, in bytes;
// the error of an event that is too long names it.
func Events(body io.Reader, maxAnswer int) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for r := sse.NewReader(body, maxEvent); ; {
			e, err := r.Next()
			switch {
			case errors.Is(err, io.EOF):
				if e = r.Rest(); len(e.Data) > 0 {
					yield(e, nil)
				}
				return
			case errors.Is(err, sse.ErrTooLong):
				err = model.TooLarge(maxAnswer)
			case err == nil && len(e.Data) == 0:
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
