package loop

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
)

// Row is a loop in a list.
type Row struct {
	ID     string `json:"loop_id"`
	TreeID string `json:"tree_id"`
	// Status may be crashed; Asking tells that a gate is open.
	Status        string `json:"status"`
	Asking        bool   `json:"gate_open,omitempty"`
	Iteration     int    `json:"iteration"`
	MaxIterations int    `json:"max_iterations,omitempty"`
	// LastQuality and BestQuality are in percent; nil is not known.
	LastQuality *int      `json:"last_iteration_quality"`
	BestQuality *int      `json:"best_quality"`
	UpdatedAt   time.Time `json:"last_updated"`
	StartedAt   time.Time `json:"started_at"`
	Task        string    `json:"task,omitempty"`
	Workspace   string    `json:"working_directory,omitempty"`
}

// Row is the loop in a list. The last iteration is enough for it, and for the best
// the candidates of the history, or all iterations.
func (s *Summary) Row() Row {
	r := Row{ID: s.ID(), TreeID: string(s.in.Tree.ID), Status: s.Status(), Asking: s.gates.waiting() != nil &&
		!s.in.Loop.Status.Ended(), Iteration: s.in.Loop.Iteration,
		MaxIterations: s.cfg.MaxIterations, UpdatedAt: s.in.Loop.UpdatedAt, StartedAt: s.in.Tree.CreatedAt,
		Task: s.cfg.Task, Workspace: s.cfg.Workspace}
	if p := s.judged(); p != nil && p.quality != unmeasured {
		r.LastQuality = &p.quality
	}
	if s.best != nil && s.Whole() {
		r.BestQuality = s.best.Quality
	}
	return r
}

// List writes loops, a line each.
func List(w io.Writer, style Style, rows []Row, now time.Time) error {
	c := &screen{Style: style.withDefaults()}
	if len(rows) == 0 {
		c.line("no loops")
		return c.to(w)
	}
	cells := [][]string{{"LOOP", "STATUS", "ITERATION", "QUALITY", "CHANGED", "TASK"}}
	for i := range rows {
		r := &rows[i]
		status := mark(r.Status) + " " + oneLine(r.Status, maxName)
		if r.Asking {
			status += ", asks"
		}
		iteration := fmt.Sprint(r.Iteration)
		if r.MaxIterations > 0 {
			iteration += fmt.Sprintf(" of %d", r.MaxIterations)
		}
		cells = append(cells, []string{oneLine(r.ID, maxName), status, iteration, qualities(r), human.Ago(now, r.UpdatedAt),
			oneLine(r.Task, c.Width)})
	}
	widths := make([]int, len(cells[0])-1)
	for _, row := range cells {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for n, row := range cells {
		var line strings.Builder
		used := 0
		for i, width := range widths {
			line.WriteString(row[i] + strings.Repeat(" ", width-utf8.RuneCountInString(row[i])+2))
			used += width + 2
		}
		line.WriteString(clip.Runes(row[len(widths)], max(c.Width-used, 20)))
		text := strings.TrimRight(line.String(), " ")
		if n == 0 {
			text = c.Dim(text)
		}
		c.line("%s", text)
	}
	return c.to(w)
}

// qualities are those of the last and of the best iteration.
func qualities(r *Row) string {
	text := "-"
	if r.LastQuality != nil {
		text = percent(*r.LastQuality)
	}
	if r.BestQuality != nil {
		text += fmt.Sprintf(", best %d%%", *r.BestQuality)
	}
	return text
}
