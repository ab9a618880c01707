package extract_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

// sea are documents with passages of different worth, none of them nearly the same.
func sea() iter.Seq2[model.Document, error] {
	return func(yield func(model.Document, error) bool) {
		for i := range 2000 {
			text := fmt.Sprintf("# Day %d\n\nThe boats of harbour %d went out.\n\n", i, i%40) +
				strings.Repeat("The light of the harbour was seen.\n", i%5) +
				strings.Repeat(fmt.Sprintf("But%d nothing%d of%d note%d.\n", i, i, i, i), 130)
			if !yield(model.Document{File: fmt.Sprintf("day%d.md", i), StartLine: 1, Text: text}, nil) {
				return
			}
		}
	}
}

// The passages found in a context are those of a run over its parts, whatever the number
// of goroutines.
func TestFind(t *testing.T) {
	t.Parallel()
	const prompt = "When was the light of harbour 7 seen?"
	e := extract.New(extract.Config{})
	stats, err := e.Prepare(t.Context(), prompt, sea())
	if err != nil {
		t.Fatal(err)
	}
	var lists [][]model.Citation
	for d := range sea() {
		r, err := e.Generate(t.Context(), &model.Request{Prompt: prompt, Prepared: stats, Documents: []model.Document{d}})
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, r.Citations)
	}
	const most = 4 // of more than 20 batches of text, so that the best of all are kept apart
	want := extract.Merge(prompt, lists, most)
	if len(want) < most {
		t.Fatalf("only %d passages prove nothing", len(want))
	}
	for _, workers := range []int{1, 2, 7} {
		got, err := extract.New(extract.Config{Workers: workers}).Find(t.Context(), prompt, sea(), most)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %d workers (-want +got):\n%s", workers, diff)
		}
	}
}

func TestFindEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	e := extract.New(extract.Config{})
	_, err := e.Find(t.Context(), "x", func(yield func(model.Document, error) bool) { yield(model.Document{}, broken) }, 5)
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Find(ctx, "light", sea(), 5); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	none := func(func(model.Document, error) bool) {}
	if found, err := e.Find(t.Context(), "light", none, 5); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v in nothing", found, err)
	}
}
