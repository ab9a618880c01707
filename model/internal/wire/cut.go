package wire

import (
	"strings"

	"github.com/perdure/perdure/model"
)

// minCutWords is the least length of a request that a server may cut: none has a smaller
// context.
const minCutWords = 1000

// noteCutRequest notes that the server has probably read a part of the request only, as
// Ollama does with requests over its context length: it counted fewer tokens than the
// request has words. Tokenizers do not join words.
func noteCutRequest(resp *model.Response, req *model.Request) {
	u := resp.Usage
	if u.Estimated || u.InputTokens == 0 {
		return
	}
	words := countWords(req.System) + countWords(req.Prompt)
	for _, m := range req.Messages {
		words += countWords(m.Text)
	}
	for _, d := range req.Documents {
		words += countWords(d.Text)
	}
	if words >= minCutWords && u.InputTokens < words {
		resp.Notes = append(resp.Notes, model.NoteCutRequest)
	}
}

func countWords(text string) (n int64) {
	for range strings.FieldsSeq(text) {
		n++
	}
	return n
}
