package check

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/text/human"
)

// maxListed bounds the lists of waived and skipped files.
const maxListed = 50

func (c *commands) line(format string, args ...any) { c.Printf(format+"\n", args...) }

// text prints the report as text.
func (c *commands) text(r *Report) {
	file, advised := "", make(map[detect.Type]bool)
	for i := range r.Findings {
		f := &r.Findings[i]
		if i == 0 || f.File != file {
			file = f.File
			c.line("%s", c.Out.Bold(c.Out.Safe(cmp.Or(plain(file), "(the whole change)"))))
		}
		c.finding(f)
		if advice := adviceOf(f.Type); f.Action == detect.Act && !advised[f.Type] {
			advised[f.Type] = true
			c.line("      %s", c.Out.Dim("→ "+advice))
		}
	}
	if len(r.Findings) > 0 {
		c.line("")
	}
	for i := range r.Waived {
		w := &r.Waived[i]
		if c.more(i, len(r.Waived)) {
			break
		}
		c.line("waived: %s", c.Out.Safe(fmt.Sprintf("%s %s: %s%s", place(&w.Finding), w.Pattern, w.Waiver.Reason,
			by(&w.Waiver))))
	}
	for i, s := range r.Skipped {
		if c.more(i, len(r.Skipped)) {
			break
		}
		c.line("not analysed: %s", c.Out.Safe(strings.TrimPrefix(plain(s.File)+": "+s.Why, ": ")))
	}
	for _, note := range r.Notes {
		c.line("note: %s", c.Out.Safe(note))
	}
	c.line("%s", c.Out.Bold(c.Out.Safe(r.summary())))
	if r.Verdict == detect.Block {
		c.line("%s", c.Out.Dim(intended))
	}
}

// more reports whether to end a list, and prints how many are omitted.
func (c *commands) more(i, n int) bool {
	if i < maxListed {
		return false
	}
	c.line("… and %d more", n-maxListed)
	return true
}

func by(w *detect.Waiver) string {
	if w.By == "" {
		return ""
	}
	return " (" + w.By + ")"
}

// plain returns the name of a file, quoted if it contains control characters.
func plain(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}

// place returns the file and line of a finding.
func place(f *Finding) string {
	if f.Line == 0 {
		return plain(f.File)
	}
	return fmt.Sprintf("%s:%d", plain(f.File), f.Line)
}

// finding prints a finding.
func (c *commands) finding(f *Finding) {
	at := place(f)
	if f.Gone {
		at += " (before)"
	}
	what := map[detect.Action]string{detect.Act: "REGRESSION", detect.Warn: "warning", detect.Tell: "hint"}[f.Action]
	text := f.Message
	if f.Subject != "" && f.Subject != f.File && !strings.Contains(text, f.Subject) {
		text += ": " + f.Subject
	}
	if f.Action == detect.Act {
		what = c.Out.Bold(what)
	}
	c.line("  %s  %s  %s", c.Out.Safe(at), what, c.Out.Safe(text))
	c.line("      %s", c.Out.Dim(
		c.Out.Safe(fmt.Sprintf("%s, %s, tier %d (%s), %s, confidence %.0f%%, %s", f.Type, f.Pattern, f.Tier,
			tierName(f.Tier), f.Severity, 100*f.Confidence, f.Fingerprint))))
	if evidence := strings.TrimSpace(f.Evidence); evidence != "" && evidence != f.Message {
		for line := range strings.SplitSeq(evidence, "\n") {
			c.line("      | %s", c.Out.Safe(strings.TrimRight(line, "\r")))
		}
	}
}

func tierName(t detect.Tier) string {
	return cmp.Or(map[detect.Tier]string{detect.Fact: "fact", detect.Sign: "strong sign"}[t], "hint")
}

// summary returns the last line of the report.
func (r *Report) summary() string {
	count := make(map[detect.Action]int)
	for i := range r.Findings {
		count[r.Findings[i].Action]++
	}
	text := fmt.Sprintf("%s: %s, %s, %s in %s", r.Verdict, human.Count(count[detect.Act], "regression"),
		human.Count(count[detect.Warn], "warning"), human.Count(count[detect.Tell], "hint"),
		human.Count(r.Files, "changed file"))
	if n := len(r.Waived); n > 0 {
		text += fmt.Sprintf(", %d waived", n)
	}
	if n := len(r.Skipped); n > 0 {
		text += fmt.Sprintf(", %d not analysed", n)
	}
	if r.Mode == detect.Off {
		text = "detection is off: no files were compared"
	}
	return fmt.Sprintf("%s (%s mode; %s)", text, r.Mode, r.Compared)
}

// intended is the advice for an intended change.
const intended = "If a change is intended, add a waiver with its reason to " + rules.FileName +
	" and commit it before the change (see docs/check.md)."

// adviceOf returns the advice for a regression.
func adviceOf(t detect.Type) string {
	advice := map[detect.Type]string{
		detect.TestDeletion:       "restore the test; moved, renamed and merged tests are recognized by their content",
		detect.TestSkipping:       "enable the test and fix the failure; if the test is wrong, correct it and say why",
		detect.AssertionWeakening: "restore the assertion and fix the code, not the test",
		detect.CoverageRegression: "test the uncovered code instead of excluding it",
		detect.ValidationBypass:   "restore the validation, also where no test covers it",
		detect.ErrorSuppression:   "handle or return the error; suppress a warning only by its name and with a reason",
		detect.FeatureRemoval:     "restore the feature, or remove it with its tests and callers, and add a waiver",
		detect.TestFailure:        "fix the failure",
		detect.RunIncomplete:      "let the test run finish",
		detect.ProtectedChange:    "undo the change, or commit it separately for review",
	}
	return cmp.Or(advice[t], "undo the change")
}
