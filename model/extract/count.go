package extract

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/perdure/perdure/model"
)

// batchBytes is about how much text a worker is handed at a time. Longer
// documents are cut, so that one large file keeps all workers busy.
const batchBytes = 512 << 10

// count computes the statistics of a context with several goroutines. At most
// two batches for each of them are in memory.
func count(
	ctx context.Context, q *query, docs iter.Seq2[model.Document, error], workers int,
) (*counts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan []model.Document, workers)
	parts := make([]counts, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			s := newScanner(q)
			for batch := range batches {
				for _, d := range batch {
					if ctx.Err() == nil {
						s.each(d, parts[i].visit)
					}
				}
			}
		})
	}
	err := feed(ctx, docs, batches)
	if err != nil {
		cancel() // What is still waiting need not be read.
	}
	close(batches)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	total := &counts{}
	for i := range parts {
		total.add(&parts[i])
	}
	return total, ctx.Err()
}

// feed hands the documents out in batches.
func feed(ctx context.Context, docs iter.Seq2[model.Document, error], batches chan<- []model.Document) error {
	var batch []model.Document
	size := 0
	send := func() error {
		select {
		case batches <- batch:
			batch, size = nil, 0
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for doc, err := range docs {
		if err != nil {
			return err
		}
		for d := range blocks(doc) {
			batch = append(batch, d)
			if size += len(d.Text); size < batchBytes {
				continue
			}
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// blocks cuts a long document after newlines.
func blocks(d model.Document) iter.Seq[model.Document] {
	return func(yield func(model.Document) bool) {
		for len(d.Text) > 2*batchBytes {
			n := strings.IndexByte(d.Text[batchBytes:], '\n')
			if n < 0 {
				break
			}
			n += batchBytes + 1
			head := d
			head.Text = d.Text[:n]
			if !yield(head) {
				return
			}
			d.StartLine += strings.Count(head.Text, "\n")
			d.Text = d.Text[n:]
		}
		yield(d)
	}
}
