package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/linediff"
	"github.com/perdure/perdure/internal/workspace"
)

// maxDiff is how much of an iteration's changes a gate shows, in bytes; of the
// last file it may be more.
const maxDiff = 32 << 10

// diff shows what an iteration changed: files with a regression first, each as a
// unified diff.
func (r *run) diff(ctx context.Context, out *Outcome) string {
	changes, err := r.files.Diff(ctx, out.Before, out.After)
	if err != nil {
		return "the changes cannot be read: " + err.Error()
	}
	var first []string
	for _, g := range out.Regressions {
		first = append(first, g.Files...)
	}
	slices.SortStableFunc(changes, func(a, b workspace.Change) int { return rank(first, &a) - rank(first, &b) })
	var b strings.Builder
	for i := range changes {
		if b.Len() > maxDiff {
			fmt.Fprintf(&b, "and %s\n", counted(len(changes)-i, "more file", "more files"))
			break
		}
		b.WriteString(linediff.Unified(r.side(ctx, out.Before, changes[i].Old), r.side(ctx, out.After, changes[i].New), linediff.Config{}))
	}
	return b.String()
}

func rank(first []string, c *workspace.Change) int {
	if slices.Contains(first, c.Path) || c.From != "" && slices.Contains(first, c.From) {
		return 0
	}
	return 1
}

// side is a file before or after.
func (r *run) side(ctx context.Context, id workspace.ID, f *workspace.File) *linediff.File {
	if f == nil {
		return nil
	}
	s := &linediff.File{Path: f.Path, Mode: f.Mode, Size: f.Size}
	text, err := r.content(ctx, id, f)
	switch {
	case f.Kind == workspace.KindLink:
		s.Link, s.Text, s.Size = true, []byte(f.Target), int64(len(f.Target))
	case err != nil:
		s.Unread = err.Error()
	case text == nil && f.Size > 0:
		s.Unread = "the file is too large"
	default:
		s.Text = text
	}
	return s
}
