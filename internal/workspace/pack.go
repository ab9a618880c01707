package workspace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// A pack is a file of contents one after the other, then its index (hash and size of each,
// in that order), then a footer: the number of entries, the SHA-256 of the index, and a
// mark. Its name is the hash of the index; it gets that name only after all of it is
// durable.
const (
	packMark    = "perdure pack 1\n"
	packSuffix  = ".pack"
	packEntry   = sha256.Size + 8
	packFooter  = 8 + sha256.Size + len(packMark)
	pendingMark = "pending-"
)

// place is the range of a content in a pack.
type place struct {
	pack   string
	offset int64
	size   int64
}

// contents is the index of the packs of a folder. It is not safe for concurrent changes.
type contents struct {
	dir   string
	log   *slog.Logger
	packs map[string]int64 // name to size of the file
	index map[Hash]place
}

// refresh reads the indexes of new packs and forgets removed ones.
func (c *contents) refresh() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(list))
	for _, e := range list {
		there[e.Name()] = strings.HasSuffix(e.Name(), packSuffix)
	}
	removed := func(name string) bool { return !there[name] }
	if c.packs == nil || slices.ContainsFunc(slices.Collect(maps.Keys(c.packs)), removed) {
		c.packs, c.index = map[string]int64{}, map[Hash]place{}
	}
	for name, isPack := range there {
		if _, known := c.packs[name]; known || !isPack {
			continue
		}
		if err := c.load(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("pack of snapshots cannot be read; its contents are missing", "pack", name, "error", err)
		}
	}
	return nil
}

// load reads the index of a pack.
func (c *contents) load(name string) error {
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	index, err := readPackIndex(f, info.Size())
	if err != nil {
		return err
	}
	c.take(name, index, info.Size())
	return nil
}

// take adds the contents of a pack to the index.
func (c *contents) take(name string, index []byte, size int64) {
	offset := int64(0)
	for ; len(index) > 0; index = index[packEntry:] {
		p := place{pack: name, offset: offset, size: int64(binary.LittleEndian.Uint64(index[sha256.Size:]))} //nolint:gosec // checked when read
		c.index[Hash(index[:sha256.Size])] = p
		offset += p.size
	}
	c.packs[name] = size
}

// readPackIndex returns the index of a pack and checks it against the size of the file.
func readPackIndex(r io.ReaderAt, size int64) ([]byte, error) {
	footer := make([]byte, packFooter)
	if size < int64(packFooter) {
		return nil, errors.New("cut short")
	}
	if _, err := r.ReadAt(footer, size-int64(packFooter)); err != nil {
		return nil, err
	}
	count := binary.LittleEndian.Uint64(footer)
	if string(footer[8+sha256.Size:]) != packMark || count > uint64(size)/packEntry {
		return nil, errors.New("not a pack of this version")
	}
	index := make([]byte, count*packEntry)
	start := size - int64(packFooter) - int64(len(index))
	if start < 0 {
		return nil, errors.New("cut short")
	}
	if _, err := r.ReadAt(index, start); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(index); !bytes.Equal(sum[:], footer[8:8+sha256.Size]) {
		return nil, errors.New("index is damaged")
	}
	left := uint64(start)
	for rest := index; len(rest) > 0; rest = rest[packEntry:] {
		n := binary.LittleEndian.Uint64(rest[sha256.Size:])
		if n > left {
			return nil, errors.New("index does not fit the size")
		}
		left -= n
	}
	if left != 0 {
		return nil, errors.New("index does not fit the size")
	}
	return index, nil
}

// total returns the size of all packs in bytes.
func (c *contents) total() int64 {
	sum := int64(0)
	for _, n := range c.packs {
		sum += n
	}
	return sum
}

// packReader reads many contents and keeps the packs open. It is safe for concurrent use.
type packReader struct {
	c *contents

	mu   sync.Mutex // guards open
	open map[string]*os.File
}

func (r *packReader) pack(name string) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.open[name]; f != nil {
		return f, nil
	}
	f, err := os.Open(filepath.Join(r.c.dir, name))
	if err != nil {
		return nil, err
	}
	if r.open == nil {
		r.open = make(map[string]*os.File)
	}
	r.open[name] = f
	return f, nil
}

func (r *packReader) close() error {
	var errs []error
	for _, f := range r.open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// content returns the place of a content and a reader of it.
func (r *packReader) content(h Hash) (place, *io.SectionReader, error) {
	p, ok := r.c.index[h]
	if !ok {
		return p, nil, &Error{Kind: ErrDamaged, Op: "read content", Name: h.String(), Msg: "it is not stored"}
	}
	f, err := r.pack(p.pack)
	return p, io.NewSectionReader(f, p.offset, p.size), err
}

// copyTo writes a content and checks it.
func (r *packReader) copyTo(w io.Writer, h Hash) error {
	p, from, err := r.content(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), from)
	if err != nil {
		return err
	}
	return p.check(n, Hash(sum.Sum(nil)), h)
}

