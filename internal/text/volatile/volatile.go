// Package volatile finds the parts of names that differ from run to run: times, ports,
// addresses, random IDs, temporary folders. Names of tests and of files are compared without
// them.
package volatile

import (
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Forms of the parts, for all runners.
var (
	// timing matches the time that a runner appends to the name of a test (bats -T).
	timing = lazyregexp.New(`(?:\s+#)?\s+in \d+(?:\.\d+)? ?m?s(?:ec)?$|\s+[\[(]\d+(?:\.\d+)? ?(?:ns|[uµμ]s|ms|s)[\])]$`)
	// varying matches parts that show by their form that they may differ in each run.
	varying = lazyregexp.New(strings.Join([]string{
		`\b[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\b`, // UUID
		`\b[0-9A-HJKMNP-TV-Z]{26}\b`, // ULID
		dates, clockForm,
		`(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm|run/user)/[^\s"'\])},;]+`,
		`[A-Za-z]:\\(?:[^\\\s]+\\)*Temp\\[^\s"'\])},;]+`,
		`\bpytest-of-\w+/pytest-\d+[^\s"'\])},;]*`,
		`\b0x[0-9a-fA-F]{5,}\b`, `@[0-9a-f]{5,}\b`, // addresses
		`(?i:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[::1?\]|\[::\]):\d{2,5}\b`, `:\d{4,5}\b`,
		`(?i:\b(?:port|pid|seed|tid)[ =:#-]*(?:0x)?[0-9a-f]*\d[0-9a-f]*\b)`,
		`\b1[5-9]\d{8}(?:\d{3}){0,3}\b`, // Unix time
		`\b\d+(?:[.,]\d+)? ?(?:ns|[uµμ]s|ms|s|secs?|seconds?)\b`,
		`\b\d+\.\d{6,}(?:e[-+]?\d+)?\b`, // random fractions
		`\b[0-9a-f]{7,64}\b`,            // hashes; words and numbers are excepted
	}, "|"))
	// numbers matches all numbers, and lists of them after each was replaced.
	numbers     = lazyregexp.New(`[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?`)
	numberLists = lazyregexp.New(`#(?:[\s,;|]+#)+`)
	// clocks matches times of the day.
	clocks = lazyregexp.New(clockForm)
	// large matches numbers that look like ports, process IDs or seeds.
	large = lazyregexp.New(`\d{4,}`)
)

// Forms of dates and of times of the day.
const (
	dates = `\b(?:\d{4}-\d{2}-\d{2}|\d{4}/\d{2}/\d{2}|20\d{6})(?:[T _-]\d{2}[:.h-]?\d{2}(?:[:.-]?\d{2}(?:[.,]\d+)?)?` +
		`(?:Z| ?[+-]\d{2}:?\d{2})?)?\b|` +
		`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}` +
		`(?:,? \d{4})?(?: \d{2}:\d{2}(?::\d{2})?)?(?: GMT[+-]\d{4})?(?: \([A-Z][\w ]*\))?(?: \d{4})?\b`
	clockForm = `\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?\b`
)

// Untimed returns a name without the time that a runner appended.
func Untimed(id string) string { return timing().ReplaceAllString(id, "") }

// Steady returns a name with marks in place of the parts that look volatile.
func Steady(id string) string {
	return varying().ReplaceAllStringFunc(Untimed(id), func(part string) string {
		if isWord(part) {
			return part
		}
		return "~"
	})
}

// isWord reports whether a part is a word of the letters a to f, or a plain number.
func isWord(part string) bool {
	letters := strings.Trim(part, "abcdef") == ""
	digits := strings.Trim(part, "0123456789") == ""
	return letters || digits && len(part) < 10 && !strings.HasPrefix(part, "20")
}

// Shape returns a name without numbers and volatile parts. Lists of numbers of
// different lengths have the same shape.
func Shape(id string) string {
	return numberLists().ReplaceAllString(numbers().ReplaceAllString(Steady(id), "#"), "#")
}

// IsSuspect reports whether a name may differ in the next run.
func IsSuspect(id string) bool { return Steady(id) != id || large().MatchString(id) }

// HoldsNow reports whether a name holds the present day or time of the day. Such a
// name stays the same for a while only.
func HoldsNow(id string, now time.Time) bool {
	for _, t := range []time.Time{now.UTC(), now.Local()} {
		for _, layout := range []string{"2006-01-02", "2006/01/02", "20060102", "Jan 2", "January 2", "2 Jan", "02.01.2006",
			"01/02/2006"} {
			if strings.Contains(id, t.Format(layout)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(clocks().FindAllString(id, -1), func(clock string) bool { return isNear(clock, now) })
}

// isNear reports whether a time of the day is within ten minutes of now, in any time zone
// that differs by full half hours.
func isNear(clock string, now time.Time) bool {
	t, err := time.Parse("15:04", clock[:strings.IndexByte(clock, ':')+3])
	const zone, near = 30, 10
	apart := ((now.Minute()-t.Minute())%zone + zone) % zone
	return err == nil && min(apart, zone-apart) <= near
}
