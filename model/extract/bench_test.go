package extract_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

const benchPrompt = "How does the HTTP client decide whether to follow a redirect, and when does it turn a POST " +
	"into a GET?"

// sample returns about size bytes of the corpus in chunks.
func sample(b *testing.B, size int) (docs []model.Document, n int) {
	b.Helper()
	all := corpus(b, func(string) bool { return true })
	for i := 0; n < size && i < len(all); i++ {
		docs = append(docs, all[i])
		n += len(all[i].Text)
	}
	return docs, n
}

func BenchmarkPrepare(b *testing.B) {
	docs, n := sample(b, 32<<20)
	for _, workers := range []int{1, 2} {
		b.Run(map[int]string{1: "1", 2: "2"}[workers], func(b *testing.B) {
			e := extract.New(extract.Config{Workers: workers})
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Prepare(b.Context(), benchPrompt, each(docs)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGenerate(b *testing.B) {
	docs, n := sample(b, 32<<20)
	e := extract.New(extract.Config{})
	var prepared json.RawMessage
	prepared, err := e.Prepare(b.Context(), benchPrompt, each(docs))
	if err != nil {
		b.Fatal(err)
	}
	chunks := chunked(docs, 256<<10)
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		for _, chunk := range chunks {
			req := &model.Request{Prompt: benchPrompt, Documents: chunk, Prepared: prepared}
			if _, err := e.Generate(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkFind is one search of planner search.
func BenchmarkFind(b *testing.B) {
	docs, n := sample(b, 100_000_000)
	e := extract.New(extract.Config{})
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Find(b.Context(), benchPrompt, each(docs), 8); err != nil {
			b.Fatal(err)
		}
	}
}
