package diff_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/workspace/diff"
)

const twoTests = `package p

func TestA(t *testing.T) {
	a()
}

func TestB(t *testing.T) {
	b()
}

func TestC(t *testing.T) {
	c()
}
`

// A removed function begins with its name, also where the bracket of the one before is the
// same line.
func TestExcerptBeginsAtTheLine(t *testing.T) {
	t.Parallel()
	after := strings.Replace(twoTests, "func TestB(t *testing.T) {\n\tb()\n}\n\n", "", 1)
	got := diff.Compare([]byte(twoTests), []byte(after)).Excerpt(diff.Line{Number: 7, Old: true})
	const want = "@@ -6,6 +6,2 @@\n \n-func TestB(t *testing.T) {\n-\tb()\n-}\n-\n func TestC(t *testing.T) {\n"
	if got != want {
		t.Errorf("%s", got)
	}
}

// The next change is shown if the line itself did not change, and nothing far away.
func TestExcerptOfAnUnchangedLine(t *testing.T) {
	t.Parallel()
	was := "if err != nil {\n\treturn err\n}\n" + strings.Repeat("x\n", 100) + "end\n"
	c := diff.Compare([]byte(was), []byte(strings.Replace(was, "return err", "return nil", 1)))
	for _, old := range []bool{true, false} {
		const want = "@@ -1,3 +1,3 @@\n if err != nil {\n-\treturn err\n+\treturn nil\n }\n"
		if got := c.Excerpt(diff.Line{Number: 1, Old: old}); got != want {
			t.Errorf("%s", got)
		}
		if got := c.Excerpt(diff.Line{Number: 100, Old: old}); got != "" {
			t.Errorf("%s", got)
		}
		if at := c.Near(diff.Line{Number: 4, Old: old}); at != (diff.Line{Number: 2}) {
			t.Errorf("near line 4: %v", at)
		}
		if at := c.Near(diff.Line{Number: 100, Old: old}); at.Number != 0 {
			t.Errorf("near line 100: %v", at)
		}
	}
	if at := c.FirstIn(1, 10); at != (diff.Line{Number: 2}) {
		t.Errorf("first change %v", at)
	}
	if at := c.FirstIn(3, 10); at.Number != 0 {
		t.Errorf("first change %v", at)
	}
	if c.Same(2) || !c.Same(1) || !c.Same(3) {
		t.Error("lines that are the same")
	}
}

// Changes near each other are shown one by one.
func TestExcerptOfOneChange(t *testing.T) {
	t.Parallel()
	c := diff.Compare([]byte("a\nb\nc\nd\ne\n"), []byte("a\nB\nc\ne\n"))
	for n, want := range map[int]string{2: "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", 4: "@@ -3,3 +3,2 @@\n c\n-d\n e\n"} {
		if got := c.Excerpt(diff.Line{Number: n, Old: true}); got != want {
			t.Errorf("line %d: %s", n, got)
		}
	}
	if at := c.First(); at != (diff.Line{Number: 2}) {
		t.Errorf("first change %v", at)
	}
	for at, want := range map[diff.Line]string{{Number: 2}: "-b\n+B\n", {Number: 2, Old: true}: "-b\n+B\n",
		{Number: 3}:            "",
		{Number: 4, Old: true}: "-d\n"} {
		if got := c.ChangedAt(at); got != want {
			t.Errorf("changed at %v: %q, want %q", at, got, want)
		}
	}
	if at := diff.Compare([]byte("a\nb\n"), []byte("a\n")).First(); at != (diff.Line{Number: 2, Old: true}) {
		t.Errorf("first removal %v", at)
	}
	c = diff.Compare([]byte("x\nf\ny\nz\n"), []byte("f\nz\n"))
	if at := c.FirstIn(1, 9); at != (diff.Line{Number: 3, Old: true}) {
		t.Errorf("first change after line 1: %v", at)
	}
	if at := c.First(); at != (diff.Line{Number: 1, Old: true}) {
		t.Errorf("first change %v", at)
	}
	if at := diff.Compare([]byte("a"), []byte("a")).First(); at.Number != 0 {
		t.Errorf("no change %v", at)
	}
}

// A long change is cut around the line.
func TestExcerptIsShort(t *testing.T) {
	t.Parallel()
	var was strings.Builder
	for range 50 {
		was.WriteString("a\n")
	}
	was.WriteString("here " + strings.Repeat("é", 200) + "\n")
	for range 50 {
		was.WriteString("b\n")
	}
	got := diff.Compare([]byte(was.String()), nil).Excerpt(diff.Line{Number: 51, Old: true})
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 16 || lines[0] != "@@ -50,14 +0,0 @@" || lines[1] != "-a" ||
		!strings.HasPrefix(lines[2], "-here é") || len(lines[2]) > 180 || lines[15] != "… 38 more lines" {
		t.Errorf("%d lines: %s", len(lines), got)
	}
}

// Changed lines are the same wherever they are.
func TestChanged(t *testing.T) {
	t.Parallel()
	a := diff.Compare([]byte("x\none\ny\n"), []byte("x\ntwo\ny\n")).Changed()
	b := diff.Compare([]byte("new\nx\n\tone\ny\n"), []byte("new\nx\n\ttwo\ny\n")).Changed()
	if a != b || a != "-one\n+two\n" {
		t.Errorf("%q and %q", a, b)
	}
	if diff.Compare([]byte("a\x00"), nil) != nil {
		t.Error("a binary text was compared")
	}
}

// The excerpt of a change of a whole file costs about as much as that of fewer lines: what
// it allocates does not grow with the lines. The runtime adds a few allocations of its own.
func TestExcerptOfALongChange(t *testing.T) {
	allocations := func(lines int) float64 {
		c := diff.Compare([]byte(strings.Repeat("before\n", lines)), []byte(strings.Repeat("after\n", lines)))
		return testing.AllocsPerRun(10, func() { c.Excerpt(diff.Line{Number: lines / 2}) })
	}
	if few, many := allocations(10_000), allocations(90_000); many > 2*few {
		t.Errorf("%v allocations for 10,000 lines, %v for 90,000", few, many)
	}
}
