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
	"github.com/perdure/perdure/internal/atomicfile"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/export"
)

func (a *app) newExportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export TREE",
		Short: "Write everything the store knows of a tree as JSON Lines",
		Long: "Write everything the store knows of a tree as JSON Lines: configuration, context, tasks with their results, " +
			"calls and events, in a fixed order (perdure schema export-line). The last line counts the others and has " +
			"their SHA-256; without it the file was cut. The tree stays as it is. Prompts, results and the text of the " +
			"context are in it as they are.",
		Example:           "perdure export tree-1a2b3c4d -o tree.jsonl\n perdure export tree-1a2b3c4d | jq -r 'select(.type == \"task\").task.prompt'",
		GroupID:           groupSee,
		Args:              arguments(1, 1, "one tree"),
		ValidArgsFunction: a.completeTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := perdure.ParseTreeID(args[0])
			if err != nil {
				return err
			}
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.export(cmd.Context(), l, id, f)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write to this `file` instead of standard output")
	cmd.Flags().BoolVar(&f.withoutContext, "without-context", false, "leave out the text of the context's files")
	return cmd
}

type exportFlags struct {
	output         string
	withoutContext bool
}

// export reads the store itself, also beside a daemon: that needs no uploads
// and no second form on the wire.
func (a *app) export(ctx context.Context, l *config.Loaded, id perdure.TreeID, f exportFlags) error {
	if !hasStore(l) {
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
	err = a.writeOutput(f.output, func(w io.Writer) error {
		return export.Write(ctx, store, w, export.Config{Tree: id, WithoutContext: f.withoutContext})
	})
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
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.env.Cwd, path)
	}
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
