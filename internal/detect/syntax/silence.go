package syntax

import (
	"slices"
	"strings"
)

// Silence says what a mark that silences a tool says of it.
type Silence struct {
	// Rules is how many rules it names; 0 when it silences all of them, or a group.
	Rules int
	// Words are those of the reason that stands beside it, Longest the bytes of the
	// longest of them.
	Words, Longest int
}

// readSilence reads what a comment says after the piece by which a note was found.
func readSilence(note *commentRule, s string) Silence {
	s = s[strings.Index(s, note.S)+len(note.S):]
	n := 0
	for n < len(s) && (s[n] == '-' || lowerCase(s[n])) {
		n++
	}
	form, rest := s[:n], strings.TrimLeft(s[n:], "\t")
	var found Silence
	if note.Named == "-" { // its name says what
		found.Rules = 1
	} else if !strings.Contains(form, "line") || note.S != "@phpstan-ignore" {
		found.Rules, rest = ruleNames(note, rest)
	}
	for w := range strings.FieldsSeq(rest) {
		if strings.ContainsFunc(w, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c > 127 }) {
			found.Words++
			found.Longest = max(found.Longest, len(w))
		}
	}
	if note.S == "nosec" && found.Rules == 0 && found.Words >= nosecReason {
		found.Rules = 1 // of a checker of security, which seldom says more than one thing of a line
	}
	return found
}

// nosecReason is how many words say what a checker of security does not know.
const nosecReason = 3

func lowerCase(c byte) bool { return c >= 'a' && c <= 'z' }

// ruleNames counts the rules that a comment names, and returns what stands behind
// them. All rules, or a group of them, are none.
func ruleNames(note *commentRule, s string) (int, string) {
	opener := strings.TrimLeft(s, " ")
	switch {
	case s == "" || note.Named == "":
		return 0, s
	case opener != "" && strings.IndexByte(note.Named, opener[0]) >= 0:
		s = strings.TrimLeft(opener[1:], " ")
	case strings.Contains(note.Named, " ") && s[0] == ' ' || strings.HasSuffix(note.S, "[") ||
		strings.HasSuffix(note.S, " "):
		s = opener
	default:
		return 0, s
	}
	rules := 0
	for {
		n := 0
		for n < len(s) && ruleNameByte(s[n]) {
			n++
		}
		name := strings.TrimRight(s[:n], ":.")
		if name == "" || rules == 0 && startsReason(name, s[n:], note) {
			return rules, s
		}
		s = strings.TrimLeft(s[n:], " \"'")
		if standsForRules(name, note) {
			return 0, s
		}
		rules++
		if !strings.HasPrefix(s, ",") && !moreNames(s) {
			return rules, s
		}
		s = strings.TrimLeft(s, ", \"'")
	}
}

func ruleNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '/' || c == '.' || c == ':' || c == '@' || c == '*' || lowerCase(c) || c >= 'A' &&
		c <= 'Z' || c >= '0' && c <= '9'
}

// moreNames tells whether a list of names without commas goes on.
func moreNames(s string) bool {
	word, _, _ := strings.Cut(s, " ")
	return len(word) > 2 && strings.ContainsAny(word[1:len(word)-1], "-/") && lowerCase(word[0]) &&
		!strings.HasPrefix(word, "--") && !strings.Contains(word, "//") && !strings.HasSuffix(word, ",")
}

// prose tells of a word that is no name of a rule but the first one of a reason.
func startsReason(name, rest string, note *commentRule) bool {
	if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "*") && name != "*" {
		return true
	}
	if note.Named != " " && note.Named != " :" {
		return false
	}
	if strings.HasPrefix(note.S, "nosec") {
		return !strings.ContainsAny(name, "0123456789")
	}
	rest = strings.TrimLeft(rest, " ")
	plain := strings.IndexFunc(name[1:], func(c rune) bool { return c < 'a' || c > 'z' }) < 0
	return plain && rest != "" && lowerCase(rest[0])
}

// group tells of a name that stands for many rules.
func standsForRules(name string, note *commentRule) bool {
	return strings.EqualFold(name, "all") || name == "*" || name == "lint" || strings.HasPrefix(note.S, "rubocop") &&
		!strings.Contains(name, "/")
}

// isRuleGroup tells of the names that tools have for all their rules, or for many of them.
func isRuleGroup(name string) bool {
	switch strings.ToLower(name) {
	case "all", "*", "lint", "warnings", "unused", "clippy::all", "clippy::pedantic", "clippy::correctness",
		"clippy::suspicious", "clippy::style",
		"clippy::complexity", "clippy::perf", "clippy::restriction", "clippy::nursery":
		return true
	}
	return false
}

// switchesOff tells whether a comment that configures a tool switches a rule off.
func switchesOff(s string) bool {
	s = strings.NewReplacer(`"`, "", "'", "", " ", "", "[", "", "=", ":").Replace(strings.ToLower(s))
	return slices.ContainsFunc([]string{":0", ":off", ":false", ":none"},
		func(off string) bool { return strings.Contains(s, off) })
}
