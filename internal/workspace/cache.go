package workspace

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// cached is the hash of a file that was read while it had a stamp that shows every later
// change.
type cached struct {
	stamp stamp
	hash  Hash
}

const cacheMagic = "perdure stat cache 1\n"

// encodeCache encodes the cache, sorted by path.
func encodeCache(known map[string]cached) []byte {
	b := make([]byte, 0, len(cacheMagic)+len(known)*128)
	b = append(b, cacheMagic...)
	b = binary.AppendUvarint(b, uint64(len(known)))
	for _, p := range slices.Sorted(maps.Keys(known)) {
		e := known[p]
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
		for _, v := range []uint64{e.stamp.dev, e.stamp.ino, uint64(e.stamp.size), uint64(e.stamp.modified), uint64(e.stamp.changed)} { //nolint:gosec // bits
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		b = append(b, e.hash[:]...)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// decodeCache parses the output of encodeCache.
func decodeCache(data []byte) (map[string]cached, error) {
	const sum = 4
	if len(data) < len(cacheMagic)+sum || string(data[:len(cacheMagic)]) != cacheMagic {
		return nil, errors.New("not a cache of this version")
	}
	body := data[:len(data)-sum]
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(data[len(body):]) {
		return nil, errors.New("cache is damaged")
	}
	d := &decoder{rest: body[len(cacheMagic):]}
	n := d.uvarint(uint64(len(body)))
	known := make(map[string]cached, min(n, uint64(len(body)/64)))
	for ; n > 0 && d.err == nil; n-- {
		p := string(d.bytes(d.uvarint(maxPath)))
		var v [5]uint64
		for i := range v {
			if b := d.bytes(8); b != nil {
				v[i] = binary.LittleEndian.Uint64(b)
			}
		}
		e := cached{stamp: stamp{v[0], v[1], int64(v[2]), int64(v[3]), int64(v[4])}} //nolint:gosec // bits
		copy(e.hash[:], d.bytes(uint64(len(e.hash))))
		known[p] = e
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes after the end", len(d.rest))
	}
	return known, d.err
}

// loadCache reads the cache of the workspace. A missing or damaged one is empty: then all
// files are read.
func (w *Workspace) loadCache() map[string]cached {
	data, err := os.ReadFile(filepath.Join(w.cfg.Dir, cacheName))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.cfg.Logger.Warn("stat cache cannot be read; all files are read again", "error", err)
		}
		return map[string]cached{}
	}
	known, err := decodeCache(data)
	if err != nil {
		w.cfg.Logger.Warn("stat cache cannot be used; all files are read again", "error", err)
		return map[string]cached{}
	}
	return known
}

// saveCache replaces the cache without a flush: after a power loss it is the old one or has a
// wrong checksum.
func (w *Workspace) saveCache() error {
	path := filepath.Join(w.cfg.Dir, cacheName)
	if err := os.WriteFile(path+pendingMark, encodeCache(w.known), 0o600); err != nil {
		_ = os.Remove(path + pendingMark) // the first error is the cause
		return err
	}
	return os.Rename(path+pendingMark, path)
}
