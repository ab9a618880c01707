// Package pack stores the files of a run's context as one sequence of bytes, the pack, with
// a manifest of the files and their offsets.
//
// A pack is written once by a [Builder], usually into a blob, and then only read, through a
// [Reader]: as documents of a range, as lines of a file, or from beginning to end. The bytes
// of each file are stored as they are given; returned text is valid UTF-8. Names are not
// paths: nothing here opens one.
//
// A [StreamWriter] and [ReadStream] send the same content from one process to another.
package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/perdure/perdure/model"
)

// Version is the version of the manifest's form.
const Version = 1

// Limits of every pack, so that a received manifest cannot make a reader use unlimited
// memory. [Limits] may set lower ones.
const (
	// MaxFiles is the number of files of a pack.
	MaxFiles = 1_000_000
	// MaxBytes is the size of a pack, 1 TiB.
	MaxBytes = 1 << 40
	// MaxNameBytes is the length of a file name.
	MaxNameBytes = 4096
	// MaxSkipped is the number of skipped files listed by name; more are counted.
	MaxSkipped = 10_000
	// MaxNotes is the number of notes on files; more are counted.
	MaxNotes = 10_000
	// MaxReasonBytes is the length of the reason why a file was skipped, and of a note.
	MaxReasonBytes = 1024
	// maxKinds is the number of kinds of reasons, maxKindBytes the length of one.
	maxKinds     = 32
	maxKindBytes = 64
	// MaxManifestBytes is the size of an encoded manifest, 512 MiB.
	MaxManifestBytes = 512 << 20
)

// markEvery is the number of bytes between two newline marks.
const markEvery = 64 << 10

// Manifest lists the files of a pack. It is read-only after Manifest of [Builder] or
// [Decode].
type Manifest struct {
	Version int `json:"version"`
	// Files are in the order of the pack, without overlap. Bytes of a file that could not be
	// read to its end belong to no file.
	Files []File `json:"files"`
	// Bytes is the size of the pack.
	Bytes int64 `json:"bytes"`
	// Lines is the sum of the lines of all files.
	Lines int64 `json:"lines"`
	// Skipped are the skipped files; MoreSkipped counts those beyond [MaxSkipped],
	// SkippedKinds all of them by the kind of the reason.
	Skipped      []Skipped        `json:"skipped,omitempty"`
	MoreSkipped  int64            `json:"more_skipped,omitempty"`
	SkippedKinds map[string]int64 `json:"skipped_kinds,omitempty"`
	// Notes are notes on files, MoreNotes counts those beyond [MaxNotes].
	Notes     []Note `json:"notes,omitempty"`
	MoreNotes int64  `json:"more_notes,omitempty"`
	// Marks are the numbers of newlines in the first 64 KiB, 128 KiB, … of the pack: the
	// line number of any offset is found by reading at most 64 KiB.
	Marks []int64 `json:"marks,omitempty"`
}

// File is one file of a pack.
type File struct {
	// Name is the name as the user entered it, or as found in a folder.
	Name string `json:"name"`
	// Offset and Length are the range of the content in the pack, in bytes.
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	// Lines is the number of lines; a last line without a newline counts.
	Lines int64 `json:"lines"`
}

// End returns the offset after the last byte of the file.
func (f File) End() int64 { return f.Offset + f.Length }

// Skipped is a skipped file.
type Skipped struct {
	File string `json:"file"`
	// Kind is the kind of the reason, for programs; may be empty.
	Kind string `json:"kind,omitempty"`
	// Why is the reason for people.
	Why string `json:"why"`
}

// Note is a note on a file of the pack, such as the encoding that it was converted from.
type Note struct {
	File string `json:"file"`
	// Kind is the kind of the note, for programs.
	Kind string `json:"kind"`
	// Text is the note for people.
	Text string `json:"text"`
}

// SkippedTotal returns the number of skipped files.
func (m *Manifest) SkippedTotal() int64 { return int64(len(m.Skipped)) + m.MoreSkipped }

// Tokens estimates the tokens of all files.
func (m *Manifest) Tokens() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Length
	}
	return model.EstimateTokens(int(n))
}

// Encode returns the manifest as JSON.
func (m *Manifest) Encode() ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	if len(data) > MaxManifestBytes {
		return nil, fmt.Errorf("encode manifest: %d bytes are more than the limit of %d", len(data), MaxManifestBytes)
	}
	return data, nil
}