// read returns a content as a whole, and checks it.
func (r *packReader) read(h Hash) ([]byte, error) {
	p, from, err := r.content(h)
	if err != nil {
		return nil, err
	}
	data := slices.Grow([]byte(nil), int(p.size))[:p.size]
	n, err := io.ReadFull(from, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return data, p.check(int64(n), sha256.Sum256(data), h)
}

// check returns an error if the content of a place is not the one wanted.
func (p *place) check(size int64, is, want Hash) error {
	if size != p.size || is != want {
		return &Error{Kind: ErrDamaged, Op: "read content", Name: want.String(),
			Msg: "the pack " + p.pack + " has other data in its place"}
	}
	return nil
}

// packWriter writes new contents to a pending pack. It is not safe for concurrent use.
type packWriter struct {
	c      *contents
	limit  int64 // of the bytes of the pack; negative for none
	file   *os.File
	offset int64
	index  []byte
	added  map[Hash]bool
	buffer []byte // not yet in file
}

const packBuffer = 1 << 20

func (c *contents) writer(limit int64) *packWriter {
	return &packWriter{c: c, limit: limit, added: map[Hash]bool{}}
}

// has reports whether a content is stored or pending.
func (p *packWriter) has(h Hash) bool {
	_, ok := p.c.index[h]
	return ok || p.added[h]
}

// Write appends to the content that is being added.
func (p *packWriter) Write(b []byte) (int, error) {
	if p.limit >= 0 && p.offset+int64(len(b)) > p.limit {
		return 0, &Error{Kind: ErrLimit, Op: "store contents",
			Msg:  "the snapshots would exceed their limit of disk space",
			Hint: "add large generated files to .gitignore"}
	}
	if p.file == nil {
		f, err := os.CreateTemp(p.c.dir, pendingMark)
		if err != nil {
			return 0, err
		}
		p.file = f
	}
	p.buffer = append(p.buffer, b...)
	p.offset += int64(len(b))
	if len(p.buffer) < packBuffer {
		return len(b), nil
	}
	return len(b), p.flush()
}

func (p *packWriter) flush() error {
	_, err := p.file.Write(p.buffer)
	p.buffer = p.buffer[:0]
	return err
}

// add stores a content that is in memory, unless it is stored already.
func (p *packWriter) add(h Hash, data []byte) error {
	if p.has(h) {
		return nil
	}
	if _, err := p.Write(data); err != nil {
		return err
	}
	p.enter(h, int64(len(data)))
	return nil
}

func (p *packWriter) enter(h Hash, size int64) {
	p.added[h] = true
	p.index = append(p.index, h[:]...)
	p.index = binary.LittleEndian.AppendUint64(p.index, uint64(size)) //nolint:gosec // never negative
}

// stream stores the content that r returns, unless it is stored already.
func (p *packWriter) stream(r io.Reader) (size int64, h Hash, err error) {
	start := p.offset
	sum := sha256.New()
	if size, err = io.Copy(io.MultiWriter(sum, p), r); err != nil {
		return size, h, err
	}
	h = Hash(sum.Sum(nil))
	if p.has(h) {
		return size, h, p.rewind(start)
	}
	p.enter(h, size)
	return size, h, nil
}

func (p *packWriter) rewind(start int64) error {
	if p.offset == start {
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.file.Truncate(start); err != nil {
		return err
	}
	p.offset = start
	_, err := p.file.Seek(start, io.SeekStart)
	return err
}

// publish makes the pack durable and renames it; without contents it is removed.
func (p *packWriter) publish() error {
	if len(p.index) == 0 {
		p.abort()
		return nil
	}
	if p.file == nil { // only empty contents
		if _, err := p.Write(nil); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(p.index)
	p.buffer = append(p.buffer, p.index...)
	p.buffer = binary.LittleEndian.AppendUint64(p.buffer, uint64(len(p.index)/packEntry))
	p.buffer = append(append(p.buffer, sum[:]...), packMark...)
	size := p.offset + int64(len(p.index)+packFooter)
	err := p.flush()
	failpoint.Hit("workspace.pack.before_sync")
	if err == nil {
		err = p.file.Sync()
	}
	err = cmp.Or(err, p.file.Close())
	pending := p.file.Name()
	p.file = nil
	name := hex.EncodeToString(sum[:])[:32] + packSuffix
	if err == nil {
		failpoint.Hit("workspace.pack.before_rename")
		err = os.Rename(pending, filepath.Join(p.c.dir, name))
	}
	if err != nil {
		_ = os.Remove(pending) // the first error is the cause
		return err
	}
	failpoint.Hit("workspace.pack.after_rename")
	if err := atomicfile.SyncDir(p.c.dir); err != nil {
		return err
	}
	p.c.take(name, p.index, size)
	return nil
}

// abort removes the pending pack. It may be called after publish.
func (p *packWriter) abort() {
	if p.file == nil {
		return
	}
	_ = p.file.Close()
	if err := os.Remove(p.file.Name()); err != nil {
		p.c.log.Warn("pending pack cannot be removed", "error", err)
	}
	p.file = nil
}

// clean removes the pending packs of crashed processes. The caller holds the lock.
func (c *contents) clean() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), pendingMark) {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, e.Name())); err != nil {
			return fmt.Errorf("remove pending pack: %w", err)
		}
	}
	return nil
}
