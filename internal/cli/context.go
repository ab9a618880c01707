package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/walk"
	"github.com/perdure/perdure/internal/text/human"
)

// upload streams the context, if there is one, to the server. If reading fails, the server
// keeps nothing.
func (a *app) upload(ctx context.Context, b *env.Backend, f *runFlags) (client.ContextReport, error) {
	largest, err := env.ParseSize("max-file-size", f.maxFileSize, 1)
	if err != nil || len(f.contexts) == 0 {
		return client.ContextReport{}, err
	}
	view := newProgressView(a.Err, !a.Err.Terminal)
	defer view.finish()
	stdin := a.Stdin
	if slices.Contains(f.contexts, "-") {
		if a.StdinTerminal() {
			a.Note("reading the context from the terminal; press Ctrl-D to end it")
		}
		stdin = interruptible(ctx, stdin)
	}
	return b.PutContext(ctx, func(w io.Writer) error {
		sink := pack.NewStreamWriter(w)
		err := walk.Into(ctx, walk.Config{Root: a.Cwd, Args: f.contexts, Stdin: stdin, MaxFileBytes: largest},
			&countingSink{Sink: sink, view: view})
		if err != nil {
			return contextError(ctx, err)
		}
		return sink.Close()
	})
}

// interruptible returns a reader of r that fails when ctx ends. The goroutine that reads
// r ends only with r, because a read from a terminal cannot be interrupted; the process
// is about to exit then.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	return out
}

// countingSink shows how much of the context was read.
type countingSink struct {
	walk.Sink
	view  *progressView
	files int64
	bytes int64
	shown time.Time
}

// Add adds a file and counts it.
func (s *countingSink) Add(name string, r io.Reader) error {
	err := s.Sink.Add(name, &countingReader{r: r, s: s})
	s.files++
	s.show()
	return err
}

const showEvery = 100 * time.Millisecond

func (s *countingSink) show() {
	if now := time.Now(); now.Sub(s.shown) >= showEvery {
		s.shown = now
		s.view.transient("reading context: " + human.Count(s.files, "file") + ", " + human.Size(s.bytes))
	}
}

type countingReader struct {
	r io.Reader
	s *countingSink
}

// Read reads and counts bytes.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.s.bytes += int64(n)
	c.s.show()
	return n, err
}

// contextError returns problems of the context's paths as bad input, one a line.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	first, ok := errors.AsType[*walk.Error](err)
	if !ok || perdure.CodeOf(err) != perdure.CodeInternal { // an error of the server, which ended the upload
		return err
	}
	return env.UsageError(first.Hint, "%s", err)
}

// shownSkips bounds the number of skipped files that are listed.
const shownSkips = 3

// tokens returns a number of tokens as text.
func tokens(n int64) string {
	if n == 1 {
		return "1 token"
	}
	return human.Compact(n) + " tokens"
}

// noteContext notes what was read and what was skipped.
func (a *app) noteContext(r client.ContextReport) {
	a.Note("context: %s, %s, about %s", human.Count(r.Files, "file"), human.Size(r.Bytes), tokens(r.Tokens))
	skipped := int64(len(r.Skipped)) + r.MoreSkipped
	if skipped == 0 {
		return
	}
	a.Note("skipped: %s%s", human.Count(skipped, "file"), kindsText(r.SkippedKinds))
	for i, s := range r.Skipped {
		if i == shownSkips && skipped > shownSkips+1 {
			a.Note("  … and %d more", skipped-shownSkips)
			return
		}
		if i > shownSkips {
			return
		}
		a.Note("  %s: %s", env.OneLine(s.File, 60), strings.TrimSpace(human.Visible(s.Why)))
	}
}

// kindsText returns the reasons of skipped files, the most frequent first:
// " (12 ignored, 3 binary)".
func kindsText(kinds map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(kinds), func(x, y string) int {
		return cmp.Or(cmp.Compare(kinds[y], kinds[x]), strings.Compare(x, y))
	})
	if len(names) == 0 {
		return ""
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", kinds[name], human.Visible(strings.ReplaceAll(name, "_", " ")))
	}
	return " (" + strings.Join(names, ", ") + ")"
}
