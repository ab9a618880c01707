package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
)

const (
	// maxShown limits the diff of two snapshots, in bytes; that of the last file may exceed
	// it.
	maxShown = 32 << 10
	// maxFile is the size of the largest file that is compared, in bytes.
	maxFile = 4 << 20
)

// Snapshots returns the diff of two snapshots of a workspace, each file as [Unified] formats
// it: the paths in first before the others.
func Snapshots(ctx context.Context, w *workspace.Workspace, before, after workspace.ID, first []string) string {
	changes, err := w.Diff(ctx, before, after)
	if err != nil {
		return "the changes cannot be read: " + err.Error()
	}
	slices.SortStableFunc(changes, func(a, b workspace.Change) int { return rank(first, &a) - rank(first, &b) })
	var b strings.Builder
	for i := range changes {
		if b.Len() > maxShown {
			fmt.Fprintf(&b, "… and %d more files\n", len(changes)-i)
			break
		}
		b.WriteString(Unified(side(ctx, w, before, changes[i].Old), side(ctx, w, after, changes[i].New), Config{}))
	}
	return b.String()
}

func rank(first []string, c *workspace.Change) int {
	if slices.Contains(first, c.Path) || c.From != "" && slices.Contains(first, c.From) {
		return 0
	}
	return 1
}

// side returns a file of a snapshot with its content; nil for none.
func side(ctx context.Context, w *workspace.Workspace, id workspace.ID, f *workspace.File) *File {
	if f == nil {
		return nil
	}
	s := &File{Path: f.Path, Mode: f.Mode, Size: f.Size}
	switch {
	case f.Kind == workspace.KindLink:
		s.Link, s.Text, s.Size = true, []byte(f.Target), int64(len(f.Target))
	case f.Kind != workspace.KindFile:
	case f.Size > maxFile:
		s.Unread = "larger than " + human.Size(maxFile)
	default:
		text, err := w.ReadFile(ctx, id, f.Path)
		if s.Text = text; err != nil {
			s.Unread = err.Error()
		}
	}
	return s
}
