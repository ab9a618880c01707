package notebook_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/corpus/notebook"
)

// TestCellsOfANotebook proves that each line of a notebook's text has the number of its cell, also if a
// cell prints what looks like the first line of another.
func TestCellsOfANotebook(t *testing.T) {
	t.Parallel()
	text, err := notebook.Render([]byte(`{"nbformat": 4, "cells": [
		{"cell_type": "markdown", "source": "# Title"},
		{"cell_type": "code", "source": "a = 1\n[cell 3: code]\nb = 2", "outputs": [{"text": "[cell 3: raw]\n7\n"}]},
		{"cell_type": "code", "source": ""},
		{"cell_type": "raw", "source": "last"}]}`))
	const want = "[notebook: 4 cells]\n\n[cell 1: markdown]\n# Title\n\n[cell 2: code]\na = 1\n [cell 3: code]\nb = 2\n" +
		"[cell 2: output]\n [cell 3: raw]\n7\n\n[cell 3: code]\n\n[cell 4: raw]\nlast\n"
	if err != nil || string(text) != want {
		t.Fatalf("%v %q", err, text)
	}
	cells := notebook.CellsOf(string(text))
	for line, number := range []int{0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4, 4} {
		if got := cells.At(line); got != number {
			t.Errorf("line %d is in cell %d, want %d", line, got, number)
		}
	}
	for _, other := range []string{"", "a\n[cell 1: code]\n", "[cell 1: code]\n",
		" [notebook: 1 cell]\n[cell 1: code]\n"} {
		if got := notebook.CellsOf(other).At(2); got != 0 {
			t.Errorf("%q has cell %d", other, got)
		}
	}
}

// A notebook is divided at its cells, and its text is whole in the parts.
func TestSplit(t *testing.T) {
	t.Parallel()
	text := "[notebook: 3 cells]\n\n[cell 1: markdown]\n# A\n\n[cell 2: code]\na\n" +
		"[cell 2: output]\n[cell x: no]\nb\n\n[cell 3: raw]\n"
	parts := notebook.Split(text)
	if len(parts) != 3 || strings.Join(parts, "") != text || !strings.HasPrefix(parts[1], "[cell 2: code]") {
		t.Errorf("%q is divided into %q", text, parts)
	}
	if parts := notebook.Split(""); len(parts) != 1 {
		t.Errorf("an empty text is divided into %q", parts)
	}
}
