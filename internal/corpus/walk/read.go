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

	"github.com/perdure/perdure/internal/corpus/charset"
	"github.com/perdure/perdure/internal/corpus/preprocess"
)

// headBytes is the size of the beginning of a file that decides how it is read.
const headBytes = 1 << 20

// candidate is a file that may be read.
type candidate struct {
	name string
	path string
	// named is set if the user named the file itself: its faults are errors then.
	named bool
	// encoding is set if another one was expected at first.
	encoding *charset.Charset
	// command is set if its text is what a command makes of it.
	command string
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
		err = c.takeOpen(at, f)
		if again, ok := errors.AsType[*encodingError](err); ok {
			at.encoding = &again.encoding
			continue
		}
		if !errors.Is(err, errChanged) {
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
	before := c.files
	if rule, ok := c.cfg.Pre.Find(at.name); ok {
		if err = c.runCommand(at, f, rule); c.files > before {
			c.read[id] = struct{}{}
		}
		return err
	}
	r := io.Reader(f)
	if info.Size() > 0 { // files of the kernel have size 0 and content
		r = newSteady(f, info)
	}
	err = c.text(at, r, f)
	if c.files > before { // a skipped file may still be named by the user
		c.read[id] = struct{}{}
	}
	return err
}

func (c *collector) stdin() error {
	return c.text(candidate{name: stdinArg, named: true}, c.cfg.Stdin, nil)
}

// text finds out by the beginning of r what it is, and passes its text on. again reads other
// places of a file, nil if that is not possible.
func (c *collector) text(at candidate, r io.Reader, again io.ReaderAt) error {
	src := &source{ctx: c.ctx, r: r, limit: c.cfg.MaxFileBytes}
	if c.head == nil {
		c.head = make([]byte, headBytes)
	}
	n, err := io.ReadFull(src, c.head)
	if src.err != nil {
		return c.failed(at, src)
	}
	head, whole := c.head[:n], err != nil
	if n == 0 || at.command != "" && whole && len(bytes.TrimSpace(head)) == 0 {
		return c.refuse(at, emptyFault(at))
	}
	all := io.MultiReader(bytes.NewReader(head), src)
	if at.command == "" && isNotebook(at.name, head) {
		return c.notebook(at, all, src)
	}
	encoding, f := c.encodingOf(at, head, whole)
	if f != nil {
		return c.refuse(at, *f)
	}
	return c.addText(at, all, encoding, src, again)
}

// addText passes the text of r on, which has an encoding. again reads other places of its file,
// nil if that is not possible.
func (c *collector) addText(at candidate, r io.Reader, encoding charset.Charset, src *source, again io.ReaderAt) error {
	text := charset.NewReader(r, encoding)
	err := c.sink.Add(at.name, text)
	if invalid, ok := errors.AsType[*charset.InvalidError](err); ok && src.err == nil {
		return c.invalidError(at, invalid, again)
	}
	if err != nil {
		return c.unfinishedError(at, src, err)
	}
	switch {
	case text.Cut():
		c.noteAdded(at, "from "+encoding.Name()+", without the incomplete character at its end")
	case encoding.IsUTF8():
		c.noteAdded(at, "")
	default:
		c.noteAdded(at, "from "+encoding.Name())
	}
	return nil
}

// noteAdded counts a file that the sink has, and notes how its text came to be.
func (c *collector) noteAdded(at candidate, how string) {
	c.files++
	if at.command != "" {
		how = strings.TrimSpace(fmt.Sprintf("by %q %s", at.command, how))
	}
	if how != "" {
		c.sink.Note(at.name, NoteConverted, how)
	}
	if !at.named || at.path == "" {
		return
	}
	if why := secretFile(at.path); why != "" {
		c.sink.Note(at.name, NoteSecret, why)
	}
}

// unfinishedError returns the error of a text that the sink did not take whole.
func (c *collector) unfinishedError(at candidate, src *source, err error) error {
	if src.err != nil || c.ctx.Err() != nil {
		return c.failed(at, src)
	}
	return fmt.Errorf("keep context %q: %w", at.name, err)
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
	if failed, ok := errors.AsType[*preprocess.Error](s.err); ok {
		return commandFault(failed)
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
