// Package regression has what got worse in a loop's iterations: how it is named so
// that it is known again, and what of it counts, by settings, waivers and the false
// alarms that people marked.
package regression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Most is how many tests, files and findings a regression names.
const Most = 50

// Regression is a fact that something got worse.
type Regression struct {
	Type     string   `json:"regression_type"`
	Severity string   `json:"severity"`
	Text     string   `json:"text"`
	Tests    []string `json:"tests,omitempty"`
	Files    []string `json:"files,omitempty"`
	// Fingerprints are by what it is known again when a person marks it as a false
	// alarm: one for each of its findings, tests or files, or else one for all.
	Fingerprints []string `json:"fingerprints,omitempty"`
}

// Worst is the gravest.
func Worst(all []Regression) Regression {
	order := []string{string(hook.Critical), string(hook.High), string(hook.Medium), string(hook.Low)}
	return slices.MinFunc(all, func(a, b Regression) int {
		return slices.Index(order, a.Severity) - slices.Index(order,
			b.Severity)
	})
}

// Signs are the regressions that the files show and the results of the tests do
// not, one for each type.
func Signs(report *detect.Report, baseline, now *testreport.Report) []Regression {
	var all []Regression
	for _, f := range evidence.Acting(report, baseline, now) {
		at := slices.IndexFunc(all, func(g Regression) bool { return g.Type == string(f.Type) })
		if at < 0 {
			all = append(all, Regression{Type: string(f.Type), Severity: string(f.Severity), Text: f.Summary()})
			at = len(all) - 1
		} else if g := &all[at]; len(g.Text) < 1000 {
			g.Text += "; " + f.Summary()
		}
		g := &all[at]
		if len(g.Fingerprints) < Most {
			g.Fingerprints = append(g.Fingerprints, f.Fingerprint())
		}
		g.Severity = Worst([]Regression{*g, {Severity: string(f.Severity)}}).Severity
		if f.File != "" && !slices.Contains(g.Files, f.File) && len(g.Files) < Most {
			g.Files = append(g.Files, f.File)
		}
	}
	return all
}

// Bounds of what a prompt tells of findings that only warn, and a mark of its
// regression, in bytes.
const (
	shownFindings = 10
	maxFinding    = 240
	maxMarkText   = 500
)

// Warned names the findings that are no regressions, and yet are worth a look, for
// the next prompt; empty without any.
func Warned(findings []detect.Finding) string {
	var b strings.Builder
	n := 0
	for i := range findings {
		if f := &findings[i]; f.Action == detect.Warn {
			if n++; n <= shownFindings {
				b.WriteString("- " + policy.Clip(strings.Join(strings.Fields(f.Summary()), " "), maxFinding) + "\n")
			}
		}
	}
	if n == 0 {
		return ""
	}
	if n > shownFindings {
		fmt.Fprintf(&b, "- and %d more\n", n-shownFindings)
	}
	return "\n# What a reviewer would ask about\n\nSeen in the changes so far. Put right what is not meant; a good " +
		"reason in a comment is an answer, too.\n\n" + b.String()
}

// unmarked are the names of what is not marked. Of a list that was cut nobody knows
// the rest.
func (g *Regression) unmarked(marked map[string]bool) []string {
	names := g.names()
	if len(g.Tests) >= Most || len(g.Files) >= Most {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return marked[name] })
}

// names are by what a regression is known again.
func (g *Regression) names() []string {
	if len(g.Fingerprints) > 0 {
		return g.Fingerprints
	}
	of := g.Tests
	if len(of) == 0 {
		of = g.Files
	}
	if len(of) == 0 {
		return []string{factName(g.Type, g.Text)}
	}
	var names []string
	for _, name := range of {
		names = append(names, factName(g.Type, name))
	}
	return names
}

// factName is the fingerprint of what is no finding of package detect.
func factName(kind, name string) string {
	return (&detect.Finding{Pattern: kind, Subject: name}).Fingerprint()
}

// Found is what an iteration came to.
type Found struct {
	Iteration   int
	Regressions []Regression
	Findings    []detect.Finding
}

// Marks are the findings that a regression (its ID) or the beginning of a
// fingerprint stands for, to be marked as false alarms. Empty stands for all
// regressions.
func (o *Found) Marks(finding string) []record.FalseAlarm {
	var marks []record.FalseAlarm
	add := func(name, event, what string) {
		known := slices.ContainsFunc(marks, func(m record.FalseAlarm) bool { return m.Fingerprint == name })
		if !known && len(marks) < record.MaxMarked {
			marks = append(marks, record.FalseAlarm{Fingerprint: name, Iteration: o.Iteration, Event: event,
				What: policy.Clip(what, maxMarkText)})
		}
	}
	for i := range o.Regressions {
		g, id := &o.Regressions[i], EventID(o.Iteration, i)
		for _, name := range g.names() {
			if finding == "" || finding == id || strings.HasPrefix(name, finding) {
				add(name, id, g.Text)
			}
		}
	}
	for i := range o.Findings {
		f := &o.Findings[i]
		if name := f.Fingerprint(); finding != "" && strings.HasPrefix(name, finding) {
			add(name, "", f.Summary())
		}
	}
	return marks
}

// EventID names a regression: by its iteration and its place in that, from 0.
func EventID(iteration, at int) string { return fmt.Sprintf("reg-%03d-%d", iteration, at+1) }
