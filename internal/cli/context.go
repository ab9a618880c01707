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
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/corpus/charset"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/preprocess"
	"github.com/perdure/perdure/internal/corpus/walk"
	"github.com/perdure/perdure/internal/text/human"
)

// walkConfig returns what is read as the context, without standard input.
func (f *runFlags) walkConfig(a *app, l *config.Loaded) (walk.Config, error) {
	largest, err := env.ParseSize("max-file-size", f.maxFileSize, 1)
	if err != nil {
		return walk.Config{}, err
	}
	c := walk.Config{Root: a.Cwd, Args: f.contexts, MaxFileBytes: largest, NoIgnore: f.noIgnore}
	if c.Pre, err = preprocess.ParseAll(l.Pre); err != nil { // the setting was checked
		return walk.Config{}, env.UsageError("write PATTERN=COMMAND", "--pre %s", err)
	}
	if f.encoding == "" {
		return c, nil
	}
	encoding, ok := charset.Find(f.encoding)
	if !ok {
		return walk.Config{}, env.UsageError("`iconv -l` lists names such as shift-jis, gb18030 or windows-1252",
			"--encoding: %q is not the name of an encoding", f.encoding)
	}
	c.Encoding = &encoding
	return c, nil
}

// upload streams the context, if there is one, to the server. If reading fails, the server
// keeps nothing.
func (a *app) upload(ctx context.Context, b *env.Backend, f *runFlags) (client.ContextReport, error) {
	cfg, err := f.walkConfig(a, b.Config)
	if err != nil || len(f.contexts) == 0 {
		return client.ContextReport{}, err
	}
	view := newProgressView(a.Err, !a.Err.Terminal)
	defer view.finish()
	cfg.Stdin = a.Stdin
	if slices.Contains(f.contexts, "-") {
		if a.StdinTerminal() {
			a.Note("reading the context from the terminal; press Ctrl-D to end it")
		}
		cfg.Stdin = interruptible(ctx, cfg.Stdin)
	}
	return b.PutContext(ctx, func(w io.Writer) error {
		sink := pack.NewStreamWriter(w)
		if err := walk.Into(ctx, cfg, &countingSink{Sink: sink, view: view}); err != nil {
			return contextError(ctx, err)
		}
		return sink.Close()
	})
}

// dropContext removes the context of a run that does not start. What cannot be removed is left to gc.
func (a *app) dropContext(ctx context.Context, b *env.Backend, r *client.ContextReport) {
	_ = b.DropContext(context.WithoutCancel(ctx), r)
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

// shownBroken bounds the number of files with errors of which warnings are printed.
const shownBroken = 10

// tokens returns a number of tokens as text.
func tokens(n int64) string {
	if n == 1 {
		return "1 token"
	}
	return human.Compact(n) + " tokens"
}

// largeContext is the size in bytes from which on a run says that the store keeps a copy.
const largeContext = 16 << 20

// noteContext notes what was read, how it became text, and what was skipped.
func (a *app) noteContext(r *client.ContextReport) {
	a.Note("context: %s, %s, about %s", human.Count(r.Files, "file"), human.Size(r.Bytes), tokens(r.Tokens))
	broken := 0
	for _, n := range r.Notes {
		switch {
		case n.Kind == walk.NoteSecret:
			a.Note("warning: %s: %s; it was named, so the model can read it", env.OneLine(n.File, 60), human.Visible(n.Text))
		case n.Kind == walk.NoteBroken:
			if broken++; broken <= shownBroken {
				a.Note("warning: %s: %s", env.OneLine(n.File, 60), human.Visible(n.Text))
			}
		}
	}
	if broken > shownBroken {
		a.Note("warning: %s more were read as text; the result lists them", human.Count(broken-shownBroken, "file"))
	}
	a.noteConverted(r)
	a.noteSkipped(r)
}

// noteStored notes that the store keeps a copy of a large context.
func (a *app) noteStored(b *env.Backend, r *client.ContextReport) {
	switch {
	case r.Bytes < largeContext:
	case !r.New:
		a.Note("the store has this context already and keeps one copy of it (%s)", human.Size(r.Bytes))
	case b.Config.Store != "":
		a.Note("the database keeps a copy of the context (%s) as long as the tree", human.Size(r.Bytes))
	default:
		a.Note("%s keeps a copy of the context (%s) as long as the tree; `perdure gc` removes old trees", b.Config.Dir,
			human.Size(r.Bytes))
	}
}

// noteConverted notes the files whose text is not that of their bytes.
func (a *app) noteConverted(r *client.ContextReport) {
	var converted []string
	for _, n := range r.Notes {
		if n.Kind == walk.NoteConverted {
			converted = append(converted, fmt.Sprintf("%s (%s)", env.OneLine(n.File, 60), human.Visible(n.Text)))
		}
	}
	total := int64(len(converted)) + r.MoreNotes
	if total == 0 {
		return
	}
	most := min(len(converted), shownSkips)
	if total == shownSkips+1 && len(converted) > shownSkips {
		most = shownSkips + 1
	}
	text := strings.Join(converted[:most], ", ")
	if rest := total - int64(most); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	a.Note("converted to UTF-8 text: %s: %s", human.Count(total, "file"), text)
}

// noteSkipped notes what was skipped. Files of secrets are named first, and all of them that the
// list has room for.
func (a *app) noteSkipped(r *client.ContextReport) {
	skipped := int64(len(r.Skipped)) + r.MoreSkipped
	if skipped == 0 {
		return
	}
	a.Note("skipped: %s%s", human.Count(skipped, "file"), kindsText(r.SkippedKinds))
	const mostSecrets = 20
	secrets, others := 0, 0
	line := func(s *client.SkippedFile) {
		a.Note("  %s: %s", env.OneLine(s.File, 60), strings.TrimSpace(human.Visible(s.Why)))
	}
	for i := range r.Skipped {
		if r.Skipped[i].Kind == walk.KindSecret && secrets < mostSecrets {
			secrets++
			line(&r.Skipped[i])
		}
	}
	for i := range r.Skipped {
		rest := skipped - int64(secrets+others)
		if others == shownSkips && rest > 1 {
			a.Note("  … and %d more", rest)
			return
		}
		if r.Skipped[i].Kind != walk.KindSecret || secrets == mostSecrets {
			others++
			line(&r.Skipped[i])
		}
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
