package env

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/text/human"
)

// WriteOutput writes content to the file name, which appears only when it is
// complete. A device or a named pipe is written to, not replaced. Without a name, or
// with "-" or /dev/stdout, it writes to standard output.
func (e *Env) WriteOutput(name string, content func(io.Writer) error) error {
	buffered := func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)
		if err := content(b); err != nil {
			return err
		}
		return b.Flush()
	}
	if name == "" || name == "-" || name == "/dev/stdout" {
		err := buffered(failing{e.Out})
		if e.Out.closed() {
			return nil
		}
		return err
	}
	if special(e.Path(name)) {
		return writeSpecial(e.Path(name), buffered)
	}
	err := atomicfile.Write(e.Path(name), 0o644, buffered)
	if own, ok := errors.AsType[*perdure.Error](err); ok {
		return own
	}
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return NotFound("create the folder first", "write %q: the folder %q does not exist", name, filepath.Dir(missing.Path))
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	if info, err := os.Stat(e.Path(name)); err == nil {
		e.Note("wrote %s, %s", name, human.Size(info.Size()))
	}
	return nil
}

// special reports whether path exists and is neither a file nor a folder.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// writeSpecial writes content to the device or pipe at path.
func writeSpecial(path string, content func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}

// failing is a stream whose Write returns the stream's error.
type failing struct{ s *Stream }

func (f failing) Write(p []byte) (int, error) {
	n, _ := f.s.Write(p) // the stream keeps its error
	return n, f.s.err
}
