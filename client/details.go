package client

import "github.com/perdure/perdure"

// Details describe how a result was produced. They are in the result of a tree, and in
// the data of each task.
type Details struct {
	// Notes are messages for people about what was unusual.
	Notes []string `json:"notes,omitempty"`
	// QuotesDropped counts the quotes of models that are not in the text. They are not
	// among the citations.
	QuotesDropped int `json:"quotes_dropped,omitempty"`
	// TooLong is set if the answer is incomplete because the conversation of a REPL became longer than
	// its model reads.
	TooLong bool `json:"too_long,omitempty"`
	// Cut is set if the answer is incomplete because a model reached the limit for answers.
	Cut bool `json:"cut,omitempty"`
	// MoreCitations counts the citations beyond the 10,000 that are listed.
	MoreCitations int `json:"more_citations,omitempty"`
	// LeftOut are the requested files that are not in the context.
	LeftOut *LeftOut `json:"left_out,omitempty"`
	// Votes counts the answers of a merge by vote, the chosen one first;
	// Abstained counts those that had nothing to say.
	Votes     []Vote `json:"votes,omitempty"`
	Abstained int    `json:"abstained,omitempty"`
	// Scores are the candidates of a merge by best-of-n.
	Scores []Score `json:"scores,omitempty"`
	// Gate is the report of the quality gate.
	Gate *Gate `json:"gate,omitempty"`
}

// LeftOut are the requested files that were not read.
type LeftOut struct {
	// Total is how many there are; a folder that was not looked into is one.
	Total int64 `json:"total"`
	// Kinds counts them by the kind of the reason: ignored, binary, empty,
	// too_large, unreadable, link, special, gone, changed, name,
	// encoding, secret, build, command.
	Kinds map[string]int64 `json:"kinds,omitempty"`
	// Files are the first 100 of them.
	Files []SkippedFile `json:"files"`
}

// Vote is one of the answers that a merge by vote counted.
type Vote struct {
	// Answer is shortened; Task has the whole answer.
	Answer string         `json:"answer"`
	Task   perdure.TaskID `json:"task_id"`
	Count  int            `json:"count"`
}

// Score is what a judge gave a candidate.
type Score struct {
	Task perdure.TaskID `json:"task_id"`
	// Score is nil when the judge returned none; Note has the reason.
	Score    *float64 `json:"score"`
	Critique string   `json:"critique,omitempty"`
	Note     string   `json:"note,omitempty"`
	Chosen   bool     `json:"chosen,omitempty"`
}

// Gate is the report of a quality gate.
type Gate struct {
	// Score is that of the answer; nil when it has none.
	Score    *float64 `json:"score"`
	MinScore float64  `json:"min_score"`
	Passed   bool     `json:"passed"`
	Rounds   []Round  `json:"rounds"`
}

// Round is one try at a quality gate.
type Round struct {
	Round int    `json:"round"`
	Model string `json:"model"`
	// Score is nil when the judge returned none; Note has the reason.
	Score    *float64 `json:"score"`
	Critique string   `json:"critique,omitempty"`
	Note     string   `json:"note,omitempty"`
	Chosen   bool     `json:"chosen,omitempty"`
}
