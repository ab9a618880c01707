package loop

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
)

// noteEvidence says before the first iteration what the check does not show: the tests by
// name, or its own failure.
func (r *run) noteEvidence(c *checked, out *state.Outcome) {
	if r.cfg.Plain {
		return
	}
	var texts []string
	if why := project.HiddenStatus(r.cfg.Until); why != "" {
		texts = append(texts, "the check hides its failure: "+why)
	}
	if c.Weak && c.command.Weak != "" {
		texts = append(texts, "only the exit status of the check is known ("+c.command.Weak+
			"): changed tests and expected values are judged by their text")
	}
	for _, text := range texts {
		out.Warnings = append(out.Warnings, text)
		r.note(EventWarning, map[string]any{"iteration": 0, "kind": "evidence", "message": text})
	}
}

// weakenedNote is the part of the reason of a completed loop that names changed expectations,
// where the results of the tests do not show whether the code or the expectation was wrong.
func weakenedNote(out *state.Outcome) string {
	const most = 3
	if !out.Check.Weak || out.Accepted {
		return ""
	}
	var texts []string
	for i := range out.Findings {
		if f := &out.Findings[i]; f.Type == detect.AssertionWeakening {
			texts = append(texts, clip.Bytes(clip.OneLine(f.Summary()), 200))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	more := ""
	if n := len(texts) - most; n > 0 {
		texts, more = texts[:most], fmt.Sprintf("; and %d more", n)
	}
	return "; only its exit status is known, and tests were changed: " + strings.Join(texts, "; ") + more
}
