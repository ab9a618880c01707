package pack

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The stream is a tar file. A file is one entry, or several of the same name in a row, so
// that its size need not be known before it is read: all but the last of them have the
// record streamMore. The last entry of a file that could not be read to its end has
// streamFailed. The last entry of all has streamTrailer and is the trailer; a stream without
// it was cut.
const (
	streamMore    = "PERDURE.more"
	streamFailed  = "PERDURE.failed"
	streamTrailer = "PERDURE.trailer"

	// streamPart is the size of the largest entry.
	streamPart = 1 << 20
	// maxTrailerBytes limits the trailer.
	maxTrailerBytes = 256 << 20
)

// ErrStream is wrapped by errors about streams that are malformed or cut.
var ErrStream = errors.New("bad context stream")

// trailer is the body of the last entry.
type trailer struct {
	Version     int       `json:"version"`
	Files       int       `json:"files"`
	Bytes       int64     `json:"bytes"` // of the files
	Skipped     []Skipped `json:"skipped,omitempty"`
	MoreSkipped int64     `json:"more_skipped,omitempty"`
	// SkippedKinds counts all that were skipped.
	SkippedKinds map[string]int64 `json:"skipped_kinds,omitempty"`
	Notes        []Note           `json:"notes,omitempty"`
	MoreNotes    int64            `json:"more_notes,omitempty"`
}

// StreamWriter writes files as a stream for [ReadStream]. It has the methods Add and Skip of
// [Builder]. It is used by one goroutine.
type StreamWriter struct {
	tw   *tar.Writer
	buf  []byte
	tail trailer
	// skips collects the skipped files and notes with the limits of a manifest.
	skips Builder
	err   error
}

// NewStreamWriter returns a writer of a stream to w.
func NewStreamWriter(w io.Writer) *StreamWriter {
	return &StreamWriter{tw: tar.NewWriter(w), tail: trailer{Version: Version}}
}

// Add writes the content of r as the file name. After a [*ReadError] of r, the stream
// continues without the file. After any other error the stream cannot be finished.
func (s *StreamWriter) Add(name string, r io.Reader) error {
	if s.err != nil {
		return s.err
	}
	if err := checkName(name); err != nil {
		return s.fail(err)
	}
	if s.buf == nil {
		s.buf = make([]byte, streamPart)
	}
	for size := int64(0); ; {
		n, end, err := readFull(r, s.buf)
		if err != nil {
			return s.breakOff(name, size > 0, err)
		}
		var records map[string]string
		if !end {
			records = map[string]string{streamMore: "1"}
		}
		if err := s.entry(name, s.buf[:n], records); err != nil {
			return s.fail(fmt.Errorf("send %q: %w", name, err))
		}
		size += int64(n)
		if end {
			s.tail.Files++
			s.tail.Bytes += size
			return nil
		}
	}
}

// breakOff ends a file that could not be read to its end, if its beginning was sent.
func (s *StreamWriter) breakOff(name string, begun bool, cause error) error {
	if begun {
		if err := s.entry(name, nil, map[string]string{streamFailed: "1"}); err != nil {
			return s.fail(fmt.Errorf("send %q: %w", name, err))
		}
	}
	return &ReadError{Name: name, Err: cause}
}

func (s *StreamWriter) entry(name string, data []byte, records map[string]string) error {
	err := s.tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600,
		ModTime: time.Unix(0, 0), PAXRecords: records,
	})
	if err == nil {
		_, err = s.tw.Write(data)
	}
	return err
}

// Skip lists a skipped file, the kind of the reason, and the reason for people.
func (s *StreamWriter) Skip(file, kind, why string) { s.skips.Skip(file, kind, why) }

// Note lists a note on a file that was added.
func (s *StreamWriter) Note(file, kind, text string) { s.skips.Note(file, kind, text) }

// Close writes the end of the stream; the underlying writer is not closed. The receiver
// discards a stream without an end.
func (s *StreamWriter) Close() error {
	if s.err != nil {
		return s.err
	}
	s.tail.Skipped, s.tail.MoreSkipped, s.tail.SkippedKinds = s.skips.m.Skipped, s.skips.m.MoreSkipped,
		s.skips.m.SkippedKinds
	s.tail.Notes, s.tail.MoreNotes = s.skips.m.Notes, s.skips.m.MoreNotes
	body, err := json.Marshal(s.tail)
	if err == nil {
		err = s.entry("perdure.trailer", body, map[string]string{streamTrailer: "1"})
	}
	if err == nil {
		err = s.tw.Close()
	}
	if err != nil {
		return s.fail(fmt.Errorf("end context stream: %w", err))
	}
	_ = s.fail(errors.New("context stream is closed"))
	return nil
}

func (s *StreamWriter) fail(err error) error {
	s.err = err
	return err
}

// ReadStream adds the files of a stream to b, within its limits. It opens no path. After an
// error, which wraps [ErrStream] if the stream is invalid, b cannot be finished.
func ReadStream(r io.Reader, b *Builder) error {
	s := &streamReader{tr: tar.NewReader(r), b: b}
	if err := s.run(); err != nil {
		return b.fail(fmt.Errorf("receive context: %w", err))
	}
	return nil
}

