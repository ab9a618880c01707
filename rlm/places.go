package rlm

import (
	"context"
	"io"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/rlm/internal/fanout"
)

// Place is a run of lines of a file of the context, counted from 1 and both included.
type Place struct {
	File      string `json:"file"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
}

// Parts finds what of its context the tasks of a run read.
type Parts struct {
	reader *pack.Reader
	blob   io.Closer
}

// OpenParts opens the context of a run by its root task. Close it after use. Without a
// context no task has places.
func OpenParts(ctx context.Context, s *perdure.Store, root *perdure.Task) (*Parts, error) {
	n, err := nodeOf(root)
	if err != nil || root.Context.Hash == "" || n.Manifest == "" {
		return &Parts{}, err
	}
	e := &Executor{cfg: ExecutorConfig{Store: s}}
	p := &Parts{}
	p.reader, p.blob, err = e.openPack(ctx, root.Context.Hash, n.Manifest)
	return p, err
}

// Close closes the context.
func (p *Parts) Close() error {
	if p.blob == nil {
		return nil
	}
	return p.blob.Close()
}

// maxPlaces bounds the places of a task.
const maxPlaces = 20

// Of returns the files and lines that a task is about, at most 20 files, and how many
// files more there are.
func (p *Parts) Of(t *perdure.Task) (places []Place, more int, err error) {
	if p.reader == nil {
		return nil, 0, nil
	}
	n, err := nodeOf(t)
	if err != nil {
		return nil, 0, err
	}
	read := n.Read
	if len(read) == 0 && t.Context.Length > 0 {
		read = chunks{fanout.Chunk{Off: t.Context.Offset, Length: t.Context.Length}}
	}
	for _, c := range read {
		found, rest, err := p.reader.Places(c.Off, c.Length, maxPlaces-len(places))
		if err != nil {
			return nil, 0, damaged(err)
		}
		more += rest
		for _, f := range found {
			places = append(places, Place{File: f.File, StartLine: f.Start, EndLine: f.End})
		}
	}
	return places, more, nil
}
