// Package chain computes and verifies the hash chain over the events of a tree.
package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// Head is the hash of a chain after an event: SHA-256 of the head before it and of the
// event. It is zero before the first one.
type Head [sha256.Size]byte

// String returns the head in hexadecimal digits.
func (h *Head) String() string { return hex.EncodeToString(h[:]) }

// Parse reads what String returns; an empty text is the zero head.
func (h *Head) Parse(text string) error {
	*h = Head{}
	if text == "" {
		return nil
	}
	n, err := hex.Decode(h[:], []byte(text[:min(len(text), 2*len(h))]))
	if err == nil && (n != len(h) || len(text) != 2*len(h)) {
		err = errors.New("the head of a hash chain is not a SHA-256 hash")
	}
	return err
}

// Event is an event as it is stored.
type Event struct {
	Seq, At, Tree, Task int64
	Kind, Data          string
}

// State is the state of a chain: the number of its events and its head.
type State struct {
	Events int64
	Head   Head
}

// Hasher continues chains and computes digests of rows. It keeps its memory between them.
type Hasher struct {
	buf []byte
	row Values
}

// Add continues a chain with an event. It returns the link, which is the beginning of the
// new head as a number of 32 bits.
func (h *Hasher) Add(s *State, e *Event) (link int64) {
	buf := append(h.buf[:0], s.Head[:]...)
	for _, n := range [...]int64{e.Seq, e.At, e.Tree, e.Task, int64(len(e.Kind))} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(n)) //nolint:gosec // only the bits matter
	}
	buf = append(buf, e.Kind...)
	h.buf = append(buf, e.Data...)
	s.Events++
	s.Head = sha256.Sum256(h.buf)
	return int64(int32(binary.BigEndian.Uint32(s.Head[:]))) //nolint:gosec // only the bits matter
}
