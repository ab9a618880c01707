package notebook

import (
	"path"
	"sort"
	"strconv"
	"strings"
)

// The beginnings of the first line of a notebook's text, and of those of its cells.
const (
	notebookMark = "[notebook: "
	cellMark     = "[cell "
)

// Cells are the lines of a notebook's text at which its cells begin, in order.
type Cells []int

// IsName reports whether a file with a name may be a notebook.
func IsName(name string) bool { return strings.EqualFold(path.Ext(name), ".ipynb") }

// CellsOf returns the cells of a text that [Render] returned, none of another text.
func CellsOf(text string) (cells Cells) {
	if !strings.HasPrefix(text, notebookMark) {
		return nil
	}
	line := 0
	for l := range strings.Lines(text) {
		line++
		rest, ok := strings.CutPrefix(l, cellMark+strconv.Itoa(len(cells)+1)+": ")
		if ok && rest != "output]\n" {
			cells = append(cells, line)
		}
	}
	return cells
}

// Split divides a part of a notebook's text before each cell but the first.
func Split(text string) (parts []string) {
	from, at, isFirst := 0, 0, true
	for l := range strings.Lines(text) {
		if beginsCell(l) {
			if !isFirst {
				parts, from = append(parts, text[from:at]), at
			}
			isFirst = false
		}
		at += len(l)
	}
	return append(parts, text[from:])
}

// beginsCell reports whether a line is the first one of a cell.
func beginsCell(line string) bool {
	rest, ok := strings.CutPrefix(line, cellMark)
	number, kind, _ := strings.Cut(rest, ": ")
	_, err := strconv.Atoi(number)
	return ok && err == nil && kind != "output]\n" && strings.HasSuffix(kind, "]\n")
}

// At returns the number of the cell that a line is in, from 1; 0 for a line before the first.
func (c Cells) At(line int) int { return sort.SearchInts(c, line+1) }

// LinesBefore returns how many lines of a text are before its first cell or its first text.
func LinesBefore(text string) (n int) {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, notebookMark) {
			return n
		}
		n++
	}
	return 0
}
