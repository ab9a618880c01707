package rlm_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// seen notes the documents of each request.
type seen struct {
	model.Model
	mu   sync.Mutex // guards docs
	docs [][]model.Document
}

func (s *seen) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	s.mu.Lock()
	s.docs = append(s.docs, req.Documents)
	s.mu.Unlock()
	return s.Model.Generate(ctx, req)
}

// TestPartsOfTablesShowTheHeader as a document of its own: the lines of the rows
// keep their numbers, and the request stays within the size of a part.
func TestPartsOfTablesShowTheHeader(t *testing.T) {
	t.Parallel()
	const header = "id,name,amount\n"
	var table strings.Builder
	table.WriteString(header)
	for i := range 400 {
		table.WriteString(fmt.Sprintf("%d,\"name\nof %d\",%d.50\n", i, i, i))
	}
	m := &seen{Model: echo(t)}
	b := newBench(t, models{"mock:m": m})
	id := b.put(file{"small.csv", header + "1,a,2\n"}, file{"table.csv", table.String()})
	tree := b.launch("Sum up.", id, M{"model": "mock:m", "chunk_tokens": 400})
	if got, root := b.finish(tree.ID, 4); got.State != perdure.Completed {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	lines := strings.Split(table.String(), "\n")
	pieces := 0
	for _, docs := range m.docs {
		size := 0
		for _, d := range docs {
			size += len(d.Text)
		}
		if docs[0].File != "table.csv" || docs[0].StartLine == 1 && len(docs) == 1 {
			continue
		}
		pieces++
		if len(docs) != 2 || docs[0].StartLine != 1 || docs[0].Text != header || size > 1600 {
			t.Fatalf("a part of %d bytes begins with %+v", size, docs[0])
		}
		d := docs[1]
		if want := strings.Join(lines[d.StartLine-1:d.StartLine], ""); !strings.HasPrefix(d.Text, want+"\n") ||
			strings.Count(d.Text, `"`)%2 != 0 {
			t.Errorf("line %d is %q, the document begins with %q", d.StartLine, want, d.Text[:20])
		}
	}
	if pieces < 5 {
		t.Errorf("%d parts of the table begin within it", pieces)
	}
}

// TestOverlapInPercent is a share of a part.
func TestOverlapInPercent(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.put(file{"text.txt", numbered(1000)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 1000, "overlap_percent": 10})
	b.finish(tree.ID, 4)
	leaves := b.leaves(tree.ID)
	for i := 1; i < len(leaves); i++ {
		before := leaves[i-1].Context
		// nine lines are the most in a tenth of 4000 bytes
		if shared := before.Offset + before.Length - leaves[i].Context.Offset; shared != 9*42 {
			t.Errorf("part %d shares %d bytes with the one before", i, shared)
		}
	}
	for _, cfg := range []M{{"overlap_percent": 51}, {"overlap_percent": -1},
		{"overlap_percent": 10, "overlap_tokens": 10}} {
		if _, err := b.tryLaunch("Read.", id, cfg); err == nil || !strings.Contains(err.Error(), "overlap_percent") {
			t.Errorf("%v: %v", cfg, err)
		}
	}
}

// TestResultTellsWhatWasLeftOut with counts of all and a list of some.
func TestResultTellsWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.putSkipping(func(builder *pack.Builder) {
		builder.Skip("a.bin", "binary", "it is binary")
		for i := range 150 {
			builder.Skip(fmt.Sprintf("build/%d", i), "ignored", "it is ignored by line 1 of .gitignore")
		}
	}, file{"text.txt", numbered(1000)})
	for _, cfg := range []M{{"model": "mock:m", "chunk_tokens": 1000}, {"model": "mock:m"}} {
		tree := b.launch("Read.", id, cfg)
		_, root := b.finish(tree.ID, 4)
		got := data(t, &root).LeftOut
		if got == nil || got.Total != 151 || len(got.Files) != 100 ||
			!cmp.Equal(got.Kinds, map[string]int64{"binary": 1, "ignored": 150}) {
			t.Fatalf("left out: %+v", got)
		}
		if want := (rlm.SkippedFile{File: "a.bin", Kind: "binary", Why: "it is binary"}); got.Files[0] != want {
			t.Errorf("first is %+v", got.Files[0])
		}
		for _, leaf := range b.leaves(tree.ID) {
			if leaf.Parent != 0 && strings.Contains(string(leaf.Data), "left_out") {
				t.Error("a part's result tells it, too")
			}
		}
	}
	tree := b.launch("Read.", b.put(file{"text.txt", "x\n"}), M{"model": "mock:m"})
	if _, root := b.finish(tree.ID, 1); data(t, &root).LeftOut != nil {
		t.Error("nothing was left out")
	}
}
