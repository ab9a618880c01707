package rlm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// Vote is one of the answers that a merge by vote counted.
type Vote struct {
	// Answer is the first of the equal answers, shortened to about 200 bytes;
	// Task is where it stands in full.
	Answer string         `json:"answer"`
	Task   perdure.TaskID `json:"task_id"`
	// Count is how many answers were equal to it.
	Count int `json:"count"`
	// Key identifies what the answers have in common, Citations are theirs;
	// both only in tasks whose votes are counted further up.
	Key       string           `json:"key,omitempty"`
	Citations []model.Citation `json:"citations,omitempty"`
}

const (
	// shownVote bounds an answer in the list of votes, maxVotes the list; what
	// is counted further up is not bounded.
	shownVote = 200
	maxVotes  = 100
)

// vote counts equal answers and chooses the most frequent one, of several the
// earliest. Below the top only the counts matter: a majority of majorities is
// none.
func (a *attempt) vote(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	data := m.gather(parts)
	votes, abstained := count(parts)
	data.Votes, data.Abstained = votes, abstained
	if len(votes) == 0 {
		return union(textsOf(parts)), data, nil
	}
	best := 0
	for i := range votes {
		if votes[i].Count > votes[best].Count {
			best = i
		}
	}
	winner := votes[best]
	task, won, err := a.taskOf(ctx, winner.Task)
	if err != nil {
		return "", data, err
	}
	data.Citations = unionCitations([][]model.Citation{winner.Citations})
	data.Structured = won.Structured
	if m.level {
		return task.Result, data, nil
	}
	data.Votes = shownVotes(votes, best)
	return task.Result, data, nil
}

// count gathers the votes of parts, and those that were counted below them, in
// the order in which they came. Parts that had nothing to say abstain.
func count(parts []part) (votes []Vote, abstained int) {
	at := make(map[string]int)
	add := func(v Vote) {
		i, there := at[v.Key]
		if !there {
			at[v.Key] = len(votes)
			votes = append(votes, v)
			return
		}
		votes[i].Count += v.Count
		votes[i].Citations = unionCitations([][]model.Citation{votes[i].Citations, v.Citations})
	}
	for _, p := range parts {
		abstained += p.data.Abstained
		if below := p.data.Votes; len(below) > 0 && below[0].Key != "" {
			for _, v := range below {
				add(v)
			}
			continue
		}
		key := voteKey(p.text)
		if key == "" {
			if p.data.Abstained == 0 {
				abstained++
			}
			continue
		}
		add(Vote{Answer: shorten(strings.TrimSpace(p.text), shownVote), Task: p.task, Count: 1, Key: key, Citations: p.data.Citations})
	}
	return votes, abstained
}

// shownVotes is the list for people: the chosen answer first.
func shownVotes(votes []Vote, best int) []Vote {
	out := []Vote{votes[best]}
	for i := range votes {
		if i != best && len(out) < maxVotes {
			out = append(out, votes[i])
		}
	}
	for i := range out {
		out[i].Key, out[i].Citations = "", nil
	}
	return out
}

// voteKey is what equal answers have in common; "" when there is no answer.
func voteKey(text string) string {
	text = normalAnswer(text)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// answerLine begins the line of a reply that holds its answer, after whatever
// led to it.
var answerLine = regexp.MustCompile(`(?i)^[\s*_#>]*(?:final\s+answer|answer)[\s*_]*:[\s*_]*(\S.*)$`)

// normalAnswer makes equal what people would count as the same answer:
//
//   - of a reply with a line "Answer: …" or "Final answer: …" only what follows
//     the last of these counts;
//   - JSON is compared by value: order of keys and blanks do not matter;
//   - a number is compared by value: 1,000 and 1000.0 are equal;
//   - otherwise upper and lower case, forms of the same character (NFKC), runs
//     of white space, quotes and Markdown's emphasis around the answer, and
//     marks at its end (. ! ? , ; :) do not matter.
//
// A reply that says only that there is nothing is "".
func normalAnswer(text string) string {
	text = strings.TrimSpace(text)
	if text == nothingHere {
		return ""
	}
	if value, ok := normalValue(text); ok {
		return value
	}
	for line := range strings.SplitSeq(text, "\n") {
		if found := answerLine.FindStringSubmatch(strings.TrimRight(line, " \t\r")); found != nil {
			text = found[1]
		}
	}
	bare := cases.Fold().String(norm.NFKC.String(text))
	bare = strings.Join(strings.Fields(bare), " ")
	bare = strings.TrimFunc(bare, wrapping)
	bare = strings.TrimRightFunc(bare, func(r rune) bool { return wrapping(r) || strings.ContainsRune(".!?,;:", r) })
	if bare == "" {
		return text // nothing but marks
	}
	if value, ok := normalValue(bare); ok {
		return value
	}
	return bare
}

// wrapping tells what people put around an answer.
func wrapping(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`*_“”‘’«»", r)
}

// plainNumber is a number as people write it, with or without commas between
// thousands.
var plainNumber = regexp.MustCompile(`^[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,300})(?:\.\d{1,300})?$`)

// normalValue is the form in which numbers and JSON are compared.
func normalValue(text string) (string, bool) {
	if plainNumber.MatchString(text) {
		if r, ok := new(big.Rat).SetString(strings.ReplaceAll(text, ",", "")); ok {
			return r.RatString(), true
		}
	}
	if text == "" || !strings.ContainsRune("{[", rune(text[0])) {
		return "", false
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil || dec.More() {
		return "", false
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(value); err != nil { // sorts the keys
		return "", false
	}
	return b.String(), true
}
