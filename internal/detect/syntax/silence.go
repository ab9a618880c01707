package syntax

import "strings"

// Silence is what a comment or an attribute that suppresses warnings says.
type Silence struct {
	// Named is set if it names the rules that it suppresses, not all or a group of them.
	Named bool
	// Words is the number of words of the reason.
	Words int
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
	for w := range strings.FieldsSeq(rest) {
		if strings.ContainsFunc(w, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c > 127 }) {
			found.Words++
		}
	}
	switch note.S {
	case "@ts-ignore", "@ts-expect-error": // they name no rules; ordinary work uses them
		found.Named = true
	case "nosec": // a reason says which error is meant
		found.Named = namesRules(note, rest) || found.Words >= reasonWords
	case "@phpstan-ignore":
		found.Named = !strings.Contains(form, "line") && namesRules(note, rest)
	default:
		found.Named = namesRules(note, rest)
	}
	return found
}

// reasonWords is the number of words that make a reason.
const reasonWords = 3

func lowerCase(c byte) bool { return c >= 'a' && c <= 'z' }

// namesRules reports whether a comment names the rules that it suppresses.
func namesRules(note *commentRule, s string) bool {
	opener := strings.TrimLeft(s, " ")
	switch {
	case s == "" || note.Named == "":
		return false
	case opener != "" && strings.IndexByte(note.Named, opener[0]) >= 0:
		s = strings.TrimLeft(opener[1:], " ")
	case strings.Contains(note.Named, " ") && s[0] == ' ' || strings.HasSuffix(note.S, "[") ||
		strings.HasSuffix(note.S, " "):
		s = opener
	default:
		return false
	}
	named := false
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimLeft(part, " \"'")
		n := 0
		for n < len(part) && ruleNameByte(part[n]) {
			n++
		}
		name := strings.TrimRight(part[:n], ":.")
		if standsForRules(name, note) {
			return false
		}
		if name == "" || !named && startsReason(name, part[n:], note) {
			break
		}
		named = true
		if strings.Trim(part[n:], " \"'") != "" {
			break // the reason
		}
	}
	return named
}

func ruleNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '/' || c == '.' || c == ':' || c == '@' || c == '*' || lowerCase(c) || c >= 'A' &&
		c <= 'Z' || c >= '0' && c <= '9'
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
