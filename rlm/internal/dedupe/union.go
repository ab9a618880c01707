// Package dedupe joins answers, shortens them, and finds out which of them
// say the same. It does not depend on tasks or models.
package dedupe

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Nothing is what a model is asked to say about a part that does not help; it is
// left out when another part does.
const Nothing = "(nothing in this part)"

// Concatenate joins answers with a blank line between them.
func Concatenate(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		t = strings.TrimRight(t, " \t\r\n")
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(t)
	}
	return b.String()
}

// Union joins answers in their order and leaves out what an
// earlier text has exactly: whole blocks, or lines where every text is a plain
// list of different lines.
func Union(texts []string) string { return union(texts, func(string) bool { return true }) }

// UnionOfLong is Union that leaves out long text only: equal numbers, short values and JSON of
// different parts are different findings.
func UnionOfLong(texts []string) string { return union(texts, isLong) }

func union(texts []string, removable func(unit string) bool) string {
	texts = helpful(texts)
	if plainLines(texts) {
		lines := func(t string) []string { return strings.Split(t, "\n") }
		return strings.Join(unseen(texts, lines, removable), "\n")
	}
	return Concatenate(unseen(texts, blocks, removable))
}

// longText is the least number of characters of a text whose repetition says nothing new.
const longText = 40

// isLong reports whether a unit is prose: long enough, mostly of letters, and no JSON.
func isLong(unit string) bool {
	unit = strings.TrimSpace(unit)
	letters, all := 0, 0
	for _, r := range unit {
		all++
		if unicode.IsLetter(r) || unicode.IsSpace(r) {
			letters++
		}
	}
	return all >= longText && 2*letters > all && !isJSON(unit)
}

// isJSON reports whether a unit is a value of JSON, in a fence or not, or the beginning of one.
func isJSON(unit string) bool {
	first, rest, ok := strings.Cut(unit, "\n")
	if ok && (strings.HasPrefix(first, "```") || strings.HasPrefix(first, "~~~")) {
		unit = strings.TrimSpace(rest)
	}
	return unit != "" && strings.ContainsRune("{[\"", rune(unit[0])) || json.Valid([]byte(unit))
}

// helpful drops answers that say only that nothing was found, unless all do.
func helpful(texts []string) []string {
	out := make([]string, 0, len(texts))
	empty := ""
	for _, t := range texts {
		t = strings.Trim(t, "\r\n")
		switch strings.TrimSpace(t) {
		case "":
		case Nothing:
			empty = Nothing
		default:
			out = append(out, t)
		}
	}
	if len(out) == 0 && empty != "" {
		return []string{empty}
	}
	return out
}

// unseen cuts text into units and returns those that no earlier text has.
// What a text repeats by itself stays.
func unseen(texts []string, cut func(string) []string, removable func(unit string) bool) []string {
	var out []string
	seen := make(map[string]bool)
	for _, t := range texts {
		units := cut(t)
		for _, u := range units {
			if !seen[strings.TrimSpace(u)] || !removable(u) {
				out = append(out, u)
			}
		}
		for _, u := range units {
			seen[strings.TrimSpace(u)] = true
		}
	}
	return out
}

// plainLines reports whether each text is a list of different lines: then a line
// can be left out without breaking what is around it.
func plainLines(texts []string) bool {
	for _, t := range texts {
		seen := make(map[string]bool)
		for line := range strings.SplitSeq(t, "\n") {
			line = strings.TrimSpace(line)
			if line == "" || seen[line] || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
				return false
			}
			seen[line] = true
		}
	}
	return true
}

// blocks cuts a text at blank lines outside of fences.
func blocks(text string) []string {
	var out, block []string
	end := func() {
		if len(block) > 0 {
			out = append(out, strings.Join(block, "\n"))
			block = nil
		}
	}
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"):
			fence = "```"
		case strings.HasPrefix(trimmed, "~~~"):
			fence = "~~~"
		case trimmed == "":
			end()
			continue
		}
		block = append(block, line)
	}
	end()
	return out
}
