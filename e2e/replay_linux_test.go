package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A trace of strace is replayed on a model of the disk that separates the state that
// programs see from that after a power loss: the bytes of a file up to its last flush,
// the names of a folder up to the folder's last flush. Each write or sector that was not
// flushed may be present or not.

// traced are the system calls that the model implements.
const traced = "open,openat,creat,mkdir,mkdirat,write,pwrite64,lseek,fsync,fdatasync,ftruncate,truncate," +
	"rename,renameat,renameat2,unlink,unlinkat,close"

// foreign are calls that change files and that the model does not implement: they must not
// occur.
const foreign = "link,linkat,symlink,symlinkat,writev,pwritev,pwritev2," +
	"fallocate,copy_file_range,sendfile,msync,sync_file_range"

// inode is a file.
type inode struct {
	size    int64
	durable []byte
	pending []change // since the last flush, in order
}

// change is a write, or a truncation when data is nil.
type change struct {
	at   int64
	data []byte
}

func (c change) apply(content []byte) []byte {
	end := c.at
	if c.data != nil {
		end += int64(len(c.data))
	}
	if c.data == nil || end > int64(len(content)) {
		content = append(content[:min(int64(len(content)), end)], make([]byte, max(0, end-int64(len(content))))...)
	}
	copy(content[c.at:], c.data)
	return content
}

// naming is a change of names in one folder: old is removed or renamed.
type naming struct {
	old, name string
	file      *inode // nil for a folder, and when a name only goes
	folder    bool
}

// disk is the file system below base.
type disk struct {
	base          string
	live, durable map[string]*inode // nil values are folders
	pending       map[string][]naming
	open          map[int]*handle
	unfinished    map[string]string // by thread: the call that has not returned
	flushes       map[string]flush  // by thread: what a flush under way found
	// ignore selects flushes that this disk only pretends to do.
	ignore func(path string) bool
	acks   []string
	acked  func()
	err    error
	over   bool // what follows in the trace is of no interest
	logs   int  // how often SQLite began its log
	// how often the log was written to and flushed
	logWrites, logFlushes int
}

type handle struct {
	path   string
	file   *inode // nil for a folder
	at     int64
	append bool
}

type flush struct {
	h       *handle
	changes int
	names   int
}

func newDisk(base string) *disk {
	return &disk{base: base, live: map[string]*inode{base: nil}, durable: map[string]*inode{base: nil},
		pending: map[string][]naming{}, open: map[int]*handle{}, unfinished: map[string]string{}, flushes: map[string]flush{}}
}

func (d *disk) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// line replays one line of the trace. A call changes the disk when it returns; an
// acknowledgement counts, and a file is closed, when the call begins.
func (d *disk) line(line string) {
	thread, text, ok := strings.Cut(line, " ")
	if !ok {
		return
	}
	text = strings.TrimLeft(text, " ")
	if begun, ok := strings.CutSuffix(text, " <unfinished ...>"); ok {
		d.unfinished[thread] = begun
		d.begins(thread, begun)
		return
	}
	if rest, ok := strings.CutPrefix(text, "<... "); ok {
		_, rest, _ = strings.Cut(rest, " resumed>")
		d.returns(thread, d.unfinished[thread]+rest)
		return
	}
	d.begins(thread, text)
	d.returns(thread, text)
}

func (d *disk) begins(thread, text string) {
	c := parseCall(text)
	switch c.name {
	case "fsync", "fdatasync":
		h := d.open[c.number(0)]
		if h == nil {
			return
		}
		f := flush{h: h, names: len(d.pending[h.path])}
		if h.file != nil {
			f.changes = len(h.file.pending)
		}
		d.flushes[thread] = f
	case "close": // another thread can open a file with this number before the call returns
		delete(d.open, c.number(0))
	case "write":
		if data := c.data(1); c.number(0) == 1 && strings.HasPrefix(string(data), "ACK ") {
			for _, fact := range strings.Split(strings.TrimSpace(string(data)), "\n") {
				d.acks = append(d.acks, strings.TrimPrefix(fact, "ACK "))
			}
			d.acked()
		}
	}
}

