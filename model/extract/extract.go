// Package extract is the offline retrieval engine builtin:extract. It finds the passages of a
// context that fit a prompt best and quotes them with file and lines. It has no language model,
// invents nothing, and its answers say so.
//
// Passages are paragraphs, or blocks of program text with their comments, or parts of a long line.
// They are ranked by BM25 and by how closely they have the words of the prompt.
package extract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"

	"github.com/perdure/perdure/internal/text/textindex"
	"github.com/perdure/perdure/model"
)

// Name is the name of the engine as people write it.
const Name = "builtin:extract"

// defaultTopK is the default of Config.TopK. compared is how many passages are ranked by their text.
const defaultTopK, compared = 20, 240

// Config configures an [Engine]. The zero value is ready for use.
type Config struct {
	// TopK is the greatest number of citations of one answer; 0 means 20.
	TopK int
}

// Engine is a [model.Model] that finds passages. It is safe for concurrent use and has no state.
type Engine struct{ cfg Config }

var (
	_ model.Model    = (*Engine)(nil)
	_ model.Windower = (*Engine)(nil)
)

// New returns an engine.
func New(cfg Config) *Engine {
	if cfg.TopK <= 0 {
		cfg.TopK = defaultTopK
	}
	return &Engine{cfg}
}

// Verbatim returns model.TextQuoted: answers are passages of the context.
func (e *Engine) Verbatim() model.TextKind { return model.TextQuoted }

// Window returns 0: there is no limit to what one request may hold.
func (e *Engine) Window() int { return 0 }

// Generate returns the best passages of req.Documents as citations, at most cfg.TopK, best first,
// and as text. A citation is whole lines, exactly as they are in the document, without the last
// newline, or a part of a line of more than 4 KiB. The answer is the same for the same request.
// req.System and the parameters of sampling mean nothing to it, and it uses no tokens. The error is
// a [*model.Error]: [model.KindCanceled] when ctx ended.
func (e *Engine) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	var index bytes.Buffer
	offsets := make([]int64, len(req.Documents)+1)
	err := textindex.Build(ctx, &index, func(yield func(textindex.Text, error) bool) {
		for i, d := range req.Documents {
			offsets[i+1] = offsets[i] + int64(len(d.Text))
			if !yield(textindex.Text{Name: d.File, Offset: offsets[i], Text: d.Text}, nil) {
				return
			}
		}
	})
	if ctx.Err() != nil {
		return nil, model.Canceled(ctx)
	}
	var scores *textindex.Scores
	if err == nil {
		var x *textindex.Index
		if x, err = textindex.Open(bytes.NewReader(index.Bytes()), int64(index.Len())); err == nil {
			scores, err = x.Score(textindex.NewQuery(req.Prompt))
		}
	}
	if err != nil {
		return nil, &model.Error{Kind: model.KindFailed, Msg: Name, Err: err}
	}
	find := func(h textindex.Hit) (model.Document, string) {
		i := sort.Search(len(req.Documents), func(i int) bool { return offsets[i+1] > h.Offset })
		d := req.Documents[i]
		at := h.Offset - offsets[i]
		text := d.Text[at : at+int64(h.Length)]
		before := d.Text[:at]
		d.StartLine = max(d.StartLine, 1) + strings.Count(before, "\n")
		if n := strings.LastIndexByte(before, '\n'); n >= 0 || at > 0 {
			if d.StartColumn = len(before) - n; n < 0 && req.Documents[i].StartColumn > 0 {
				d.StartColumn += req.Documents[i].StartColumn - 1
			}
			if d.StartColumn == 1 {
				d.StartColumn = 0
			}
		}
		d.Text = text
		return d, text
	}
	hits, err := scores.Best(nil, compared+e.cfg.TopK, func(h textindex.Hit) (name, text string, err error) {
		d, text := find(h)
		return d.File, text, nil
	})
	if err != nil {
		return nil, &model.Error{Kind: model.KindFailed, Msg: Name, Err: err}
	}
	found := make([]model.Citation, len(hits))
	for i, h := range hits {
		d, _ := find(h)
		found[i] = Cite(d, h.Score)
	}
	return Response(req, Merge([][]model.Citation{found}, e.cfg.TopK)), nil
}

// Cite returns a passage as a citation.
func Cite(d model.Document, score float64) model.Citation {
	d.Text = strings.TrimSuffix(d.Text, "\n")
	sum := sha256.Sum256([]byte(d.Text))
	return model.Citation{File: d.File, StartLine: d.StartLine, StartColumn: d.StartColumn, EndLine: d.EndLine(),
		Text: d.Text, SHA256: hex.EncodeToString(sum[:]), Score: score}
}

// Response returns passages, best first, as the answer to a request.
func Response(req *model.Request, found []model.Citation) *model.Response {
	resp := &model.Response{Text: Answer(req.Prompt, found), Citations: found, StopReason: "stop", Model: Name, Tries: 1}
	if req.OnText != nil {
		req.OnText(resp.Text)
	}
	return resp
}
