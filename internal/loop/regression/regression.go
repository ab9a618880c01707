package regression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Most limits the tests, files and findings that a regression names.
const Most = 50

// Regression is something that got worse, as an iteration records it.
type Regression struct {
	Type     string   `json:"regression_type"`
	Severity string   `json:"severity"`
	Text     string   `json:"text"`
	Tests    []string `json:"tests,omitempty"`
	Files    []string `json:"files,omitempty"`
	// Fingerprints identify the regression when a person marks it as a false alarm: one for
	// each of its findings, tests or files, or else one for all.
	Fingerprints []string `json:"fingerprints,omitempty"`
}

// Line returns the regression in one line, with the names of some of its tests.
func (g *Regression) Line() string {
	const most = 3
	named := func(test string) bool { return strings.Contains(g.Text, test) }
	if len(g.Tests) == 0 || slices.ContainsFunc(g.Tests, named) {
		return g.Text
	}
	line := g.Text + ": " + strings.Join(g.Tests[:min(len(g.Tests), most)], ", ")
	if more := len(g.Tests) - most; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// Worst returns the regression with the highest severity.
func Worst(all []Regression) Regression {
	order := []string{string(hook.Critical), string(hook.High), string(hook.Medium), string(hook.Low)}
	return slices.MinFunc(all, func(a, b Regression) int {
		return slices.Index(order, a.Severity) - slices.Index(order,
			b.Severity)
	})
}

// Signs returns the regressions that the files show and the test results do not, one for
// each type.
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

// Limits of the findings in a prompt, and of the text of a false alarm, in bytes.
const (
	shownFindings = 10
	maxFinding    = 240
	maxMarkText   = 500
)

// Warned returns the part of the next prompt that lists the findings that warn; empty if
// there are none.
func Warned(findings []detect.Finding) string {
	var b strings.Builder
	n := 0
	for i := range findings {
		if f := &findings[i]; f.Action == detect.Warn {
			if n++; n <= shownFindings {
				b.WriteString("- " + clip.Bytes(clip.OneLine(f.Summary()), maxFinding) + "\n")
			}
		}
	}
	if n == 0 {
		return ""
	}
	if n > shownFindings {
		fmt.Fprintf(&b, "- and %d more\n", n-shownFindings)
	}
	return "\n# Warnings about the changes\n\nA reviewer would ask about these. Correct what you did not intend, or " +
		"state a good reason in a comment.\n\n" + b.String()
}

// unmarked returns the names that are not marked. A list that was cut counts as unmarked.
func (g *Regression) unmarked(marked map[string]bool) []string {
	names := g.names()
	if len(g.Tests) >= Most || len(g.Files) >= Most {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return marked[name] })
}

// names returns the fingerprints of a regression.
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

// factName returns the fingerprint of a fact that is not a finding of package detect.
func factName(kind, name string) string {
	return (&detect.Finding{Pattern: kind, Subject: name}).Fingerprint()
}

// Found is the result of an iteration.
type Found struct {
	Iteration   int
	Regressions []Regression
	Findings    []detect.Finding
}

// Marks returns the false alarms to record for a regression (by its ID) or for findings
// (by the beginning of a fingerprint). Empty stands for all regressions.
func (o *Found) Marks(finding string) []record.FalseAlarm {
	var marks []record.FalseAlarm
	add := func(name, event, what string) {
		known := slices.ContainsFunc(marks, func(m record.FalseAlarm) bool { return m.Fingerprint == name })
		if !known && len(marks) < record.MaxMarked {
			marks = append(marks, record.FalseAlarm{Fingerprint: name, Iteration: o.Iteration, Event: event,
				What: clip.Bytes(what, maxMarkText)})
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

// EventID returns the ID of a regression, from its iteration and its index there.
func EventID(iteration, at int) string { return fmt.Sprintf("reg-%03d-%d", iteration, at+1) }
