package rlm

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/perdure/perdure/internal/corpus/index"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/textindex"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm/internal/fanout"
)

// leastStoredIndex is the size of a context from which on its index is kept: that of a smaller one
// is built in less time than a file is found.
const leastStoredIndex = 1 << 20

// indexOf returns the index of a run's context: the stored one, or a new one.
func (e *Executor) indexOf(ctx context.Context, r *run) (*index.Index, error) {
	select {
	case r.indexing <- struct{}{}:
		defer func() { <-r.indexing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.index != nil {
		return r.index, nil
	}
	var err error
	if r.reader.Manifest().Bytes >= leastStoredIndex {
		r.index, err = e.storedIndex(ctx, r.root.Context.Hash, r.reader)
	} else {
		r.index, err = index.BuildInMemory(ctx, r.reader)
	}
	if err != nil && ctx.Err() == nil {
		err = damaged(err)
	}
	return r.index, err
}

// storedIndex opens the index next to a context, or builds it there. Where that fails, it is built
// in memory.
func (e *Executor) storedIndex(ctx context.Context, hash string, r *pack.Reader) (*index.Index, error) {
	store := e.cfg.Store
	if b, err := store.OpenIndex(ctx, hash); err == nil {
		x, err := index.Open(r, b, b.Size())
		if err == nil {
			return x, nil
		}
		e.cfg.Logger.Info("index is built again", "context", hash, "error", err)
	}
	e.cfg.Logger.Info("index is being built", "context", hash, "bytes", r.Manifest().Bytes)
	build := e.builds.begin(r.Manifest().Bytes)
	defer e.builds.end(build)
	b, err := store.PutIndex(ctx, hash, func(w io.Writer) error { return index.Write(ctx, r, w, &build.done) })
	if err == nil {
		var x *index.Index
		if x, err = index.Open(r, b, b.Size()); err == nil {
			return x, nil
		}
	}
	if ctx.Err() != nil {
		return nil, err
	}
	e.cfg.Logger.Warn("index is kept in memory", "context", hash, "error", err)
	return index.BuildInMemory(ctx, r)
}

// find returns the best passages of the whole context.
func (a *attempt) find(ctx context.Context, query string, n int) ([]model.Citation, error) {
	return a.findIn(ctx, query, n, nil)
}

// findIn returns the best passages that begin in parts of the context, in order; nil stands for all
// of it.
func (a *attempt) findIn(ctx context.Context, query string, n int, parts chunks) ([]model.Citation, error) {
	x, err := a.e.indexOf(ctx, a.run)
	if err != nil {
		return nil, err
	}
	found, err := x.Find(query, n, ranges(parts))
	if err != nil && ctx.Err() == nil {
		return nil, damaged(err)
	}
	if err == nil {
		err = a.run.nameCells(found)
	}
	return found, err
}

// ranges returns the ranges of parts in order.
func ranges(parts chunks) []textindex.Range {
	var out []textindex.Range
	for _, c := range parts {
		out = append(out, textindex.Range{From: c.Off, To: c.Off + c.Length})
	}
	slices.SortFunc(out, func(a, b textindex.Range) int { return cmp.Compare(a.From, b.From) })
	return out
}

// places are the documents of a part without their text.
func (a *attempt) places(c fanout.Chunk) ([]model.Document, error) {
	list, _, err := a.run.reader.Places(c.Off, c.Length, maxCitations)
	docs := make([]model.Document, len(list))
	for i, p := range list {
		docs[i] = model.Document{File: p.File, StartLine: p.Start}
	}
	return docs, err
}

// ranker answers a task with the best passages of what it reads, by the index of the context.
type ranker struct{ a *attempt }

var _ model.Model = (*ranker)(nil)

// Generate returns the passages for the prompt.
func (r *ranker) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	found, err := r.a.findIn(ctx, req.Prompt, rankedKept, r.a.reads())
	if ctx.Err() != nil {
		return nil, model.Canceled(ctx)
	}
	if err != nil {
		return nil, err
	}
	return extract.Response(req, found), nil
}
