package loop

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/record"
)

// Row is a loop in a list.
type Row struct {
	ID     string `json:"loop_id"`
	TreeID string `json:"tree_id"`
	// Status may be crashed; Asking is set if a gate is open, Interrupted if no process runs
	// the loop, which waits there or for a rate limit.
	Status        string `json:"status"`
	Asking        bool   `json:"gate_open,omitempty"`
	Interrupted   bool   `json:"interrupted,omitempty"`
	Iteration     int    `json:"iteration"`
	MaxIterations int    `json:"max_iterations,omitempty"`
	// LastQuality and BestQuality are in percent; nil is not known.
	LastQuality *int `json:"last_iteration_quality"`
	// Void is set if LastQuality is void, because of a regression that was not accepted.
	Void        bool      `json:"last_quality_void,omitempty"`
	BestQuality *int      `json:"best_quality"`
	UpdatedAt   time.Time `json:"last_updated"`
	StartedAt   time.Time `json:"started_at"`
	Task        string    `json:"task,omitempty"`
	Workspace   string    `json:"working_directory,omitempty"`
	// Shown is the status for people.
	Shown string `json:"-"`
	// EndedByOthers is set if the tree ended although the loop has not.
	EndedByOthers bool `json:"-"`
}

// Continue returns the command that continues the loop if no process runs it and it should, or
// that ends it if it cannot continue; empty otherwise.
func (r *Row) Continue() string {
	if r.EndedByOthers {
		return "perdure loop abort " + r.ID
	}
	if r.Interrupted || r.Status == statusCrashed {
		return "perdure loop resume " + r.ID
	}
	return ""
}

// Row is the loop in a list. The last iteration is enough for it, and for the best
// the candidates of the history, or all iterations.
func (s *Summary) Row() Row {
	r := Row{ID: s.ID(), TreeID: string(s.in.Tree.ID), Status: s.Status(), Asking: s.gates.waiting() != nil &&
		!s.in.Loop.Status.Ended(), Iteration: s.in.Loop.Iteration,
		MaxIterations: s.cfg.MaxIterations, UpdatedAt: s.in.Loop.UpdatedAt, StartedAt: s.in.Tree.CreatedAt,
		Task: s.cfg.Task, Workspace: s.cfg.Workspace, Interrupted: s.interrupted() || s.stopped(), Shown: s.shown(),
		EndedByOthers: s.endedByOthers()}
	if p := s.judged(); p != nil && p.quality != unmeasured {
		r.LastQuality, r.Void = &p.quality, p.void
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
	const lastTitle = "TASK"
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "LOOP\tSTATUS\tITERATION\tQUALITY\tCHANGED\t"+lastTitle) // a strings.Builder does not fail
	for i := range rows {
		r := &rows[i]
		sign := mark(r.Status)
		if r.Asking {
			sign = mark(string(record.Paused))
		}
		status := sign + " " + oneLine(r.Shown, maxName)
		iteration := fmt.Sprint(r.Iteration)
		if r.MaxIterations > 0 {
			iteration += fmt.Sprintf(" of %d", r.MaxIterations)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(r.ID, maxName), status, iteration, qualities(r),
			human.Ago(now, r.UpdatedAt), oneLine(r.Task, c.Width))
	}
	_ = t.Flush()
	titles, lines, _ := strings.Cut(table.String(), "\n")
	c.line("%s", c.Dim(titles))
	width := max(c.Width, strings.Index(titles, lastTitle)+20)
	for line := range strings.Lines(lines) {
		c.line("%s", strings.TrimRight(clip.Runes(strings.TrimSuffix(line, "\n"), width), " "))
	}
	return c.to(w)
}

// qualities are those of the last and of the best iteration.
func qualities(r *Row) string {
	text := "-"
	if r.LastQuality != nil {
		text = percent(*r.LastQuality)
		if r.Void {
			text += " void"
		}
	}
	if r.BestQuality != nil {
		text += fmt.Sprintf(", best %d%%", *r.BestQuality)
	}
	return text
}
