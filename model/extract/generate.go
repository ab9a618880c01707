package extract

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/perdure/perdure/model"
)

// candidate is a passage that holds terms of the prompt.
type candidate struct {
	doc, first, last int // the document, the lines in it, last not included
	from, to         int // the range of bytes
	score            float64
}

// Generate returns the best passages of req.Documents as citations, at most
// cfg.TopK, best first, and as text. Each citation is whole lines, exactly as
// they are in the document, without the last newline. Scores are comparable
// between requests with the same prompt and req.Prepared; without Prepared
// they rest on the documents of this request alone. The answer is the same for
// the same request, always. req.System and the figures of sampling mean
// nothing to it, and it uses no tokens.
//
// The error is a [*model.Error]: [model.KindInvalid] when Prepared cannot be
// read, [model.KindCanceled] when ctx ended.
func (e *Engine) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	q := e.query(req.Prompt)
	s, notes, err := statsFor(ctx, q, req)
	if err != nil {
		return nil, err
	}
	found, long, err := candidates(ctx, s.judge(q), req.Documents)
	if err != nil {
		return nil, err
	}
	if long > 0 {
		notes = append(notes, fmt.Sprintf("%d matching lines of more than %d KiB are not quoted", long, maxCited>>10))
	}
	resp := &model.Response{
		Citations: best(found, req.Documents, e.cfg.TopK), StopReason: "stop", Model: Name, Tries: 1, Notes: notes,
	}
	resp.Text = Answer(req.Prompt, resp.Citations)
	if req.OnText != nil {
		req.OnText(resp.Text)
	}
	return resp, nil
}

// statsFor returns the prepared statistics, or those of the request alone when
// there are none for this prompt.
func statsFor(ctx context.Context, q *query, req *model.Request) (*stats, []string, error) {
	if len(req.Prepared) > 0 {
		s, err := parseStats(req.Prepared)
		if err != nil {
			return nil, nil, &model.Error{Kind: model.KindInvalid, Msg: Name, Err: err}
		}
		if s.knows(q) {
			return s, nil, nil
		}
	}
	c := &counts{}
	scan := newScanner(q)
	for _, d := range req.Documents {
		if ctx.Err() != nil {
			return nil, nil, model.Canceled(ctx)
		}
		scan.each(d, c.visit)
	}
	if len(req.Prepared) > 0 {
		return c.stats(q), []string{"the statistics are of another prompt; this part was ranked by itself"}, nil
	}
	return c.stats(q), nil, nil
}

// candidates scores the passages of the documents. long counts passages that
// match but are too long to be quoted.
func candidates(ctx context.Context, j *judge, docs []model.Document) (out []candidate, long int, err error) {
	scan := newScanner(j.q)
	for i, d := range docs {
		if ctx.Err() != nil {
			return nil, 0, model.Canceled(ctx)
		}
		factor := fileFactor(d.File, j.q.tests)
		scan.each(d, func(f found) {
			if f.body.terms == 0 {
				return
			}
			lines := scan.reader.lines
			c := candidate{
				doc: i, first: f.first, last: f.last,
				from: lines[f.first].start, to: lines[f.last-1].end,
			}
			if c.to-c.from > maxCited {
				long++
				return
			}
			if c.score = rounded(j.score(&f) * factor); c.score > 0 {
				out = append(out, c)
			}
		})
	}
	return out, long, nil
}

// rounded drops the digits in which processors differ, so that ties are ties
// everywhere.
func rounded(score float64) float64 { return math.Round(score*1e4) / 1e4 }

// best makes citations of the best candidates.
func best(found []candidate, docs []model.Document, topK int) []model.Citation {
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(docs[a.doc].File, docs[b.doc].File),
			cmp.Compare(docs[a.doc].StartLine+a.first, docs[b.doc].StartLine+b.first), cmp.Compare(a.doc, b.doc))
	})
	p := picker{limit: topK}
	for _, c := range found {
		if p.full() {
			break
		}
		p.pick(citation(c, docs[c.doc]))
	}
	return p.picked
}

func citation(c candidate, d model.Document) model.Citation {
	text := d.Text[c.from:c.to]
	sum := sha256.Sum256([]byte(text))
	start := max(d.StartLine, 1)
	return model.Citation{
		File: d.File, StartLine: start + c.first, EndLine: start + c.last - 1,
		Text: text, SHA256: hex.EncodeToString(sum[:]), Score: c.score,
	}
}
