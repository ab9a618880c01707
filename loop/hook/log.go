package hook

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/filelock"
)

// Limits of hook-log.jsonl.
const (
	// MaxLineBytes is the longest line, its end included.
	MaxLineBytes = 64 << 10
	// DefaultMaxLogBytes is the size at which a log is put aside.
	DefaultMaxLogBytes = 64 << 20
)

// LogConfig configures [OpenLog].
type LogConfig struct {
	// Path is the file; missing folders are made. Required.
	Path string
	// MaxBytes is the size at which the log is put aside as NAME.1.jsonl, in the
	// place of the one put aside before, and begun anew with a line that says so.
	// 0: DefaultMaxLogBytes; negative: never.
	MaxBytes int64
}

// Log appends records to a hook-log.jsonl. It is safe for concurrent use, and
// several processes may append to one file: each line is one write at the end.
//
// When Append returns, the line survives kill -9. It survives a loss of power
// from the next Sync on, which [Runner.EndIteration] calls: a flush for each
// line would cost more than most handlers do.
type Log struct {
	cfg LogConfig

	mu   sync.Mutex // guards what follows
	file *os.File
	// torn: the last write was not whole.
	torn bool
	// size is of the file when it was last looked at, and what was written since.
	size int64
	// next is the size at which putting the log aside is tried again after a
	// failure.
	next int64
}

// OpenLog opens a log, or makes it. A last line that a crash cut off is ended,
// so that it does not spoil the next one; [ReadLog] passes over it.
func OpenLog(cfg LogConfig) (*Log, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxLogBytes)
	l := &Log{cfg: cfg}
	if err := atomicfile.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return nil, fmt.Errorf("open hook log: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open hook log: %w", err)
	}
	return l, nil
}

// open opens the file at the path and leaves the one that was open before.
func (l *Log) open() error {
	f, err := os.OpenFile(l.cfg.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", l.cfg.Path)
	}
	torn := false
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		_, err = f.ReadAt(last, info.Size()-1)
		torn = last[0] != '\n'
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.size, l.torn, l.next = f, info.Size(), torn, l.cfg.MaxBytes
	return nil
}

// Append writes a record as one line. An error means that the line may be
// missing or cut off; the log can be used on.
func (l *Log) Append(r Record) error {
	doc, err := r.MarshalJSON()
	if err != nil {
		return fmt.Errorf("append to hook log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fmt.Errorf("append to hook log: %w", fs.ErrClosed)
	}
	// Another process may have rotated the file, or a user removed it.
	same, err := l.current()
	if err == nil && !same {
		err = l.open()
	}
	if err != nil {
		return fmt.Errorf("append to hook log: %w", err)
	}
	var aside error
	if l.cfg.MaxBytes > 0 && l.size >= l.next {
		aside = l.putAside()
	}
	if err := errors.Join(l.write(doc), aside); err != nil {
		return fmt.Errorf("append to hook log: %w", err)
	}
	failpoint.Hit("hooklog.after_append")
	return nil
}

// current reports whether the open file is the one at the path, and looks up its
// size.
func (l *Log) current() (bool, error) {
	there, err := os.Stat(l.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ours, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	l.size = ours.Size()
	return os.SameFile(there, ours), nil
}

// write appends one line in one write.
func (l *Log) write(doc []byte) error {
	text := make([]byte, 0, len(doc)+2)
	if l.torn {
		text = append(text, '\n')
	}
	text = append(append(text, doc...), '\n')
	if len(doc) >= MaxLineBytes {
		return &LimitError{What: "line", Limit: MaxLineBytes, Got: len(doc) + 1}
	}
	n, err := l.file.Write(text)
	l.size += int64(n)
	if n > 0 {
		l.torn = n < len(text)
	}
	return err
}

// putAside renames the file and begins a new one. Of processes that want to at
// the same time one does: the lock is on the open file. The others write on, and
// follow with the next line; a process that gets the lock late finds another file at
// the path.
func (l *Log) putAside() error {
	err := filelock.TryLock(l.file)
	if errors.Is(err, filelock.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	old := l.file
	defer func() { _ = filelock.Unlock(old) }() // closing it, when another was opened, does the same
	if same, err := l.current(); err != nil || !same {
		return errors.Join(err, l.open())
	}
	if err := os.Rename(l.cfg.Path, l.aside()); err != nil {
		l.next = l.size + l.cfg.MaxBytes
		return err
	}
	failpoint.Hit("hooklog.after_rename")
	size := l.size
	if err := l.open(); err != nil {
		return err
	}
	doc, err := Record{
		Time: time.Now(), Hook: LogRotated, Handler: "perdure", Kind: KindBuiltin,
		StateChanges: map[string]any{"earlier_lines": filepath.Base(l.aside()), "bytes": size},
	}.MarshalJSON()
	if err != nil {
		return err
	}
	return l.write(doc)
}

// aside is where the log is put when it has grown to its limit.
func (l *Log) aside() string { return asideOf(l.cfg.Path) }

func asideOf(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + ".1" + ext
}

// Sync makes all lines durable against a loss of power.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fmt.Errorf("flush hook log: %w", fs.ErrClosed)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("flush hook log: %w", err)
	}
	return nil
}

// Close makes all lines durable and closes the log. Closing it again does
// nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Sync(), l.file.Close())
	l.file = nil
	if err != nil {
		return fmt.Errorf("close hook log: %w", err)
	}
	return nil
}

var _ io.Closer = (*Log)(nil)
