// Package pack keeps the files of a run's context as one sequence of bytes, the
// pack, beside a manifest that says which file lies where.
//
// A pack is written once by a [Builder], usually into a blob, and then only read,
// through a [Reader]: as documents of a range, as lines of a file, or from
// beginning to end. The bytes of each file are kept as they were given; texts
// handed out are valid UTF-8. Names are only names: nothing here opens a path.
//
// A [StreamWriter] and [ReadStream] carry the same content from one process to
// another.
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

// Limits that hold for every pack, so that a manifest from elsewhere cannot make
// a reader use unlimited memory. [Limits] may set lower ones.
const (
	// MaxFiles is the number of files of a pack.
	MaxFiles = 1_000_000
	// MaxBytes is the size of a pack, 1 TiB.
	MaxBytes = 1 << 40
	// MaxNameBytes is the length of a file name.
	MaxNameBytes = 4096
	// MaxSkipped is the number of skipped files listed by name; more are counted.
	MaxSkipped = 10_000
	// MaxReasonBytes is the length of the reason why a file was skipped.
	MaxReasonBytes = 1024
	// maxKinds is the number of kinds of reasons, maxKindBytes the length of one.
	maxKinds     = 32
	maxKindBytes = 64
	// MaxManifestBytes is the size of an encoded manifest, 512 MiB.
	MaxManifestBytes = 512 << 20
)

// markEvery is how many bytes lie between two newline marks.
const markEvery = 64 << 10

// Manifest says what a pack holds. It is read-only after Manifest of [Builder]
// or [Decode].
type Manifest struct {
	Version int `json:"version"`
	// Files lie in the pack in this order, without overlap. There may be bytes
	// that belong to no file, where reading a file broke off.
	Files []File `json:"files"`
	// Bytes is the size of the pack.
	Bytes int64 `json:"bytes"`
	// Lines is the sum of the lines of all files.
	Lines int64 `json:"lines"`
	// Skipped are files that were asked for and left out; MoreSkipped counts
	// those beyond [MaxSkipped], SkippedKinds all of them by the kind of the
	// reason.
	Skipped      []Skipped        `json:"skipped,omitempty"`
	MoreSkipped  int64            `json:"more_skipped,omitempty"`
	SkippedKinds map[string]int64 `json:"skipped_kinds,omitempty"`
	// Marks are the numbers of newlines in the first 64 KiB, 128 KiB, … of the
	// pack, so that the line number of any place is found by reading at most
	// 64 KiB.
	Marks []int64 `json:"marks,omitempty"`
}

// File is one file of a pack.
type File struct {
	// Name is the name as the user gave it.
	Name string `json:"name"`
	// Offset and Length are where the content lies in the pack, in bytes.
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	// Lines is the number of lines; a last line without a newline counts.
	Lines int64 `json:"lines"`
}

// End is the offset after the last byte of the file.
func (f File) End() int64 { return f.Offset + f.Length }

// Skipped is a file that was left out.
type Skipped struct {
	File string `json:"file"`
	// Kind is the reason in a word, for programs; may be empty.
	Kind string `json:"kind,omitempty"`
	// Why is the reason for people.
	Why string `json:"why"`
}

// SkippedTotal is how many files were left out.
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

// Decode reads a manifest that Encode made. Unknown fields, data after the
// manifest and everything that cannot be true of a pack are errors.
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

// validate checks all that can be checked without the pack.
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
	return checkKinds(m.SkippedKinds)
}

// checkKinds says what is wrong with counts of skipped files.
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
			return fmt.Errorf("files[%d]: name %q is there twice", i, f.Name)
		}
		names[f.Name] = struct{}{}
		if f.Offset < end {
			return fmt.Errorf("files[%d]: offset %d lies before the end of the file before it, %d", i, f.Offset, end)
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

// checkName says what is wrong with a file name. Paths to anywhere are fine.
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
			return fmt.Errorf("file name %q holds the control character %q", name, c)
		}
	}
	if name[len(name)-1] == '/' {
		return fmt.Errorf("file name %q ends in a slash", name)
	}
	return nil
}
