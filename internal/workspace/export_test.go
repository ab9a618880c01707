package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"time"
)

// WithClock returns cfg with another clock.
func WithClock(cfg Config, now func() time.Time) Config {
	cfg.now = now
	return cfg
}

// Snapshots returns the stored snapshots, the newest first.
func (w *Workspace) Snapshots() ([]ID, error) {
	list, err := w.list()
	var ids []ID
	for _, s := range list {
		ids = append(ids, s.id)
	}
	return ids, err
}

// RecodeManifest decodes and encodes.
func RecodeManifest(data []byte) ([]byte, []File, error) {
	m, err := decodeManifest(data)
	if err != nil {
		return nil, nil, err
	}
	return m.encode(), m.files, nil
}

// EncodeManifest encodes.
func EncodeManifest(files []File, left []LeftOut) []byte {
	return (&manifest{files: files, left: left}).encode()
}

// RecodeCache decodes, encodes and decodes again; body is without the magic number and the
// checksum.
func RecodeCache(body []byte) (first, second int, err error) {
	data := append([]byte(cacheMagic), body...)
	data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	known, err := decodeCache(data)
	if err != nil {
		return 0, 0, err
	}
	again, err := decodeCache(encodeCache(known))
	return len(known), len(again), err
}

// PackIndex reads the index of a pack of these contents and entries.
func PackIndex(contents, index []byte) ([]byte, error) {
	data := append(bytes.Clone(contents), index...)
	data = binary.LittleEndian.AppendUint64(data, uint64(len(index)/packEntry))
	sum := sha256.Sum256(index)
	data = append(append(data, sum[:]...), packMark...)
	return readPackIndex(bytes.NewReader(data), int64(len(data)))
}

// Ignores matches a path against a .gitignore file in the folder base.
func Ignores(base string, file []byte, path string, folder bool) bool {
	r := rules{patterns: ParsePatterns(base, file)}
	return r.ignores(path, folder)
}
