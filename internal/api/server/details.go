package server

import (
	"encoding/json"

	"github.com/perdure/perdure"
)

// details are what an executor says in a result's data of how it came about;
// see client.Details. What has another form is left out: the data is the
// executor's own.
type details struct {
	Notes     []string `json:"notes,omitempty"`
	LeftOut   *leftOut `json:"left_out,omitempty"`
	Votes     []vote   `json:"votes,omitempty"`
	Abstained int      `json:"abstained,omitempty"`
	Scores    []scored `json:"scores,omitempty"`
	Gate      *gate    `json:"gate,omitempty"`
}

// leftOut tells which files were asked for and are not in the context.
type leftOut struct {
	Total int64             `json:"total"`
	Kinds map[string]int64  `json:"kinds,omitempty"`
	Files []json.RawMessage `json:"files"`
}

type vote struct {
	Answer string         `json:"answer"`
	Task   perdure.TaskID `json:"task_id"`
	Count  int            `json:"count"`
}

type scored struct {
	Task perdure.TaskID `json:"task_id"`
	verdict
}

type verdict struct {
	Score    *float64 `json:"score"`
	Critique string   `json:"critique,omitempty"`
	Note     string   `json:"note,omitempty"`
	Chosen   bool     `json:"chosen,omitempty"`
}

type gate struct {
	Score    *float64 `json:"score"`
	MinScore float64  `json:"min_score"`
	Passed   bool     `json:"passed"`
	Rounds   []round  `json:"rounds"`
}

type round struct {
	Round int    `json:"round"`
	Model string `json:"model"`
	verdict
}

func detailsOf(data json.RawMessage) details {
	var d details
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return d
	}
	take(fields["notes"], &d.Notes)
	take(fields["left_out"], &d.LeftOut)
	take(fields["votes"], &d.Votes)
	take(fields["abstained"], &d.Abstained)
	take(fields["scores"], &d.Scores)
	take(fields["gate"], &d.Gate)
	return d
}

// take decodes a value that has the form, and nothing of one that has not.
func take[T any](raw json.RawMessage, to *T) {
	var value T
	if len(raw) > 0 && json.Unmarshal(raw, &value) == nil {
		*to = value
	}
}
