package walk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// sniffBytes is the size of the beginning of a file that decides whether it is text.
const sniffBytes = 8 << 10

// candidate is a file that may be read.
type candidate struct {
	name string
	path string
	// named is set if the user named the file itself: its faults are errors then.
	named bool
}

// fault is why a text is not read.
type fault struct {
	kind string
	why  string
	hint string
	err  error
}

// hintAccess is the hint for files that the system does not open.
const hintAccess = "check its permissions, those of the folders above it, and where links lead"

// refuse returns the error of a file that the user named, and skips one that was found.
func (c *collector) refuse(at candidate, f fault) error {
	if at.named {
		return &Error{Arg: at.name, Msg: f.why, Hint: f.hint, Err: f.err}
	}
	why := f.why
	if f.err != nil {
		why += ": " + f.err.Error()
	}
	c.skip(at.name, f.kind, why)
	return nil
}

// take reads one file into the sink. It is opened once, and read at the length that it has
// then, so that reading a growing log ends.
func (c *collector) take(at candidate) error {
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("read context: %w", err)
	}
	if !plainName(at.name) {
		return c.refuse(at, fault{kind: KindName, why: "the name has control characters or is not valid UTF-8",
			hint: "rename it, or pipe its text to standard input and name -"})
	}
	// Without O_NONBLOCK, a pipe that replaced the file would block for ever.
	f, err := os.OpenFile(at.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return c.refuse(at, fault{kind: KindGone, why: "it was removed", err: fs.ErrNotExist})
	}
	if err != nil {
		return c.refuse(at, fault{kind: KindUnreadable, why: "it cannot be read", hint: hintAccess, err: bare(err)})
	}
	defer f.Close()
	for range tries {
		if err = c.takeOpen(at, f); !errors.Is(err, errChanged) {
			return err
		}
	}
	return c.refuse(at, fault{kind: KindChanged, why: "it changes while it is read",
		hint: "wait until no process writes to it, or copy it first"})
}

// tries is the number of attempts to read a file that changes meanwhile.
const tries = 3

// takeOpen reads an open file. It returns errChanged if the file changed meanwhile.
func (c *collector) takeOpen(at candidate, f *os.File) error {
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil && (info == nil || info.Mode().IsRegular()) {
		return c.refuse(at, fault{kind: KindUnreadable, why: "it cannot be read", hint: hintAccess, err: bare(err)})
	}
	if !info.Mode().IsRegular() {
		return c.refuse(at, fault{kind: KindSpecial, why: "it is " + modeWord(info.Mode())})
	}
	id := identify(at.path, info)
	if _, twice := c.read[id]; twice {
		return nil
	}
	if limit := c.cfg.MaxFileBytes; limit > 0 && info.Size() > limit {
		return c.refuse(at, tooLarge(limit))
	}
	r := io.Reader(f)
	if info.Size() > 0 { // files of the kernel have size 0 and content
		r = newSteady(f, info)
	}
	before := c.files
	err = c.text(at, r)
	if c.files > before { // a skipped file may still be named by the user
		c.read[id] = struct{}{}
	}
	return err
}

func (c *collector) stdin() error {
	return c.text(candidate{name: stdinArg, named: true}, c.cfg.Stdin)
}

// text checks the beginning of r and passes the text on.
func (c *collector) text(at candidate, r io.Reader) error {
	src := &source{ctx: c.ctx, r: r, limit: c.cfg.MaxFileBytes}
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(src, head)
	if src.err != nil {
		return c.failed(at, src)
	}
	if f, bad := sniff(head[:n], err != nil); bad {
		return c.refuse(at, f)
	}
	err = c.sink.Add(at.name, io.MultiReader(bytes.NewReader(head[:n]), src))
	if err != nil && (src.err != nil || c.ctx.Err() != nil) {
		return c.failed(at, src)
	}
	if err != nil {
		return fmt.Errorf("keep context %q: %w", at.name, err)
	}
	c.files++
	return nil
}

// failed returns the error of a text that cannot be read to its end.
func (c *collector) failed(at candidate, src *source) error {
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("read context: %w", err)
	}
	if errors.Is(src.err, errChanged) {
		return errChanged
	}
	return c.refuse(at, src.fault())
}

// sniff returns why a text that begins with head is not read, if it is not; whole is set
// if head is the whole text.
func sniff(head []byte, whole bool) (fault, bool) {
	if len(head) == 0 {
		return fault{kind: KindEmpty, why: "it is empty", hint: "write text to it, or leave it out"}, true
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

// source reads a text and records its error, to distinguish it from an error of the sink.
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

// bare removes the path from an error, for messages that name the file.
func bare(err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// plainName reports whether a name can be shown, stored and sent unchanged.
func plainName(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}
