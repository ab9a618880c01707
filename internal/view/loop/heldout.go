package loop

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/loop/heldout"
)

// HeldOut is the held-out check of a loop for the user. It is not part of the store, and agents do not
// get it.
type HeldOut struct {
	// Check is the check as it is shown, Limit the largest gap of a loop that completes.
	Check string  `json:"check,omitempty"`
	Limit float64 `json:"gap_limit_points"`
	// Missing is set if the folder with the check and its results is gone.
	Missing bool `json:"missing,omitempty"`
	// Results are the results in the order of the iterations; 0 is the baseline.
	Results []*heldout.Result `json:"iterations"`
}

// NewHeldOut returns a check with its results by iteration.
func NewHeldOut(book *heldout.Book, limit float64) *HeldOut {
	h := &HeldOut{Limit: limit, Results: []*heldout.Result{}}
	if book == nil {
		h.Missing = true
		return h
	}
	h.Check = book.Check.Shown()
	results := book.Results()
	for _, n := range slices.Sorted(maps.Keys(results)) {
		h.Results = append(h.Results, results[n])
	}
	return h
}

func (h *HeldOut) last() *heldout.Result {
	if h == nil || len(h.Results) == 0 {
		return nil
	}
	return h.Results[len(h.Results)-1]
}

// byIteration returns the results by iteration; nil without a check.
func (h *HeldOut) byIteration() map[int]*heldout.Result {
	if h == nil {
		return nil
	}
	all := make(map[int]*heldout.Result, len(h.Results))
	for _, r := range h.Results {
		all[r.Iteration] = r
	}
	return all
}

// Text describes the last result in a line; empty without a held-out check.
func (h *HeldOut) Text() string {
	switch r := h.last(); {
	case h == nil:
		return ""
	case h.Missing:
		return "its folder is gone; it counts as not passed"
	case r == nil:
		return "not run yet"
	default:
		where := fmt.Sprintf("iteration %d", r.Iteration)
		if r.Iteration == 0 {
			where = "baseline"
		}
		text := fmt.Sprintf("%s: %s (limit %.0f)", where, oneLine(r.Text(), maxText), h.Limit)
		if r.Open != "" {
			text += "; without a sandbox, so that code of the agent can leave what it reads there: " + oneLine(r.Open, maxText)
		}
		if r.Exposed != "" {
			text += "; its files are not hidden from the agent: " + oneLine(r.Exposed, maxText)
		}
		return text
	}
}

// Gaps lists the gaps of all iterations; empty if there are none.
func (h *HeldOut) Gaps() string {
	if h == nil {
		return ""
	}
	var parts []string
	for _, r := range h.Results {
		gap := "not run"
		if r.Gap != nil {
			gap = fmt.Sprintf("%.0f", *r.Gap)
		}
		parts = append(parts, fmt.Sprintf("%d: %s", r.Iteration, gap))
	}
	return strings.Join(parts, ", ")
}

// heldOut writes the held-out check below the check.
func (s *Summary) heldOut(c *screen) {
	h := s.in.HeldOut
	if h == nil {
		return
	}
	c.field("Held out", h.Text())
	r := h.last()
	if r == nil {
		return
	}
	for i, name := range r.Failing {
		if i == maxFailing {
			c.indented(c.Dim(fmt.Sprintf("and %d more", r.Tests-r.Passing-maxFailing)))
			break
		}
		c.indented("✗ " + oneLine(name, c.Width-16))
	}
}
