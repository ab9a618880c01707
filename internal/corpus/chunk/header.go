package chunk

import (
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
)

// WithHeader adds the row that names the columns, if it has at most most bytes, before the
// documents of a chunk that begins within a table. It is a document of its own, so that a
// model has the columns and the line numbers stay correct.
func WithHeader(r *pack.Reader, docs []model.Document, most int64) ([]model.Document, error) {
	if most == 0 || len(docs) == 0 || docs[0].StartLine <= 1 {
		return docs, nil
	}
	f, ok := r.File(docs[0].File)
	if !ok {
		return docs, nil
	}
	_, length, err := formOf(r, f)
	if err != nil || length == 0 || length > most {
		return docs, err
	}
	header, err := r.Documents(f.Offset, length)
	return append(header, docs...), err
}
