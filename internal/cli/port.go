package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/transfer"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// portCommands bring records out of the store and into it.
func (a *app) portCommands() []*cobra.Command {
	return transfer.Commands(transfer.Config{
		Out: a.out, PrintJSON: a.printJSON, Note: a.note, Bold: a.out.bold, Getenv: a.env.getenv, Path: a.path,
		ExportGroup: groupSee, ImportGroup: groupManage, Arguments: arguments, CompleteTrees: a.completeTrees,
		WriteOutput: a.writeOutput, Incomplete: &outcome{status: exitIncomplete}, Load: a.load, HasStore: hasStore,
		Open: a.withStore,
		Connect: func(ctx context.Context, l *config.Loaded, do func(*client.Client) error) error {
			return a.withBackend(ctx, l, toRead, func(b *backend) error { return do(b.Client) })
		},
	})
}

// path makes a path absolute.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.env.Cwd, name)
}

// withStore opens the store for do; to write, it is made when there is none.
func (a *app) withStore(ctx context.Context, l *config.Loaded, write bool, do func(*perdure.Store) error) error {
	if !write && !hasStore(l) {
		return noStore(l)
	}
	cfg := perdure.Config{Dir: l.Dir, DSN: l.Store}
	if l.Store != "" {
		cfg.Dir = ""
	}
	store, err := perdure.Open(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(store)
	if closeErr := store.Close(); err == nil && closeErr != nil {
		return closeErr
	}
	return err
}

// writeOutput hands content a file that appears as a whole, or standard output
// when there is no name. It says where the file is.
func (a *app) writeOutput(name string, content func(io.Writer) error) error {
	if name == "" || name == "-" {
		w := bufio.NewWriterSize(&stopped{a.out}, 64<<10)
		err := content(w)
		if err == nil {
			err = w.Flush()
		}
		if a.out.gone() {
			return nil // the reader has enough
		}
		return err
	}
	path := a.path(name)
	var written counter
	err := atomicfile.Write(path, 0o644, func(file io.Writer) error {
		w := bufio.NewWriterSize(io.MultiWriter(file, &written), 64<<10)
		if err := content(w); err != nil {
			return err
		}
		return w.Flush()
	})
	if err != nil {
		var own *perdure.Error
		if errors.As(err, &own) {
			return own
		}
		return fmt.Errorf("write %q: %w", name, err)
	}
	a.note("wrote %s, %s", name, size(int64(written)))
	return nil
}

// counter counts the bytes written to it.
type counter int64

// Write counts p.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// stopped is a stream whose error ends the writing.
type stopped struct{ s *stream }

// Write hands p on and returns the stream's error.
func (w *stopped) Write(p []byte) (int, error) {
	n, _ := w.s.Write(p) // the stream keeps its error
	return n, w.s.err
}
