package chunk

import (
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
)

// WithHeader puts the row that names the columns, if it is no longer than most
// bytes, before the documents of a chunk that begins within a table. It is a
// document of its own: so a model knows the columns, and the numbers of the lines
// stay true.
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
