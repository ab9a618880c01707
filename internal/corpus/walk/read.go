package walk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"
)

// sniffBytes is how much of a file decides whether it is text.
const sniffBytes = 8 << 10

// candidate is a file that may be taken.
type candidate struct {
	name string
	path string
	// given is set when the user named the file itself: what is wrong with it is
	// an error then.
	given bool
}

// fault is why a text is not taken.
type fault struct {
	kind string
	why  string
	hint string
	err  error
}

// hintAccess helps with what the system refuses.
const hintAccess = "check its permissions, those of the folders above it, and where links lead"

// refuse makes an error of a fault of a file that the user named, and a skipped
// file of one that was found.
func (g *gatherer) refuse(c candidate, f fault) error {
	if c.given {
		return &Error{Arg: c.name, Msg: f.why, Hint: f.hint, Err: f.err}
	}
	why := f.why
	if f.err != nil {
		why += ": " + f.err.Error()
	}
	g.skip(c.name, f.kind, why)
	return nil
}

// take reads one file into the sink. It is opened once; what is read is the file
// as long as it was then, so that a log that grows has an end.
func (g *gatherer) take(c candidate) error {
	if err := g.ctx.Err(); err != nil {
		return fmt.Errorf("read context: %w", err)
	}
	if !plainName(c.name) {
		return g.refuse(c, fault{kind: KindName, why: "the name is not plain text",
			hint: "rename it, or give its text as standard input with -"})
	}
	// Without O_NONBLOCK, a pipe that takes the file's place would block for ever.
	f, err := os.OpenFile(c.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return g.refuse(c, fault{kind: KindGone, why: "it went away", err: fs.ErrNotExist})
	}
	if err != nil {
		return g.refuse(c, fault{kind: KindUnreadable, why: "it cannot be read", hint: hintAccess, err: bare(err)})
	}
	defer f.Close()
	for range tries {
		if err = g.takeOpen(c, f); !errors.Is(err, errChanged) {
			return err
		}
	}
	return g.refuse(c, fault{kind: KindChanged, why: "it changes while it is read",
		hint: "wait until nothing writes to it, or copy it first"})
}

// tries is how often a file is read that changes meanwhile.
const tries = 3

// takeOpen reads an open file. errChanged tells that it did not hold still.
func (g *gatherer) takeOpen(c candidate, f *os.File) error {
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil && (info == nil || info.Mode().IsRegular()) {
		return g.refuse(c, fault{kind: KindUnreadable, why: "it cannot be read", hint: hintAccess, err: bare(err)})
	}
	if !info.Mode().IsRegular() {
		return g.refuse(c, fault{kind: KindSpecial, why: "it is " + modeWord(info.Mode())})
	}
	id := identify(c.path, info)
	if _, twice := g.taken[id]; twice {
		return nil
	}
	if limit := g.cfg.MaxFileBytes; limit > 0 && info.Size() > limit {
		return g.refuse(c, tooLarge(limit))
	}
	r := io.Reader(f)
	if info.Size() > 0 { // files of the kernel say 0 and have content
		r = newSteady(f, info)
	}
	before := g.sum.Files
	err = g.text(c, r)
	if g.sum.Files > before { // what was skipped may still be named by the user
		g.taken[id] = struct{}{}
	}
	return err
}

func (g *gatherer) stdin() error {
	return g.text(candidate{name: stdinArg, given: true}, g.cfg.Stdin)
}

// text sniffs r and passes it on.
func (g *gatherer) text(c candidate, r io.Reader) error {
	src := &source{ctx: g.ctx, r: r, limit: g.cfg.MaxFileBytes}
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(src, head)
	if ctxErr := g.ctx.Err(); ctxErr != nil {
		return fmt.Errorf("read context: %w", ctxErr)
	}
	if errors.Is(src.err, errChanged) {
		return errChanged
	}
	if src.err != nil {
		return g.refuse(c, src.fault())
	}
	whole := err != nil // the end came first
	if f, bad := sniff(head[:n], whole); bad {
		return g.refuse(c, f)
	}
	err = g.sink.Add(c.name, io.MultiReader(bytes.NewReader(head[:n]), src))
	if ctxErr := g.ctx.Err(); err != nil && ctxErr != nil {
		return fmt.Errorf("read context: %w", ctxErr)
	}
	if err != nil && errors.Is(src.err, errChanged) {
		return errChanged
	}
	if err != nil && src.err != nil {
		return g.refuse(c, src.fault())
	}
	if err != nil {
		return fmt.Errorf("keep context %q: %w", c.name, err)
	}
	g.sum.Files++
	g.sum.Bytes += src.size
	return nil
}

// sniff tells why a text that begins with head is not taken; whole when it is
// all of it.
func sniff(head []byte, whole bool) (fault, bool) {
	if len(head) == 0 {
		return fault{kind: KindEmpty, why: "it is empty", hint: "give a text, or leave it out"}, true
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return fault{kind: KindBinary, why: "it is UTF-16 text", hint: "convert it to UTF-8, for example with iconv"}, true
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return fault{kind: KindBinary, why: "it is binary", hint: "convert it to text first"}, true
	}
	invalid, runes := 0, 0
	for rest := head; len(rest) > 0; runes++ {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			if !whole && !utf8.FullRune(rest) {
				break // cut by the end of head
			}
			invalid++
		}
		rest = rest[size:]
	}
	// A text in an old 8-bit encoding has some bytes that are not UTF-8.
	if invalid*10 > runes*3 {
		return fault{kind: KindBinary, why: "it is binary: mostly not valid UTF-8",
			hint: "convert it to UTF-8 text first"}, true
	}
	return fault{}, false
}

// source reads a text and remembers whether it was the text that failed, so that
// it can be told from a failing sink.
type source struct {
	ctx   context.Context
	r     io.Reader
	limit int64 // 0 for none
	size  int64
	err   error
}

var errTooLarge = errors.New("larger than the limit")

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.r.Read(p)
	s.size += int64(n)
	if s.limit > 0 && s.size > s.limit {
		err = errTooLarge
	}
	if err != nil && err != io.EOF { // a wrapped EOF is not the end
		s.err = err
	}
	return n, err
}

func (s *source) fault() fault {
	if errors.Is(s.err, errTooLarge) {
		return tooLarge(s.limit)
	}
	return fault{kind: KindUnreadable, why: "it cannot be read to its end",
		hint: "check the disk it is on, or copy it first", err: bare(s.err)}
}

func tooLarge(limit int64) fault {
	return fault{kind: KindTooLarge, why: fmt.Sprintf("it is larger than the limit of %d bytes", limit)}
}

// bare drops the path from an error of a file whose name is told anyway.
func bare(err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// plainName tells names that can be shown, stored and sent as they are.
func plainName(name string) bool {
	for _, c := range []byte(name) {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(name)
}
