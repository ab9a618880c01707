package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

const (
	// shownDetails bounds the votes, scores, rounds and notes that are printed with a
	// result, shownOfTask those that show prints.
	shownDetails = 8
	shownOfTask  = 100
)

// noteDetails prints the details of a result to standard error.
func (a *app) noteDetails(d *client.Details) {
	for _, line := range detailLines(d, shownDetails) {
		a.Note("%s", env.OneLine(line, 300))
	}
}

// showDetails prints the details of a task's result.
func (a *app) showDetails(t *perdure.Task) {
	var d client.Details
	if len(t.Data) == 0 || json.Unmarshal(t.Data, &d) != nil {
		return
	}
	a.section("Details", strings.Join(detailLines(&d, shownOfTask), "\n"))
}

// detailLines returns details as lists of at most the given number of lines.
func detailLines(d *client.Details, most int) []string {
	var lines []string
	list := func(n int, line func(i int) string) {
		for i := range min(n, most) {
			lines = append(lines, line(i))
		}
		if n > most {
			lines = append(lines, fmt.Sprintf("  … and %d more", n-most))
		}
	}
	if len(d.Votes) > 0 {
		lines = append(lines, "votes:")
		list(len(d.Votes), func(i int) string {
			v := d.Votes[i]
			return fmt.Sprintf("  %d × %s (%s)", v.Count, env.OneLine(v.Answer, 100), v.Task)
		})
	}
	if d.Abstained > 0 {
		lines = append(lines, fmt.Sprintf("  %s abstained", human.Count(d.Abstained, "answer")))
	}
	if len(d.Scores) > 0 {
		lines = append(lines, "scores:")
		list(len(d.Scores), func(i int) string {
			s := d.Scores[i]
			return scoreLine(s.Task.String(), s.Score, s.Chosen, s.Critique, s.Note)
		})
	}
	if g := d.Gate; g != nil {
		word := "passed"
		if !g.Passed {
			word = "not passed"
		}
		lines = append(lines, fmt.Sprintf("quality gate: %s, %s of at least %s", word, scoreText(g.Score),
			points(g.MinScore)))
		list(len(g.Rounds), func(i int) string {
			r := g.Rounds[i]
			return scoreLine(fmt.Sprintf("round %d (%s)", r.Round, r.Model), r.Score, r.Chosen, r.Critique, r.Note)
		})
	}
	list(len(d.Notes), func(i int) string { return "note: " + d.Notes[i] })
	return lines
}

func scoreLine(name string, score *float64, chosen bool, critique, note string) string {
	line := fmt.Sprintf("  %s: %s", name, scoreText(score))
	if chosen {
		line += ", chosen"
	}
	if critique != "" {
		line += "; " + env.OneLine(critique, 120)
	}
	if note != "" && score == nil {
		line += "; " + env.OneLine(note, 120)
	}
	return line
}

func scoreText(score *float64) string {
	if score == nil {
		return "no score"
	}
	return points(*score)
}

func points(n float64) string { return strconv.FormatFloat(n, 'g', 6, 64) }
