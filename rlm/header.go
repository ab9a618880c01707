package rlm

import (
	"github.com/perdure/perdure/internal/split"
	"github.com/perdure/perdure/model"
)

// header returns the row that names the columns when the documents of a part
// begin within a table, as a document of its own: so a model knows the columns,
// and the numbers of the lines stay true. Empty where there is none, or none
// that the parts have room for.
func (r *run) header(docs []model.Document) ([]model.Document, error) {
	if r.plan.Head == 0 || len(docs) == 0 || docs[0].StartLine <= 1 {
		return nil, nil
	}
	for _, f := range r.reader.Manifest().Files {
		if f.Name != docs[0].File {
			continue
		}
		length, err := split.Header(r.reader, f)
		if err != nil || length == 0 || length > r.plan.Head {
			return nil, err
		}
		return r.reader.Documents(f.Offset, length)
	}
	return nil, nil
}
