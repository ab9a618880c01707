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
	diff := ""
	for i := range r.Findings {
		c.finding(&r.Findings[i], diff)
		c.line("")
		diff = r.Findings[i].Diff
	}
	for i := range r.Waived {
		w := &r.Waived[i]
		if c.more(i, len(r.Waived)) {
			break
		}
		c.line("waived: %s", c.Out.Safe(fmt.Sprintf("%s [%s]: %s%s", headline(&w.Finding), w.Pattern, w.Waiver.Reason,
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

// headline returns a finding on one line.
func headline(f *Finding) string {
	named := f.Finding
	if named.File = plain(f.File); named.Subject == f.File {
		named.Subject = named.File
	}
	return named.Summary()
}

// finding prints a finding: a line for it, what changed, what to do, and how to waive it.
// above is the diff of the finding before it.
func (c *commands) finding(f *Finding, above string) {
	what := map[detect.Action]string{detect.Act: "REGRESSION", detect.Warn: "warning", detect.Tell: "hint"}[f.Action]
	text := c.Out.Safe(headline(f))
	if f.Action == detect.Act {
		what, text = c.Out.Bold(what), c.Out.Bold(text)
	}
	c.line("%s: %s", what, text)
	switch evidence := strings.TrimSpace(f.Evidence); {
	case f.Diff != "" && f.Diff == above:
		c.line("    (the same lines as above)")
	case f.Diff != "":
		for line := range strings.Lines(f.Diff) {
			line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
			c.line("    %s", c.Out.Diff(c.Out.Safe(line)))
		}
	case evidence != "" && !strings.Contains(headline(f), evidence):
		for line := range strings.SplitSeq(evidence, "\n") {
			c.line("    | %s", c.Out.Safe(strings.TrimRight(line, "\r")))
		}
	}
	c.line("    fix: %s", f.Advice)
	c.line("    %s", c.Out.Dim(fmt.Sprintf("rule: %s (%s, %s, confidence %.0f %%)", f.Pattern, f.Severity,
		tierName(f.Tier), 100*f.Confidence)))
	c.line("    %s", c.Out.Dim("waive: "+waiverLine(f)))
}

// waiverLine returns the line of a settings file that waives a finding.
func waiverLine(f *Finding) string {
	return fmt.Sprintf(`- {fingerprint: "%s", reason: "…"}`, f.Fingerprint)
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
const intended = "If a finding is intended, write its waive line with the reason below waivers: in " +
	rules.FileName + ", and commit that\nbefore the change. In a pull request, a reviewer can accept the findings of a " +
	"commit; see docs/check.md."
