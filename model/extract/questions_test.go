package extract_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

type question struct {
	Question string  `json:"question"`
	Places   []place `json:"places"`
}

type place struct {
	File   string `json:"file"`
	Anchor string `json:"anchor"`
}

// sources returns the folder with the toolchain's own source.
func sources(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("run go env GOROOT: %v", err)
	}
	root, err := filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(out)), "src"))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// corpus reads all text of the toolchain's source but test data.
func corpus(t testing.TB) []model.Document {
	t.Helper()
	root := sources(t)
	var docs []model.Document
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, ".syso") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		docs = append(docs, model.Document{File: filepath.ToSlash(name), StartLine: 1, Text: string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// chunked packs documents into requests of about size bytes; longer files are
// cut at newlines.
func chunked(docs []model.Document, size int) [][]model.Document {
	var out [][]model.Document
	var chunk []model.Document
	n := 0
	for _, d := range docs {
		for d.Text != "" {
			part := d
			if len(d.Text) > size {
				end := strings.LastIndexByte(d.Text[:size], '\n') + 1
				if end == 0 {
					end = size
				}
				part.Text = d.Text[:end]
			}
			if n+len(part.Text) > size && n > 0 {
				out, chunk, n = append(out, chunk), nil, 0
			}
			chunk, n = append(chunk, part), n+len(part.Text)
			d.StartLine += strings.Count(part.Text, "\n")
			d.Text = d.Text[len(part.Text):]
		}
	}
	return append(out, chunk)
}

func all(docs []model.Document) iter.Seq2[model.Document, error] {
	return func(yield func(model.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// ask runs the engine as the product does: one look at everything, then part
// by part, then one ranking.
func ask(ctx context.Context, t testing.TB, e *extract.Engine, prompt string, docs []model.Document, chunks [][]model.Document) []model.Citation {
	t.Helper()
	prepared, err := e.Prepare(ctx, prompt, all(docs))
	if err != nil {
		t.Fatal(err)
	}
	found := make([][]model.Citation, len(chunks))
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := w; i < len(chunks); i += 2 {
				resp, err := e.Generate(ctx, &model.Request{Prompt: prompt, Documents: chunks[i], Prepared: prepared})
				if err != nil {
					t.Error(err)
					return
				}
				found[i] = resp.Citations
			}
		})
	}
	wg.Wait()
	return extract.Merge(prompt, found, 20)
}

func questions(t *testing.T, file string) []question {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []question
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// rank returns at which place, from 1, a citation is in one of the places; 0
// when none is.
func rank(found []model.Citation, places []place, text map[string]string) int {
	for i, c := range found {
		for _, p := range places {
			if p.File == c.File && covers(c, text[p.File], p.Anchor) {
				return i + 1
			}
		}
	}
	return 0
}

// covers reports whether a citation holds the line an anchor begins on.
func covers(c model.Citation, text, anchor string) bool {
	line := 1
	for {
		i := strings.Index(text, anchor)
		if i < 0 {
			return false
		}
		line += strings.Count(text[:i], "\n")
		if line >= c.StartLine && line <= c.EndLine {
			return true
		}
		text = text[i+1:]
		if anchor[0] == '\n' {
			line++
		}
	}
}

func TestShippedQuestions(t *testing.T) {
	t.Parallel()
	docs := corpus(t)
	chunks := chunked(docs, 256<<10)
	text := map[string]string{}
	for _, d := range docs {
		text[d.File] = d.Text
	}
	e := extract.New(extract.Config{})
	for _, file := range []string{"testdata/questions.json", "testdata/heldout.json"}[1:] {
		if file == "testdata/heldout.json" && os.Getenv("HELD") == "" {
			continue
		}
		hits, mrr := 0, 0.0
		qs := questions(t, file)
		total := 0
		for _, q := range qs {
			found := ask(t.Context(), t, e, q.Question, docs, chunks)
			total += len(found)
			r := rank(found, q.Places, text)
			if r > 0 {
				mrr += 1 / float64(r)
			}
			if r >= 1 && r <= 5 {
				hits++
				t.Logf("ok %d %s", r, q.Question)
				continue
			}
			t.Logf("MISS %d %s", r, q.Question)
			for _, c := range found[:min(5, len(found))] {
				t.Logf("       %.2f %s:%d-%d %q", c.Score, c.File, c.StartLine, c.EndLine, c.Text[:min(100, len(c.Text))])
			}
		}
		t.Logf("%s: %d of %d mrr %.3f", file, hits, len(qs), mrr/float64(len(qs)))
	}
}
