package metric

import (
	"bytes"
	"context"

	"github.com/perdure/perdure/internal/workspace"
)

const (
	// maxCounted is the maximum size of files whose lines are counted, maxCountedAll that
	// of all files of the first snapshot together.
	maxCounted    = 1 << 20
	maxCountedAll = 1 << 30
)

// counts reports whether the lines of a file are counted.
func counts(f *workspace.File) bool {
	return f != nil && f.Kind == workspace.KindFile && f.Size > 0 && f.Size <= maxCounted
}

// linesOf returns the number of lines of a text; 0 for binary content.
func linesOf(content []byte) int {
	const head = 8000 // the length in which git searches for binary content
	if bytes.IndexByte(content[:min(len(content), head)], 0) >= 0 {
		return 0
	}
	n := bytes.Count(content, []byte{'\n'})
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// firstSize counts the files and lines of the first snapshot, whose files are read once
// for this.
func (t *Meter) firstSize(ctx context.Context) error {
	files, _, err := t.Files.Files(ctx, t.Plan.First)
	if err != nil {
		return err
	}
	m := t.Plan
	var paths []string
	total := int64(0)
	for i := range files {
		if files[i].Kind == workspace.KindFile {
			m.Files++
		}
		if counts(&files[i]) {
			paths, total = append(paths, files[i].Path), total+files[i].Size
		}
	}
	if total > maxCountedAll {
		m.Off(NameLines, "the text files are larger than 1 GiB in total")
		return nil
	}
	lines, err := t.lines(ctx, t.Plan.First, paths)
	m.Lines = &lines
	return err
}

// lines counts the lines of some files of a snapshot.
func (t *Meter) lines(ctx context.Context, id workspace.ID, paths []string) (int, error) {
	n := 0
	if len(paths) == 0 {
		return 0, nil
	}
	err := t.Files.ReadFiles(ctx, id, paths, func(_ workspace.File, content []byte) error {
		n += linesOf(content)
		return nil
	})
	return n, err
}

// takeSize records the number of files and lines: those of the first snapshot, and the
// changes since.
func (t *Meter) takeSize(ctx context.Context, m *Metrics, now workspace.ID) error {
	plan := t.Plan
	if why := plan.Why[NameLines]; why != "" {
		m.miss(NameLines, why)
	}
	changes, err := t.Files.Diff(ctx, t.Plan.First, now)
	if err != nil {
		return err
	}
	files := plan.Files
	var gone, come []string
	for i := range changes {
		c := &changes[i]
		if c.Old != nil && c.Old.Kind == workspace.KindFile {
			files--
		}
		if c.New != nil && c.New.Kind == workspace.KindFile {
			files++
		}
		if c.Kind == workspace.Renamed {
			continue
		}
		if counts(c.Old) {
			gone = append(gone, c.Old.Path)
		}
		if counts(c.New) {
			come = append(come, c.New.Path)
		}
	}
	m.Files = &files
	if plan.Lines == nil {
		return nil
	}
	before, err := t.lines(ctx, t.Plan.First, gone)
	if err != nil {
		return err
	}
	after, err := t.lines(ctx, now, come)
	lines := *plan.Lines - before + after
	m.Lines = &lines
	return err
}
