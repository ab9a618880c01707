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
// complete. Without a name, or with "-", it writes to standard output.
func (e *Env) WriteOutput(name string, content func(io.Writer) error) error {
	if name == "" || name == "-" {
		w := bufio.NewWriterSize(failing{e.Out}, 64<<10)
		err := content(w)
		if err == nil {
			err = w.Flush()
		}
		if e.Out.closed() {
			return nil
		}
		return err
	}
	err := atomicfile.Write(e.Path(name), 0o644, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, 64<<10)
		if err := content(w); err != nil {
			return err
		}
		return w.Flush()
	})
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

// failing is a stream whose Write returns the stream's error.
type failing struct{ s *Stream }

func (f failing) Write(p []byte) (int, error) {
	n, _ := f.s.Write(p) // the stream keeps its error
	return n, f.s.err
}
