package rlm

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/corpus/notebook"
	"github.com/perdure/perdure/model"
)

// notebooks holds where the cells of the notebooks begin that were cited.
type notebooks struct {
	mu    sync.Mutex
	cells map[string]notebook.Cells
}

// nameCells sets the cells of citations of notebooks.
func (r *run) nameCells(list []model.Citation) error {
	for i := range list {
		c := &list[i]
		if c.Cell > 0 || !notebook.IsName(c.File) {
			continue
		}
		cells, err := r.cellsOf(c.File)
		if err != nil {
			return err
		}
		c.Cell = cells.At(c.StartLine + notebook.LinesBefore(c.Text))
	}
	return nil
}

// cellsOf returns where the cells of a file begin, none if it is no notebook.
func (r *run) cellsOf(name string) (notebook.Cells, error) {
	r.notebooks.mu.Lock()
	defer r.notebooks.mu.Unlock()
	if found, ok := r.notebooks.cells[name]; ok {
		return found, nil
	}
	var found notebook.Cells
	if f, ok := r.reader.File(name); ok && f.Length <= notebook.MaxBytes {
		text := make([]byte, f.Length)
		if err := r.reader.ReadFull(text, f.Offset); err != nil {
			return nil, damaged(err)
		}
		found = notebook.CellsOf(string(text))
	}
	if r.notebooks.cells == nil {
		r.notebooks.cells = make(map[string]notebook.Cells)
	}
	r.notebooks.cells[strings.Clone(name)] = found
	return found, nil
}
