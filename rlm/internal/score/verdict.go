package score

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// maxCritique bounds what is kept of a critique, in bytes.
const maxCritique = 2000

// Verdict is what a judge says of an answer.
type Verdict struct {
	// Score counts only when Scored is set.
	Score    float64
	Scored   bool
	Critique string
	// Note says why there is no score, or what was unusual.
	Note string
}

// FromProgram reads what a program says: a number in the first line; what
// follows is its critique. The error says, for people, why that is not a score.
func FromProgram(reply string) (Verdict, error) {
	first, rest, _ := strings.Cut(strings.TrimSpace(reply), "\n")
	n, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return Verdict{}, fmt.Errorf("%q is not a number", clip.Bytes(strings.TrimSpace(first), maxShown))
	}
	return Verdict{Score: n, Scored: true, Critique: clip.Bytes(strings.TrimSpace(rest), maxCritique)}, nil
}

// FromModel reads the JSON that a judge model replied with: {"score": 0 to 100,
// "critique": "…"}. The problem, "" when there is none, is one sentence for the
// model.
func FromModel(reply json.RawMessage) (v Verdict, problem string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(reply, &fields); err != nil {
		return v, "the JSON is not an object with the keys score and critique"
	}
	given, ok := fields["score"]
	if !ok {
		return v, "score: it is missing"
	}
	n, err := strconv.ParseFloat(strings.Trim(string(given), `"`), 64)
	if err != nil {
		return v, fmt.Sprintf("score: %s is not a number", clip.Bytes(strings.TrimSpace(string(given)), maxShown))
	}
	if !(n >= 0 && n <= High) {
		return v, fmt.Sprintf("score: %s is not between 0 and %d", Text(n), High)
	}
	v = Verdict{Score: n, Scored: true}
	var critique string
	if json.Unmarshal(fields["critique"], &critique) == nil {
		v.Critique = clip.Bytes(strings.TrimSpace(critique), maxCritique)
	}
	return v, ""
}

// Text writes a score.
func Text(n float64) string { return strconv.FormatFloat(n, 'g', 6, 64) }
