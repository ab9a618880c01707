package rlm

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm/internal/dedupe"
)

// Limits of what a result carries in addition to its text.
const (
	// rankedKept is how many ranked citations go up from a task to its
	// parent, rankedShown how many an answer has.
	rankedKept  = 20
	rankedShown = 10
	// maxMissing bounds the list of missing parts; more are counted.
	maxMissing = 1000
	maxNotes   = 100
	// maxLeftOut bounds the list of files that were left out.
	maxLeftOut = 100
)

// Data is what a result carries in addition to its text, as JSON.
type Data struct {
	// Skipped is set when the task did not run, because its condition does not
	// hold.
	Skipped bool `json:"skipped,omitempty"`
	// Structured is the result as JSON when the run has a schema.
	Structured json.RawMessage `json:"structured,omitempty"`
	// Citations are the places the result rests on: checked quotes, passages that
	// a model ranked, and what was read for the parts that contributed. MoreCitations
	// counts those beyond 10,000, QuotesDropped the quotes that are not in the text.
	Citations     []model.Citation `json:"citations,omitempty"`
	MoreCitations int              `json:"more_citations,omitempty"`
	QuotesDropped int              `json:"quotes_dropped,omitempty"`
	// Missing are parts that have no result, at most 1000; MoreMissing counts
	// the others.
	Missing     []Missing `json:"missing,omitempty"`
	MoreMissing int       `json:"more_missing,omitempty"`
	// Notes describe what was unusual.
	Notes []string `json:"notes,omitempty"`
	// LeftOut, only in the root's result, lists the requested files that
	// are not in the context.
	LeftOut *LeftOut `json:"left_out,omitempty"`
	// Incomplete is set when the result is less than was asked for although no
	// part is missing: a budget that ended before the merge, for example.
	Incomplete bool `json:"incomplete,omitempty"`
	// Cut is set if an answer that is, or goes into, the result ends at the limit for answers.
	Cut bool `json:"cut,omitempty"`
	// TooLong is set when the result is incomplete because the conversation of a REPL became longer
	// than its model reads.
	TooLong bool `json:"too_long,omitempty"`
	// Votes counts the answers of a merge by vote, the chosen one first, the
	// others in the order in which they came; Abstained counts parts that had
	// nothing to say.
	Votes     []Vote `json:"votes,omitempty"`
	Abstained int    `json:"abstained,omitempty"`
	// Scores are the candidates of a merge by best-of-n, in their order, at
	// most 1000.
	Scores []Scored `json:"scores,omitempty"`
	// Gate is the record of the answer at the quality gate.
	Gate *GateReport `json:"gate,omitempty"`
}

// Missing is a part without a result.
type Missing struct {
	Task   perdure.TaskID `json:"task_id"`
	Prompt string         `json:"prompt"`
	Error  string         `json:"error"`
}

// encode returns the JSON that the store keeps.
func encode(what string, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", what, err)
	}
	return raw, nil
}

// noteCut notes that a text which is, or goes into, the result is not whole.
func (d *Data) noteCut(a *attempt, by *asked) {
	if !d.Cut {
		return
	}
	limit := "the limit for answers"
	if n := a.answerLimit(); n > 0 {
		limit += fmt.Sprintf(" of %d tokens", n)
	}
	d.Incomplete = true
	d.addNotes([]string{fmt.Sprintf("an answer of model %q ends at %s and is not whole; a higher --max-output-tokens "+
		"has it asked for again", by.name, limit)})
}

// partial reports whether something is missing.
func (d *Data) partial() bool { return len(d.Missing) > 0 || d.MoreMissing > 0 || d.Incomplete }

func dataOf(t *perdure.Task) (Data, error) {
	var d Data
	if len(t.Data) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(t.Data, &d); err != nil {
		return d, fmt.Errorf("read result of task %q: %w", t.ID, err)
	}
	return d, nil
}

func (d *Data) addMissing(missing []Missing, more int) {
	room := min(len(missing), maxMissing-len(d.Missing))
	d.Missing = append(d.Missing, missing[:room]...)
	d.MoreMissing += more + len(missing) - room
}

func (d *Data) addNotes(notes []string) {
	for _, n := range notes {
		if len(d.Notes) < maxNotes && !slices.Contains(d.Notes, n) {
			d.Notes = append(d.Notes, n)
		}
	}
}

// part is the result of one child.
type part struct {
	task perdure.TaskID
	// where names the text that the child is about, for a model that merges; empty in trees of
	// version 1.
	where string
	// context is the text that the child is about.
	context perdure.ContextRef
	file    string // in a batch
	text    string
	data    Data
}

// merger makes one result of several.
type merger struct {
	// prompt is what was asked, without what is about a part.
	prompt string
	merge  string
	// ranked is set for models whose citations carry comparable scores.
	ranked bool
	// whole is set when the result is an answer for people.
	whole bool
	// files puts the name of the file before each text.
	files bool
	// level is set on tasks that exist only to keep the number of children
	// small: in trees of version 1 what fits into one call above goes up as it is.
	level bool
	// kind is what the results are of, missing names the parts that have none.
	kind    resultKind
	missing []string
	// marked is set for trees of version 2.
	marked bool
}

// run merges the parts, which are in the order of the context.
func (m *merger) run(parts []part) (string, Data) {
	data := m.gather(parts)
	if m.ranked && m.merge != MergeConcatenate {
		return extract.Answer(m.prompt, data.Citations), data
	}
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.text
		if m.files && p.file != "" && m.merge == MergeConcatenate {
			all[i] = "## " + p.file + "\n\n" + p.text
		}
	}
	if m.merge == MergeConcatenate {
		return dedupe.Concatenate(all), data
	}
	return m.union(all), data
}

// union joins results and leaves out what is there already.
func (m *merger) union(texts []string) string {
	if m.marked {
		return dedupe.UnionOfLong(texts)
	}
	return dedupe.Union(texts)
}

// unionCitations puts the citations one after another and leaves out those that
// are there already.
func unionCitations(lists [][]model.Citation) []model.Citation {
	type place struct {
		file, hash string
		start, end int
	}
	var out []model.Citation
	seen := make(map[place]bool)
	for _, list := range lists {
		for _, c := range list {
			p := place{c.File, c.SHA256, c.StartLine, c.EndLine}
			if !seen[p] {
				seen[p] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// nothingHere is what a model is asked to say about a part that does not help;
// it is left out when another part does.
const nothingHere = dedupe.Nothing