// Decode parses the output of Encode. Unknown fields, data after the manifest and values
// that no pack can have are errors.
func Decode(data []byte) (*Manifest, error) {
	if len(data) > MaxManifestBytes {
		return nil, fmt.Errorf("decode manifest: %d bytes are more than the limit of %d", len(data), MaxManifestBytes)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	if head.Version != Version {
		return nil, fmt.Errorf("decode manifest: version %d, this program reads %d", head.Version, Version)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	m := new(Manifest)
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode manifest: data after the manifest")
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	return m, nil
}

// validate checks the manifest without the pack.
func (m *Manifest) validate() error {
	if m.Bytes < 0 || m.Bytes > MaxBytes {
		return fmt.Errorf("bytes: %d is not between 0 and %d", m.Bytes, int64(MaxBytes))
	}
	if err := m.validateFiles(); err != nil {
		return err
	}
	if err := m.validateMarks(); err != nil {
		return err
	}
	if len(m.Skipped) > MaxSkipped || m.MoreSkipped < 0 {
		return fmt.Errorf("skipped: %d and %d more, the limit is %d", len(m.Skipped), m.MoreSkipped, MaxSkipped)
	}
	for i, s := range m.Skipped {
		if len(s.File) > MaxNameBytes || len(s.Why) > MaxReasonBytes || len(s.Kind) > maxKindBytes {
			return fmt.Errorf("skipped[%d]: longer than the limit", i)
		}
	}
	return errors.Join(checkNotes(m.Notes, m.MoreNotes), checkKinds(m.SkippedKinds))
}

// checkNotes checks notes and the number of further ones.
func checkNotes(notes []Note, more int64) error {
	if len(notes) > MaxNotes || more < 0 {
		return fmt.Errorf("notes: %d and %d more, the limit is %d", len(notes), more, MaxNotes)
	}
	for i, n := range notes {
		if len(n.File) > MaxNameBytes || len(n.Text) > MaxReasonBytes || len(n.Kind) > maxKindBytes {
			return fmt.Errorf("notes[%d]: longer than the limit", i)
		}
	}
	return nil
}

// checkKinds checks counts of skipped files.
func checkKinds(kinds map[string]int64) error {
	if len(kinds) > maxKinds {
		return fmt.Errorf("skipped_kinds: %d are more than the limit of %d", len(kinds), maxKinds)
	}
	for kind, n := range kinds {
		if len(kind) > maxKindBytes || n < 0 {
			return fmt.Errorf("skipped_kinds: %d of kind %q", n, cutText(kind, maxKindBytes))
		}
	}
	return nil
}

func (m *Manifest) validateFiles() error {
	if len(m.Files) > MaxFiles {
		return fmt.Errorf("files: %d are more than the limit of %d", len(m.Files), MaxFiles)
	}
	names := make(map[string]struct{}, len(m.Files))
	var end, lines int64
	for i, f := range m.Files {
		if err := checkName(f.Name); err != nil {
			return fmt.Errorf("files[%d]: %w", i, err)
		}
		if _, twice := names[f.Name]; twice {
			return fmt.Errorf("files[%d]: name %q is listed twice", i, f.Name)
		}
		names[f.Name] = struct{}{}
		if f.Offset < end {
			return fmt.Errorf("files[%d]: offset %d is before the end of the previous file, %d", i, f.Offset, end)
		}
		if f.Length < 0 || f.Length > m.Bytes-f.Offset {
			return fmt.Errorf("files[%d]: offset %d, length %d: outside the %d bytes of the pack", i, f.Offset, f.Length,
				m.Bytes)
		}
		if f.Lines < 0 || f.Lines > f.Length || f.Lines == 0 && f.Length > 0 {
			return fmt.Errorf("files[%d]: %d lines in %d bytes", i, f.Lines, f.Length)
		}
		end = f.End()
		lines += f.Lines
	}
	if lines != m.Lines {
		return fmt.Errorf("lines: %d, but the files have %d", m.Lines, lines)
	}
	return nil
}

func (m *Manifest) validateMarks() error {
	if int64(len(m.Marks)) != m.Bytes/markEvery {
		return fmt.Errorf("marks: %d for %d bytes, want %d", len(m.Marks), m.Bytes, m.Bytes/markEvery)
	}
	var before int64
	for i, n := range m.Marks {
		if n < before || n-before > markEvery {
			return fmt.Errorf("marks[%d]: %d newlines after %d", i, n, before)
		}
		before = n
	}
	return nil
}

// checkName checks a file name. Paths to any place are valid.
func checkName(name string) error {
	if name == "" {
		return errors.New("file name is empty")
	}
	if len(name) > MaxNameBytes {
		return fmt.Errorf("file name of %d bytes is longer than the limit of %d", len(name), MaxNameBytes)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("file name %q is not valid UTF-8", name)
	}
	for _, c := range []byte(name) {
		if c < ' ' || c == 0x7f {
			return fmt.Errorf("file name %q has the control character %q", name, c)
		}
	}
	if name[len(name)-1] == '/' {
		return fmt.Errorf("file name %q ends in a slash", name)
	}
	return nil
}
