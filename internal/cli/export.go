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
	"github.com/perdure/perdure/internal/aiwg"
	"github.com/perdure/perdure/internal/atomicfile"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/export"
	"github.com/perdure/perdure/internal/loopview"
	reports "github.com/perdure/perdure/internal/report"
)

func (a *app) newExportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export TREE",
		Short: "Write a tree as JSON Lines, trees as a .aiwg folder, or a state",
		Long: "Write everything the store knows of a tree as JSON Lines: configuration, context, tasks with their results, " +
			"calls and events, of a loop also its iterations, gates and results of tests, in a fixed order (perdure schema export-line). The last line counts the others and has " +
			"their SHA-256; without it the file was cut. The tree stays as it is. Prompts, results and the text of the " +
			"context are in it as they are.\n\n" +
			"With --layout aiwg, the first argument is a new folder, the others are trees; without them all trees and states " +
			"are written: daemon/tasks.json, rlm/ and ralph/loops/ as other programs keep them (perdure schema tasks-file, " +
			"rlm-task-tree, loop-state). perdure import reads it. With --state, one state with its variables, history and checkpoints as one document " +
			"(perdure schema rlm-state).",
		Example: "perdure export tree-1a2b3c4d -o tree.jsonl\n perdure export tree-1a2b3c4d | jq -r 'select(.type == \"task\").task.prompt'\n" +
			" perdure export --layout aiwg out/.aiwg\n perdure export --state --tree tree-1a2b3c4d -o state.json",
		GroupID:           groupSee,
		Args:              func(cmd *cobra.Command, args []string) error { return f.arguments(cmd, args) },
		ValidArgsFunction: a.completeTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			switch {
			case f.layout != "":
				return a.exportLayout(cmd.Context(), l, args[0], args[1:])
			case f.state:
				return a.exportState(cmd.Context(), l, &f)
			}
			id, err := perdure.ParseTreeID(args[0])
			if err != nil {
				return err
			}
			return a.export(cmd.Context(), l, id, f)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write to this `file` instead of standard output")
	cmd.Flags().BoolVar(&f.withoutContext, "without-context", false, "leave out the text of the context's files")
	cmd.Flags().StringVar(&f.layout, "layout", "", "aiwg: write a folder of this `layout`")
	cmd.Flags().BoolVar(&f.state, "state", false, "write one state; the flags below say which")
	f.ref.add(cmd)
	complete(cmd, "layout", []string{layoutAiwg})
	return cmd
}

type exportFlags struct {
	output         string
	withoutContext bool
	layout         string
	state          bool
	ref            stateFlags
}

// layoutAiwg is the only layout there is.
const layoutAiwg = "aiwg"

// arguments checks what was written for each of the three forms.
func (f *exportFlags) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case f.layout != "" && f.layout != layoutAiwg:
		return usageError("there is aiwg", "--layout is %q", f.layout)
	case f.layout != "" && f.state:
		return usageError("leave one of them out", "--layout and --state are both given")
	case f.layout != "" && f.output != "":
		return usageError("the first argument says where", "--output has no meaning with --layout")
	case f.layout == "" && !f.state && f.ref.given():
		return usageError("--state writes a state", "--scope, --session, --tree, --task and --name are for --state")
	case f.layout != "" && f.ref.given():
		return usageError("name trees behind the folder", "--scope, --session, --tree, --task and --name are for --state")
	case f.layout != "":
		return arguments(1, -1, "a folder and trees")(cmd, args)
	case f.state:
		return arguments(0, 0, "no arguments with --state")(cmd, args)
	}
	return arguments(1, 1, "one tree")(cmd, args)
}

// export reads the store itself, also beside a daemon: that needs no uploads
// and no second form on the wire.
func (a *app) export(ctx context.Context, l *config.Loaded, id perdure.TreeID, f exportFlags) error {
	return a.withStore(ctx, l, false, func(store *perdure.Store) error {
		return a.writeOutput(f.output, func(w io.Writer) error {
			return export.Write(ctx, store, w, export.Config{Tree: id, WithoutContext: f.withoutContext})
		})
	})
}

// exportLayout writes a folder. The reports of trees are made as perdure report
// makes them.
func (a *app) exportLayout(ctx context.Context, l *config.Loaded, dir string, names []string) error {
	cfg := aiwg.ExportConfig{Dir: a.path(dir)}
	for _, name := range names {
		id, err := perdure.ParseTreeID(name)
		if err != nil {
			return err
		}
		cfg.Trees = append(cfg.Trees, id)
	}
	return a.withStore(ctx, l, false, func(store *perdure.Store) error {
		return a.withBackend(ctx, l, toRead, func(b *backend) error {
			cfg.Report = func(ctx context.Context, id perdure.TreeID, w io.Writer) error {
				doc, err := reports.Read(ctx, b.Client, id)
				if err != nil {
					return err
				}
				return doc.Write(w, "md")
			}
			cfg.Loop = loopview.Layout(ctx, store, filepath.Join(l.Dir, "loops"))
			r, err := aiwg.Export(ctx, store, cfg)
			if err != nil {
				return err
			}
			a.note("wrote %s: %s, %s, %s, %s in %s, %s", dir, count(int64(r.Trees), "tree"), count(int64(r.Tasks), "task"),
				count(int64(r.States), "state"), count(int64(r.Loops), "loop"), count(int64(r.Files), "file"), size(r.Bytes))
			if r.Settings > 1 {
				a.note("aiwg.yml has the settings that were imported last; those of %s before were left out", count(int64(r.Settings-1), "import"))
			}
			return nil
		})
	})
}

func (a *app) exportState(ctx context.Context, l *config.Loaded, f *exportFlags) error {
	return a.withStore(ctx, l, false, func(store *perdure.Store) error {
		ref, err := f.ref.ref(ctx, store, a.env.getenv)
		if err != nil {
			return err
		}
		text, err := aiwg.ExportState(ctx, store, ref)
		if err != nil {
			return err
		}
		return a.writeOutput(f.output, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
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
