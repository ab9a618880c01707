package diff_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/workspace/diff"
)

func file(text string) *diff.File {
	return &diff.File{Path: "a.go", Mode: 0o644, Size: int64(len(text)), Text: []byte(text)}
}

// numbered returns numbered lines, some of them changed.
func numbered(n int, change map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if text, changed := change[i]; changed {
			b.WriteString(text)
			continue
		}
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

func TestUnified(t *testing.T) {
	t.Parallel()
	const head = "--- a/a.go\n+++ b/a.go\n"
	tests := []struct {
		name          string
		before, after *diff.File
		cfg           diff.Config
		want          string
	}{
		{"same", file("a\n"), file("a\n"), diff.Config{}, head},
		{"changed", file(numbered(20, nil)), file(numbered(20, map[int]string{5: "five\n", 17: ""})), diff.Config{},
			head + "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -14,7 +14,6 @@\n 14\n 15\n 16\n-17\n 18\n 19\n 20\n"},
		{"near each other", file(numbered(9, nil)), file(numbered(9, map[int]string{2: "", 7: "7\nseven\n"})),
			diff.Config{},
			head + "@@ -1,9 +1,9 @@\n 1\n-2\n 3\n 4\n 5\n 6\n 7\n+seven\n 8\n 9\n"},
		{"added", nil, file("a\nb\n"), diff.Config{}, "--- /dev/null\n+++ b/a.go\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"deleted", file("a\n"), nil, diff.Config{}, "--- a/a.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"},
		{"an empty one", nil, file(""), diff.Config{}, "--- /dev/null\n+++ b/a.go\n"},
		{"no line end", file("a"), file("a\n"), diff.Config{},
			head + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"renamed", &diff.File{Path: "old\n.go", Mode: 0o644, Text: []byte("a")}, file("a"), diff.Config{},
			"--- \"a/old\\n.go\"\n+++ b/a.go\nrename from \"old\\n.go\"\nrename to a.go\n"},
		{"mode", file("a"), &diff.File{Path: "a.go", Mode: 0o755, Text: []byte("a")}, diff.Config{},
			head + "old mode 644\nnew mode 755\n"},
		{"link", file("a\n"), &diff.File{Path: "a.go", Link: true, Text: []byte("b")}, diff.Config{},
			head + "it became a symbolic link\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"},
		{"binary", file("a\x00"), file("b"), diff.Config{}, head + "binary files differ (2 bytes, then 1 bytes)\n"},
		{"not read", &diff.File{Path: "a.go", Mode: 0o644, Size: 9, Unread: "it is too large"}, file("b"),
			diff.Config{},
			head + "the content is not shown: it is too large (9 bytes, then 1 bytes)\n"},
		{"too many lines", file(strings.Repeat("\n", 200_001)), nil, diff.Config{},
			"--- a/a.go\n+++ /dev/null\nthe content is not shown: it has more than 200000 lines (200001 bytes, then nothing)\n"},
		{"a long line", file("a\n"), file(strings.Repeat("x", 50) + "\n"), diff.Config{LineBytes: 10},
			head + "@@ -1 +1 @@\n-a\n+xxxxxxxxxx… (40 more bytes)\n"},
		{"many lines", nil, file(numbered(100, nil)), diff.Config{Lines: 2},
			"--- /dev/null\n+++ b/a.go\n@@ -0,0 +1,100 @@\n+1\n+2\n… and 98 more lines\n"},
		{"not text", file("a\n"), file("b\xff\n"), diff.Config{}, head + "@@ -1 +1 @@\n-a\n+b\uFFFD\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, diff.Unified(tt.before, tt.after, tt.cfg)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// whole has no limits.
func whole() diff.Config { return diff.Config{Lines: 1 << 30, LineBytes: 1 << 30} }

// applied applies a diff to a text; it fails if the diff does not match.
func applied(t interface{ Fatalf(string, ...any) }, before, diff string) string {
	old := strings.SplitAfter(before, "\n")
	var b strings.Builder
	at := 0
	list := strings.SplitAfter(diff, "\n")
	for i := 2; i < len(list); i++ {
		line := list[i]
		if i+1 < len(list) && strings.HasPrefix(list[i+1], `\`) {
			line = strings.TrimSuffix(line, "\n")
		}
		switch {
		case strings.HasPrefix(line, "@@ -"):
			var from, n int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d", &from, &n); err != nil {
				if _, err := fmt.Sscanf(line, "@@ -%d", &from); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				n = 1
			}
			if n > 0 {
				from--
			}
			for ; at < from; at++ {
				b.WriteString(old[at])
			}
		case line == "" || line[0] == '\\':
		case line[0] == '+':
			b.WriteString(line[1:])
		default:
			if old[at] != line[1:] {
				t.Fatalf("line %d is %q, the diff has %q", at+1, old[at], line)
			}
			if line[0] == ' ' {
				b.WriteString(old[at])
			}
			at++
		}
	}
	return b.String() + strings.Join(old[at:], "")
}

// A diff applied to the old text results in the new one, and is the shortest.
func TestUnifiedProperties(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "d d\n"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(line, 0, 30).Draw(t, "before"), rapid.SliceOfN(line, 0, 30).Draw(t, "after")
		before, after := strings.Join(a, "")+rapid.SampledFrom([]string{"", "end"}).Draw(t, "end"), strings.Join(b, "")
		unified := diff.Unified(file(before), file(after), whole())
		if got := applied(t, before, unified); got != after {
			t.Fatalf("gives %q, want %q:\n%s", got, after, unified)
		}
		changed := strings.Count(unified, "\n-") + strings.Count(unified, "\n+") - 1 // of the head
		if want := shortest(strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")); changed != want {
			t.Fatalf("%d lines changed, %d are enough:\n%s", changed, want, unified)
		}
	})
}

// shortest returns the number of deleted and added lines by the longest common subsequence.
func shortest(a, b []string) int {
	trim := func(list []string) []string {
		if n := len(list); n > 0 && list[n-1] == "" {
			return list[:n-1]
		}
		return list
	}
	a, b = trim(a), trim(b)
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j], above)
			}
			diagonal = above
		}
	}
	return len(a) + len(b) - 2*row[len(b)]
}

// Beyond the limit of edits the diff is longer, and still correct.
func TestUnifiedVeryDifferent(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	a.WriteString("begin\n")
	b.WriteString("begin\n")
	for i := range 5000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i*7)
	}
	unified := diff.Unified(file(a.String()), file(b.String()), whole())
	if got := applied(t, a.String(), unified); got != b.String() {
		t.Error("the diff does not give the text")
	}
}

// The tool patch applies a diff.
func TestPatchTakesIt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	before, after := numbered(60, nil), numbered(60, map[int]string{3: "three\n", 30: "", 58: "58\n58b\n"})
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff.Unified(file(before), file(after), whole()))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(dir, "a.go"))
	if err != nil || string(got) != after {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzUnified(f *testing.F) {
	f.Add([]byte("a\nb\nc"), []byte("b\nc\nd\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		unified := diff.Unified(file(string(before)), file(string(after)), diff.Config{Lines: 20, LineBytes: 20})
		if n := strings.Count(unified, "\n"); n > 20*4+5 {
			t.Fatalf("%d lines", n)
		}
		if bytes.ContainsAny(before, "\x00\\\xef") || bytes.ContainsAny(after, "\x00\\\xef") ||
			!bytes.Equal(bytes.ToValidUTF8(before, nil), before) || !bytes.Equal(bytes.ToValidUTF8(after, nil), after) {
			return // shown otherwise
		}
		unified = diff.Unified(file(string(before)), file(string(after)), whole())
		if got := applied(t, string(before), unified); got != string(after) {
			t.Fatalf("gives %q, want %q", got, after)
		}
	})
}