type streamReader struct {
	tr    *tar.Reader
	b     *Builder
	files int
	bytes int64
}

func (s *streamReader) run() error {
	for {
		h, err := s.next()
		if err != nil {
			return err
		}
		if _, last := h.PAXRecords[streamTrailer]; last {
			return s.trailer(h)
		}
		if err := s.file(h); err != nil {
			return err
		}
	}
}

// next returns the next entry, which must exist and be a plain file.
func (s *streamReader) next() (*tar.Header, error) {
	h, err := s.tr.Next()
	if errors.Is(err, tar.ErrInsecurePath) {
		err = nil // a name is not a path here
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStream, err)
	}
	if h.Typeflag != tar.TypeReg || isSparse(h) {
		return nil, fmt.Errorf("%w: entry %q is not a plain file", ErrStream, h.Name)
	}
	return h, nil
}

// isSparse reports whether an entry may have holes: a few bytes of stream would become a
// large file.
func isSparse(h *tar.Header) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)),
		func(key string) bool { return strings.HasPrefix(key, "GNU.sparse.") })
}

func (s *streamReader) file(h *tar.Header) error {
	body := &fileReader{s: s, h: h}
	err := s.b.Add(h.Name, body)
	if body.streamErr != nil {
		return body.streamErr
	}
	var readErr *ReadError
	if errors.As(err, &readErr) && errors.Is(readErr.Err, errSourceFailed) {
		return nil // the trailer lists it as skipped
	}
	if err != nil {
		return err
	}
	s.files++
	s.bytes += body.size
	return nil
}

// errSourceFailed ends a file that the sender could not read to its end.
var errSourceFailed = errors.New("the sender could not read it")

// fileReader reads one file from all its entries.
type fileReader struct {
	s         *streamReader
	h         *tar.Header
	size      int64
	streamErr error // set if the stream is invalid
}

func (f *fileReader) Read(p []byte) (int, error) {
	for {
		n, err := f.s.tr.Read(p)
		f.size += int64(n)
		if n > 0 || err == nil {
			return n, nil // an error comes again at the next call
		}
		if !errors.Is(err, io.EOF) {
			f.streamErr = fmt.Errorf("%w: file %q: %w", ErrStream, f.h.Name, err)
			return 0, f.streamErr
		}
		if _, more := f.h.PAXRecords[streamMore]; !more {
			return 0, io.EOF
		}
		if err := f.advance(); err != nil {
			return 0, err
		}
	}
}

// advance reads the next entry of the same file.
func (f *fileReader) advance() error {
	h, err := f.s.next()
	if err == nil && h.Name != f.h.Name {
		err = fmt.Errorf("%w: file %q has no end", ErrStream, f.h.Name)
	}
	if err != nil {
		f.streamErr = err
		return err
	}
	f.h = h
	if _, failed := h.PAXRecords[streamFailed]; failed {
		return errSourceFailed
	}
	return nil
}

func (s *streamReader) trailer(h *tar.Header) error {
	if h.Size > maxTrailerBytes {
		return fmt.Errorf("%w: a trailer of %d bytes", ErrStream, h.Size)
	}
	body, err := io.ReadAll(s.tr)
	if err != nil {
		return fmt.Errorf("%w: trailer: %w", ErrStream, err)
	}
	var t trailer
	if err := json.Unmarshal(body, &t); err != nil {
		return fmt.Errorf("%w: trailer: %w", ErrStream, err)
	}
	if t.Version != Version {
		return fmt.Errorf("%w: version %d, this program reads %d", ErrStream, t.Version, Version)
	}
	if t.Files != s.files || t.Bytes != s.bytes {
		return fmt.Errorf("%w: %d files of %d bytes received, %d of %d sent", ErrStream, s.files, s.bytes, t.Files,
			t.Bytes)
	}
	if t.MoreSkipped < 0 {
		return fmt.Errorf("%w: trailer: more_skipped is %d", ErrStream, t.MoreSkipped)
	}
	for _, skipped := range t.Skipped {
		s.b.Skip(skipped.File, skipped.Kind, skipped.Why)
	}
	if err := checkKinds(t.SkippedKinds); err != nil {
		return fmt.Errorf("%w: trailer: %w", ErrStream, err)
	}
	for kind, n := range t.SkippedKinds {
		if _, known := s.b.m.SkippedKinds[kind]; known || len(s.b.m.SkippedKinds) < maxKinds && s.b.m.SkippedKinds != nil {
			s.b.m.SkippedKinds[kind] = n // those without a place in the list, too
		}
	}
	s.b.m.MoreSkipped += t.MoreSkipped
	if err := checkNotes(t.Notes, t.MoreNotes); err != nil {
		return fmt.Errorf("%w: trailer: %w", ErrStream, err)
	}
	for _, n := range t.Notes {
		s.b.Note(n.File, n.Kind, n.Text)
	}
	s.b.m.MoreNotes += t.MoreNotes
	if _, err := s.tr.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: data after the trailer", ErrStream)
	}
	return nil
}