func (d *disk) returns(thread, text string) {
	c := parseCall(text)
	if c.result < 0 || c.name == "" {
		return
	}
	if strings.Contains(","+foreign+",", ","+c.name+",") && strings.Contains(text, d.base) {
		d.fail("the trace has a call that the disk does not know: %.200s", text)
	}
	switch c.name {
	case "open":
		d.opens(c, 0)
	case "openat":
		d.opens(c, 1)
	case "creat":
		d.fail("creat: %.200s", text)
	case "mkdir":
		d.makes(c.path(0))
	case "mkdirat":
		d.makes(c.path(1))
	case "write", "pwrite64", "ftruncate", "lseek":
		d.writes(c)
	case "truncate":
		if d.inside(c.path(0)) {
			d.fail("truncate: %.200s", text)
		}
	case "rename":
		d.renames(c.path(0), c.path(1))
	case "renameat", "renameat2":
		d.renames(c.path(1), c.path(3))
	case "unlink":
		d.removes(c.path(0))
	case "unlinkat":
		d.removes(c.path(1))
	case "fsync", "fdatasync":
		d.flushed(thread)
	}
}

func (d *disk) inside(path string) bool { return strings.HasPrefix(path, d.base+"/") || path == d.base }

func (d *disk) name(n naming) {
	path := n.name
	if path == "" {
		path = n.old
	}
	d.pending[filepath.Dir(path)] = append(d.pending[filepath.Dir(path)], n)
	n.apply(d.live)
}

func (n naming) apply(names map[string]*inode) {
	if n.old != "" {
		delete(names, n.old)
	}
	if n.name != "" {
		names[n.name] = n.file
	}
}

func (d *disk) makes(path string) {
	if d.inside(path) {
		d.name(naming{name: path, folder: true})
	}
}

func (d *disk) opens(c call, arg int) {
	path := c.path(arg)
	delete(d.open, c.result)
	if !d.inside(path) {
		return
	}
	flags := c.args[arg+1]
	file, there := d.live[path]
	switch {
	case !there && strings.Contains(flags, "O_CREAT"):
		file = &inode{}
		d.name(naming{name: path, file: file})
	case !there:
		d.fail("opened %s, which the disk does not know", path)
		return
	case strings.Contains(flags, "O_TRUNC") && file.size > 0:
		file.change(change{})
	}
	d.open[c.result] = &handle{path: path, file: file, append: strings.Contains(flags, "O_APPEND")}
}

func (f *inode) change(c change) {
	if c.data == nil {
		f.size = c.at
	}
	f.size = max(f.size, c.at+int64(len(c.data)))
	f.pending = append(f.pending, c)
}

func (d *disk) writes(c call) {
	h := d.open[c.number(0)]
	if h == nil || h.file == nil {
		return
	}
	switch c.name {
	case "pwrite64":
		if strings.HasSuffix(h.path, "-wal") {
			d.logWrites++
			if c.number(3) == 0 {
				d.logs++
			}
		}
		h.file.change(change{at: int64(c.number(3)), data: c.data(1)[:c.result]})
	case "ftruncate":
		h.file.change(change{at: int64(c.number(1))})
	case "lseek":
		h.at = int64(c.result)
	case "write":
		if h.append {
			h.at = h.file.size
		}
		h.file.change(change{at: h.at, data: c.data(1)[:c.result]})
		h.at += int64(c.result)
	}
}

func (d *disk) renames(from, to string) {
	if !d.inside(from) || !d.inside(to) {
		return
	}
	file, there := d.live[from]
	if !there || file == nil {
		d.fail("renamed %s, which is not a file of the disk", from)
		return
	}
	d.name(naming{old: from, name: to, file: file})
}

func (d *disk) removes(path string) {
	if d.inside(path) {
		d.name(naming{old: path})
	}
}

// flushed makes the writes durable that were made before a flush began.
func (d *disk) flushed(thread string) {
	f, ok := d.flushes[thread]
	delete(d.flushes, thread)
	if ok && strings.HasSuffix(f.h.path, "-wal") {
		d.logFlushes++
	}
	if !ok || d.ignore != nil && d.ignore(f.h.path) {
		return
	}
	if f.h.file != nil {
		n := min(f.changes, len(f.h.file.pending)) // another flush may have ended meanwhile
		for _, c := range f.h.file.pending[:n] {
			f.h.file.durable = c.apply(f.h.file.durable)
		}
		f.h.file.pending = f.h.file.pending[n:]
		return
	}
	names := d.pending[f.h.path]
	for _, n := range names[:min(f.names, len(names))] {
		n.apply(d.durable)
	}
	d.pending[f.h.path] = names[min(f.names, len(names)):]
}

