package loop

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/perdure/perdure/internal/coverage"
	"github.com/perdure/perdure/internal/workspace"
)

const (
	// maxDiff is how much of an iteration's changes a gate shows, in bytes, and
	// maxDiffLines how many lines of one file.
	maxDiff      = 16 << 10
	maxDiffLines = 40
)

// diff shows what an iteration changed: files with a regression first, each with
// the lines that went and came.
func (r *run) diff(ctx context.Context, out *Outcome) string {
	changes, err := r.files.Diff(ctx, out.Before, out.After)
	if err != nil {
		return "the changes cannot be read: " + err.Error()
	}
	var first []string
	for _, g := range out.Regressions {
		first = append(first, g.Files...)
	}
	slices.SortStableFunc(changes, func(a, b workspace.Change) int { return rank(first, a.Path) - rank(first, b.Path) })
	var b strings.Builder
	for i := range changes {
		if b.Len() > maxDiff {
			fmt.Fprintf(&b, "and %s\n", counted(len(changes)-i, "more file", "more files"))
			break
		}
		b.WriteString(r.fileDiff(ctx, out, &changes[i]))
	}
	return b.String()
}

func rank(first []string, path string) int {
	if slices.Contains(first, path) {
		return 0
	}
	return 1
}

func (r *run) fileDiff(ctx context.Context, out *Outcome, c *workspace.Change) string {
	head := fmt.Sprintf("%s %s\n", c.Kind, c.Path)
	if c.Kind == workspace.Renamed {
		head = fmt.Sprintf("%s %s to %s\n", c.Kind, c.From, c.Path)
	}
	before, err := r.content(ctx, out.Before, c.Old)
	if err != nil {
		return head
	}
	after, err := r.content(ctx, out.After, c.New)
	if err != nil || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return head
	}
	return head + changedLines(before, after)
}

// changedLines lists the lines that went, then those that came. Lines without a
// letter or digit, of which every text has many, are left out.
func changedLines(before, after []byte) string {
	follow := coverage.FollowLines(before, after)
	stays := make(map[int]bool)
	var b strings.Builder
	shown := 0
	show := func(sign string, line []byte) {
		if shown++; shown <= maxDiffLines {
			b.WriteString("  " + sign + " " + clip(strings.ToValidUTF8(strings.TrimRight(string(line), "\r"), "\uFFFD"), 200) + "\n")
		}
	}
	for i, line := range bytes.Split(before, []byte("\n")) {
		if now, ok := follow.To(i + 1); ok {
			stays[now] = true
		} else if says(line) {
			show("-", line)
		}
	}
	for i, line := range bytes.Split(after, []byte("\n")) {
		if !stays[i+1] && says(line) {
			show("+", line)
		}
	}
	if shown > maxDiffLines {
		fmt.Fprintf(&b, "  and %s\n", counted(shown-maxDiffLines, "more line", "more lines"))
	}
	return b.String()
}

// says tells whether a line has a letter or digit.
func says(line []byte) bool {
	return bytes.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
