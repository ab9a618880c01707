package syntax

import "strings"

// Silence is the scope of a suppressed warning and the length of its reason.
type Silence struct {
	// Rules is the number of rules that it names; 0 for all rules or a group of them.
	Rules int
	// Words counts the words of the reason, Longest is the length of the longest in bytes.
	Words, Longest int
}

// readSilence reads the comment after the text that a rule matched.
func readSilence(note *commentRule, s string) Silence {
	s = s[strings.Index(s, note.S)+len(note.S):]
	n := 0
	for n < len(s) && (s[n] == '-' || lowerCase(s[n])) {
		n++
	}
	form, rest := s[:n], strings.TrimLeft(s[n:], "\t")
	var found Silence
	if note.Named == "-" { // the name contains the scope
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
		found.Rules = 1 // nosec usually suppresses one rule
	}
	return found
}

// nosecReason is the number of words that make a reason for nosec.
const nosecReason = 3

func lowerCase(c byte) bool { return c >= 'a' && c <= 'z' }

// ruleNames counts the rules that a comment names, and returns the text after them. It returns 0
// for all rules or a group.
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

// moreNames reports whether a list of names without commas continues.
func moreNames(s string) bool {
	word, _, _ := strings.Cut(s, " ")
	return len(word) > 2 && strings.ContainsAny(word[1:len(word)-1], "-/") && lowerCase(word[0]) &&
		!strings.HasPrefix(word, "--") && !strings.Contains(word, "//") && !strings.HasSuffix(word, ",")
}

// startsReason reports whether a word is the first one of a reason and not the name of a rule.
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

// standsForRules reports whether a name is that of many rules.
func standsForRules(name string, note *commentRule) bool {
	return strings.EqualFold(name, "all") || name == "*" || name == "lint" || strings.HasPrefix(note.S, "rubocop") &&
		!strings.Contains(name, "/")
}

// isRuleGroup reports whether a name is one by which tools mean all or many of their rules.
func isRuleGroup(name string) bool {
	switch strings.ToLower(name) {
	case "all", "*", "lint", "warnings", "unused", "clippy::all", "clippy::pedantic", "clippy::correctness",
		"clippy::suspicious", "clippy::style",
		"clippy::complexity", "clippy::perf", "clippy::restriction", "clippy::nursery":
		return true
	}
	return false
}

// switchesOff reports whether a comment that configures a tool switches a rule off.
func switchesOff(s string) bool {
	s = strings.NewReplacer(`"`, "", "'", "", " ", "", "[", "", "=", ":").Replace(strings.ToLower(s))
	return containsAny(s, ":0", ":off", ":false", ":none")
}
