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
	list := newDocuments(req.Documents)
	hits, err := list.rank(ctx, req.Prompt, compared+e.cfg.TopK)
	if ctx.Err() != nil {
		return nil, model.Canceled(ctx)
	}
	if err != nil {
		return nil, &model.Error{Kind: model.KindFailed, Msg: Name, Err: err}
	}
	found := make([]model.Citation, len(hits))
	for i, h := range hits {
		found[i] = Cite(list.passage(h), h.Score)
	}
	return Response(req, Merge([][]model.Citation{found}, e.cfg.TopK)), nil
}

// documents are documents one behind another, with the offset of each.
type documents struct {
	list    []model.Document
	offsets []int64
}

func newDocuments(list []model.Document) *documents {
	d := &documents{list: list, offsets: make([]int64, len(list)+1)}
	for i := range list {
		d.offsets[i+1] = d.offsets[i] + int64(len(list[i].Text))
	}
	return d
}

// rank returns the n passages that fit a prompt best.
func (d *documents) rank(ctx context.Context, prompt string, n int) ([]textindex.Hit, error) {
	var index bytes.Buffer
	err := textindex.Build(ctx, &index, func(yield func(textindex.Text, error) bool) {
		for i := range d.list {
			text := textindex.Text{Name: d.list[i].File, Offset: d.offsets[i], Text: d.list[i].Text}
			if !yield(text, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	x, err := textindex.Open(bytes.NewReader(index.Bytes()), int64(index.Len()))
	if err != nil {
		return nil, err
	}
	scores, err := x.Score(textindex.NewQuery(prompt))
	if err != nil {
		return nil, err
	}
	return scores.Best(nil, n, func(h textindex.Hit) (name, text string, err error) {
		p := d.passage(h)
		return p.File, p.Text, nil
	})
}

// passage returns a passage with its place in its document.
func (d *documents) passage(h textindex.Hit) model.Document {
	i := sort.Search(len(d.list), func(i int) bool { return d.offsets[i+1] > h.Offset })
	p := d.list[i]
	at := h.Offset - d.offsets[i]
	before := p.Text[:at]
	p.Text = p.Text[at : at+int64(h.Length)]
	column := len(before) - strings.LastIndexByte(before, '\n')
	lines := strings.Count(before, "\n")
	if lines == 0 {
		column += max(p.StartColumn, 1) - 1
	}
	p.StartLine = max(p.StartLine, 1) + lines
	if p.StartColumn = column; column == 1 {
		p.StartColumn = 0
	}
	return p
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
