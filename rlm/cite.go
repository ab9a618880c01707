package rlm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/quote"
)

// maxCitations bounds the citations of one result. Places that were only read are
// left out first, and counted.
const maxCitations = 10_000

// keepReferences has a model that writes one text from several keep their references.
const keepReferences = " Keep the references in brackets that begin with [^ directly behind the statements that they " +
	"support, character by character."

// noteNoQuote is the note of an answer whose model was asked for quotes.
const noteNoQuote = "no quote supports the answer"

// asksForQuotes reports whether the model is asked to quote for this task.
func (a *attempt) asksForQuotes(m *asked, docs []model.Document) bool {
	return a.run.cfg.Cite && !m.ranked && len(docs) > 0
}

// cited adds to the data of an answer the places it rests on: its quotes, checked against
// the documents, and what was read for it. It returns the answer without the quotes.
// Data of a model that ranks passages has citations already.
func (a *attempt) cited(m *asked, req *model.Request, text string, data *Data) string {
	docs := ownDocuments(req.Documents)
	if m.ranked {
		return text
	}
	if a.asksForQuotes(m, docs) && data.Structured == nil {
		var quotes []model.Citation
		var dropped int
		text, quotes, dropped = quote.Apply(text, req.Prompt, joinRepeated(req.Documents))
		data.Citations, data.QuotesDropped = append(data.Citations, quotes...), data.QuotesDropped+dropped
	}
	if strings.TrimSpace(text) != nothingHere {
		data.Citations = append(data.Citations, readPlaces(docs)...)
		data.limitCitations()
	}
	return text
}

// ownDocuments returns the documents that no other part has.
func ownDocuments(docs []model.Document) []model.Document {
	return slices.DeleteFunc(slices.Clone(docs), func(d model.Document) bool { return d.Repeated })
}

// joinRepeated joins repeated text with the lines behind it: a quote may begin in it.
func joinRepeated(docs []model.Document) []model.Document {
	var out []model.Document
	for _, d := range docs {
		last := len(out) - 1
		if last >= 0 && out[last].Repeated && out[last].File == d.File && out[last].EndLine()+1 == d.StartLine {
			out[last].Text += d.Text
			out[last].Repeated = false
			continue
		}
		out = append(out, d)
	}
	return out
}

// readPlaces are the citations of documents that a model read.
func readPlaces(docs []model.Document) []model.Citation {
	out := make([]model.Citation, len(docs))
	for i, d := range docs {
		sum := sha256.Sum256([]byte(d.Text))
		out[i] = model.Citation{Kind: model.CitedRead, File: d.File, StartLine: d.StartLine, EndLine: d.EndLine(),
			SHA256: hex.EncodeToString(sum[:])}
	}
	return out
}

// limitCitations drops the citations beyond the limit: first of places that were only read.
func (d *Data) limitCitations() {
	if len(d.Citations) <= maxCitations {
		return
	}
	read := func(c model.Citation) int {
		if c.Kind == model.CitedRead {
			return 1
		}
		return 0
	}
	d.MoreCitations += len(d.Citations) - maxCitations
	slices.SortStableFunc(d.Citations, func(x, y model.Citation) int { return read(x) - read(y) })
	d.Citations = slices.Clone(d.Citations[:maxCitations])
}

// shownCitations counts the citations that show text of the context.
func (d *Data) shownCitations() int {
	n := 0
	for _, c := range d.Citations {
		if c.Kind != model.CitedRead {
			n++
		}
	}
	return n
}

// numbered is the answer of the tree for people: its references are numbers of
// citations.
func (d *Data) numbered(text string) string {
	text, d.Citations = quote.Number(text, d.Citations)
	if d.QuotesDropped > 0 {
		d.addNotes([]string{fmt.Sprintf("quotes that are not in the text and were removed: %d", d.QuotesDropped)})
	}
	return text
}
