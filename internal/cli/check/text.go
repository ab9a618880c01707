package check

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/text/human"
)

// maxListed is how many lines of what does not act are shown to people.
const maxListed = 50

func (c *commands) line(format string, args ...any) { c.Printf(format+"\n", args...) }

// text tells people.
func (c *commands) text(r *Report) {
	file, advised := "", make(map[detect.Type]bool)
	for i := range r.Findings {
		f := &r.Findings[i]
		if i == 0 || f.File != file {
			file = f.File
			c.line("%s", c.Out.Bold(c.Out.Safe(orAll(plain(file)))))
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
		c.line("%s", c.Out.Dim(meant))
	}
}

// more ends a list that is too long, and says how long it is.
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

func orAll(file string) string {
	if file == "" {
		return "(the whole change)"
	}
	return file
}

// plain is a name of a file on one line: one with line breaks in it could write lines
// of its own, and one with other such characters colours.
func plain(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}

// place is where a finding is.
func place(f *Finding) string {
	if f.Line == 0 {
		return plain(f.File)
	}
	return fmt.Sprintf("%s:%d", plain(f.File), f.Line)
}

// finding shows one.
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
		c.Out.Safe(fmt.Sprintf("%s, %s, tier %d (%s), %s, %.0f %% sure, %s", f.Type, f.Pattern, f.Tier,
			tierName(f.Tier), f.Severity, 100*f.Confidence, f.Fingerprint))))
	if evidence := strings.TrimSpace(f.Evidence); evidence != "" && evidence != f.Message {
		for line := range strings.SplitSeq(evidence, "\n") {
			c.line("      | %s", c.Out.Safe(strings.TrimRight(line, "\r")))
		}
	}
}

func tierName(t detect.Tier) string {
	switch t {
	case detect.Fact:
		return "fact"
	case detect.Sign:
		return "strong sign"
	case detect.Hint:
	}
	return "hint"
}

// summary is the last line.
func (r *Report) summary() string {
	count := make(map[detect.Action]int)
	for i := range r.Findings {
		count[r.Findings[i].Action]++
	}
	text := fmt.Sprintf("%s: %s, %s, %s in %s", r.Verdict, human.Count(int64(count[detect.Act]), "regression"),
		human.Count(int64(count[detect.Warn]), "warning"),
		human.Count(int64(count[detect.Tell]), "hint"), human.Count(int64(r.Files), "changed file"))
	if n := len(r.Waived); n > 0 {
		text += fmt.Sprintf(", %d waived", n)
	}
	if n := len(r.Skipped); n > 0 {
		text += fmt.Sprintf(", %d not analysed", n)
	}
	if r.Mode == detect.Off {
		text = "detection is off: nothing was looked at"
	}
	return fmt.Sprintf("%s (%s mode; %s)", text, r.Mode, r.Compared)
}

// meant is what to do about a change that is meant.
const meant = "A change that is meant needs the word of a person, not a way around: a waiver with its reason in " +
	rules.FileName +
	", committed alone and before it (a person passes the hook with git commit --no-verify; docs/check.md)."

// adviceOf says what to do about a regression.
func adviceOf(t detect.Type) string {
	switch t {
	case detect.TestDeletion:
		return "bring the test back; one that moved, was renamed or merged is found again by what it holds"
	case detect.TestSkipping:
		return "let it run again and mend what fails; if the test is wrong, say why and correct it"
	case detect.AssertionWeakening:
		return "assert what was asserted before; mend the code, not the test"
	case detect.CoverageRegression:
		return "test what is not tested any more instead of leaving it out"
	case detect.ValidationBypass:
		return "let the check work as before, also where no test looks"
	case detect.ErrorSuppression:
		return "handle the error or hand it on; silence a complaint only by its name and with a reason"
	case detect.FeatureRemoval:
		return "bring it back; what is given up for good goes with its tests and its callers, and with a waiver"
	case detect.TestFailure:
		return "mend what the test found"
	case detect.RunIncomplete:
		return "let the run come to its end"
	case detect.ProtectedChange:
		return "take the change back, or keep it in a commit of its own that a person looks at"
	}
	return "take it back"
}
