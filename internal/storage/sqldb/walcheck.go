package sqldb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// SQLite reads its log up to the first frame whose checksum is wrong and ignores the
// rest as an unfinished transaction. That is right after a power loss, but if the log is
// damaged in the middle, it drops durable transactions without an error. The two cases
// differ: a transaction is flushed before the next one is written, so an unfinished one
// is never followed by a chain of valid frames with two commits.
//
// The layout is part of SQLite's file format (https://sqlite.org/fileformat2.html,
// section 4): a header of 32 bytes, then frames of 24 bytes and a page. The
// checksum of a frame continues that of the frame before.
const (
	walHeader      = 32
	walFrameHeader = 24
	walMagic       = 0x377f0682 // the lowest bit: checksums in big-endian words
	maxPageSize    = 1 << 16
)

// checkLog refuses a log that lost transactions. Another process may be writing to it, so
// a damaged log is read again while no process can write.
func (db *DB) checkLog(ctx context.Context) error {
	path := db.cfg.Path + "-wal"
	sound, err := logIsSound(path)
	if err != nil || sound {
		return err
	}
	if _, err := db.turn.enter(ctx, db.cfg.BusyTimeout); err != nil {
		return err
	}
	sound, err = logIsSound(path)
	db.turn.leave()
	if err == nil && !sound {
		err = fmt.Errorf("%w: the log %q is damaged in its middle", ErrDamaged, path)
	}
	return err
}

func logIsSound(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	sound, err := soundLog(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	return sound, nil
}

// walSum is the running checksum over the frames.
type walSum struct {
	bigEndian bool
	a, b      uint32
}

// add continues the sum with p. The race detector, with which each byte takes a call, has
// nothing to find: p and s belong to the caller.
//
//go:norace
func (s *walSum) add(p []byte) {
	a, b := s.a, s.b
	for ; len(p) >= 8; p = p[8:] {
		x, y := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:8])
		if s.bigEndian {
			x, y = bits.ReverseBytes32(x), bits.ReverseBytes32(y)
		}
		a += x + b
		b += y + a
	}
	s.a, s.b = a, b
}

// is reports whether the sum stored at p is the same.
func (s *walSum) is(p []byte) bool {
	return s.a == binary.BigEndian.Uint32(p) && s.b == binary.BigEndian.Uint32(p[4:])
}

// set replaces the sum by the one stored at p.
func (s *walSum) set(p []byte) {
	s.a, s.b = binary.BigEndian.Uint32(p), binary.BigEndian.Uint32(p[4:])
}

// soundLog reads a log and reports whether it lost no transactions.
func soundLog(r io.Reader) (bool, error) {
	head := make([]byte, walHeader+1)
	n, err := io.ReadFull(r, head)
	if n <= walHeader { // the header is flushed before the first frame is written
		return true, ignoreEOF(err)
	}
	magic := binary.BigEndian.Uint32(head)
	sum := walSum{bigEndian: magic&1 == 1}
	size := binary.BigEndian.Uint32(head[8:])
	sum.add(head[:24])
	if magic&^1 != walMagic || size < 512 || size > maxPageSize || size&(size-1) != 0 || !sum.is(head[24:]) {
		return false, nil
	}
	frame := make([]byte, walFrameHeader+int(size))
	frame[0] = head[walHeader]
	chain := frames{sum: sum, salts: head[16:24]}
	for start := 1; ; start = 0 {
		if _, err := io.ReadFull(r, frame[start:]); err != nil {
			return true, ignoreEOF(err)
		}
		if !chain.take(frame) {
			return false, nil
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// frames is the state of reading the frames of a log.
type frames struct {
	sum   walSum // of the previous frame
	salts []byte
	// broken: a frame was invalid. commits counts the commits in the chain of valid
	// frames since then.
	broken  bool
	commits int
}

// take reads the next frame and returns false if complete transactions follow an
// invalid frame.
func (c *frames) take(frame []byte) bool {
	good := false
	if string(frame[8:16]) == string(c.salts) { // else left from before the log restarted
		c.sum.add(frame[:8])
		c.sum.add(frame[walFrameHeader:])
		good = c.sum.is(frame[16:])
	}
	c.sum.set(frame[16:])
	switch {
	case !good:
		c.broken, c.commits = true, 0
	case c.broken && binary.BigEndian.Uint32(frame[4:]) != 0:
		c.commits++
	}
	return c.commits < 2
}
