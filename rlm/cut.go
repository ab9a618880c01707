package rlm

import (
	"fmt"

	"github.com/perdure/perdure/internal/corpus/chunk"
	"github.com/perdure/perdure/rlm/internal/fanout"
)

// bytesPerToken is the estimate of model.EstimateTokens.
const bytesPerToken = 4

// cut splits a part of the context, all of it when that is empty, into parts of at
// most size tokens, files with the frames a model sees around them included, but
// for that of the first.
func (p *planning) cut(size int64, of fanout.Chunk) (chunks, error) {
	overlap := p.cfg.OverlapTokens
	if p.cfg.OverlapPercent > 0 {
		overlap = int(size) * p.cfg.OverlapPercent / 100
	}
	program := p.cfg.hasMarkedParts() && isProgram(p.models[1].name)
	if overlap == 0 && (p.models[1].ranked || program) {
		overlap = -1 // passages are found whole, and none twice; a program may count
	}
	found, err := chunk.Pack(p.reader, chunk.Config{ChunkTokens: int(size), OverlapTokens: min(overlap, int(size)/2),
		PerFile: p.cfg.Batch, Unframed: p.cfg.readsText(),
		From: of.Off, To: of.End()})
	if err != nil {
		return nil, damaged(err)
	}
	parts := make(chunks, len(found))
	for i, c := range found {
		parts[i] = fanout.Chunk{Off: c.Offset, Length: c.Length}
		p.head = max(p.head, c.Header)
	}
	return parts, nil
}

// assign gives each file of a batch its parts.
func (p *planning) assign(root *node) error {
	files := p.reader.Manifest().Files
	root.Files = make([]int, len(files))
	at := 0
	for i, f := range files {
		for at < len(root.Chunks) && root.Chunks[at].Off < f.End() {
			if root.Chunks[at].Off < f.Offset || root.Chunks[at].End() > f.End() {
				return fmt.Errorf("split %q: part %d goes beyond the file", f.Name, at)
			}
			root.Files[i]++
			at++
		}
	}
	return nil
}

// checkSize refuses a tree of more tasks than allowed.
func (p *planning) checkSize(root *node, tokens, size int64) error {
	tasks, levels := int64(1), 0
	if p.cfg.Batch {
		for _, n := range root.Files {
			t, l := fanout.Tasks(n, p.cfg.MaxChildren)
			tasks, levels = tasks+t, max(levels, l+1)
		}
	} else {
		tasks, levels = fanout.Tasks(len(root.Chunks), p.cfg.MaxChildren)
	}
	if tasks <= p.cfg.MaxNodes {
		p.e.cfg.Logger.Debug("tree is planned", "parts", len(root.Chunks), "tasks", tasks, "levels", levels)
		return nil
	}
	larger := tokens/max(p.cfg.MaxNodes*8/10, 1) + 1
	return invalid(fmt.Sprintf("the context (about %d tokens) makes %d parts of at most %d tokens and %d tasks, more "+
		"than max_nodes, %d",
		tokens, len(root.Chunks), size, tasks, p.cfg.MaxNodes),
		fmt.Sprintf("raise --max-nodes to %d, or --chunk-tokens to about %d", tasks,
			max(larger, size*tasks/p.cfg.MaxNodes+1)))
}