// worst keeps only flushed data after a power loss; chance keeps more, at random.
func (d *disk) worst(to string) error {
	return d.write(to, d.durable, func(f *inode) []byte { return f.durable })
}

func (d *disk) chance(to string, rng *rand.Rand) error {
	names := maps.Clone(d.durable)
	for _, folder := range slices.Sorted(maps.Keys(d.pending)) { // folders above come first
		pending := d.pending[folder]
		for _, n := range pending[:rng.IntN(len(pending)+1)] {
			n.apply(names)
		}
	}
	return d.write(to, names, func(f *inode) []byte {
		content := slices.Clone(f.durable)
		for _, c := range f.pending {
			for _, part := range c.sectors() {
				if rng.IntN(3) > 0 {
					content = part.apply(content)
				}
			}
		}
		return content
	})
}

// sectors cuts a write at the borders that a disk writes whole.
func (c change) sectors() []change {
	const sector = 512
	if c.data == nil {
		return []change{c}
	}
	var parts []change
	for data, at := c.data, c.at; len(data) > 0; {
		n := min(int64(len(data)), sector-at%sector)
		parts = append(parts, change{at: at, data: data[:n]})
		data, at = data[n:], at+n
	}
	return parts
}

func (d *disk) write(to string, names map[string]*inode, content func(*inode) []byte) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		dst := filepath.Join(to, strings.TrimPrefix(path, d.base))
		if _, err := os.Stat(filepath.Dir(dst)); err != nil && path != d.base {
			continue // the folder is lost, and what is in it
		}
		var err error
		if file := names[path]; file == nil {
			err = os.MkdirAll(dst, 0o700)
		} else {
			err = os.WriteFile(dst, content(file), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call is a system call as strace writes it.
type call struct {
	name   string
	args   []string
	result int
}

// parseCall reads name(args) = result; the result is -1 when it is not there.
func parseCall(text string) call {
	name, rest, ok := strings.Cut(text, "(")
	if !ok || strings.ContainsAny(name, " <") {
		return call{result: -1}
	}
	c := call{name: name, result: -1}
	depth, quoted, start := 0, false, 0
	for i := 0; i < len(rest); i++ {
		switch ch := rest[i]; {
		case quoted && ch == '\\':
			i++
		case ch == '"':
			quoted = !quoted
		case quoted:
		case ch == '(' || ch == '{' || ch == '[':
			depth++
		case ch == ')' && depth == 0:
			c.args = append(c.args, strings.TrimSpace(rest[start:i]))
			if _, result, ok := strings.Cut(rest[i:], "= "); ok {
				c.result = leading(result)
			}
			return c
		case ch == ')' || ch == '}' || ch == ']':
			depth--
		case ch == ',' && depth == 0:
			c.args = append(c.args, strings.TrimSpace(rest[start:i]))
			start = i + 1
		}
	}
	c.args = append(c.args, strings.TrimSpace(rest[start:]))
	return c
}

// leading reads the number at the beginning of a text; -1 when there is none.
func leading(text string) int {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(text[:end])
	if err != nil {
		return -1
	}
	return n
}

func (c call) number(i int) int {
	if i >= len(c.args) {
		return -1
	}
	return leading(c.args[i])
}

func (c call) path(i int) string { return filepath.Clean(string(c.data(i))) }

// data decodes a quoted argument; strace writes bytes as C does.
func (c call) data(i int) []byte {
	if i >= len(c.args) {
		return nil
	}
	text := strings.Trim(c.args[i], `"`)
	if strings.HasSuffix(c.args[i], `\""`) { // the last byte is a quote
		text += `"`
	}
	out := make([]byte, 0, len(text))
	for j := 0; j < len(text); j++ {
		if text[j] != '\\' {
			out = append(out, text[j])
			continue
		}
		j++
		n, digits := 0, 0
		for digits < 3 && j+digits < len(text) && text[j+digits] >= '0' && text[j+digits] <= '7' {
			n, digits = n*8+int(text[j+digits]-'0'), digits+1
		}
		if digits > 0 {
			out, j = append(out, byte(n)), j+digits-1
			continue
		}
		out = append(out, escaped(text[j]))
	}
	return out
}

func escaped(letter byte) byte {
	switch letter {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	default:
		return letter
	}
}
