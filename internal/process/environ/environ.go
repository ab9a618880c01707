// Package environ selects the environment variables that perdure passes to programs that
// it does not trust with the user's secrets: agents, and checks that run code of agents.
package environ

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Base returns the variables of env, "NAME=value", that are in the allow-list or match a
// pattern of add, in the order of env. A pattern is a name, or the beginning of names
// followed by *. On Windows names match in any case.
func Base(env, add []string) []string {
	l := newList(runtime.GOOS == "windows", add)
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !l.contains(nameOf(v)) })
}

// Withheld returns the sorted names of the variables of env that [Base] does not return.
func Withheld(env, add []string) []string {
	l := newList(runtime.GOOS == "windows", add)
	names := []string{}
	for _, v := range env {
		if name := nameOf(v); name != "" && name[0] != '=' && !l.contains(name) { // "=C:" is of Windows itself
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Unset returns those of the patterns that match no variable of env.
func Unset(env, patterns []string) []string {
	var unset []string
	for _, p := range patterns {
		if !slices.ContainsFunc(env, func(v string) bool { return Matches([]string{p}, nameOf(v)) }) {
			unset = append(unset, p)
		}
	}
	return unset
}

// Named returns those of the names that occur as words in one of the outputs.
func Named(names []string, outputs ...string) []string {
	const shortest = 3 // shorter ones occur by chance
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return len(name) < shortest ||
			!slices.ContainsFunc(outputs, func(text string) bool { return containsWord(text, name) })
	})
}

func containsWord(text, word string) bool {
	inWord := func(c byte) bool {
		return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for {
		i := strings.Index(text, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !inWord(text[i-1])) && (end == len(text) || !inWord(text[end])) {
			return true
		}
		text = text[end:] // no name begins within another occurrence
	}
}

// Matches reports whether a name matches one of the patterns; see [Base].
func Matches(patterns []string, name string) bool {
	l := &list{fold: runtime.GOOS == "windows", names: make(map[string]bool)}
	l.add(patterns)
	return l.contains(name)
}

// Check returns an error unless pattern is a name of a variable, or the beginning of names
// followed by *. The error does not contain a value.
func Check(pattern string) error {
	name, _, hasValue := strings.Cut(pattern, "=")
	switch {
	case hasValue:
		return fmt.Errorf("%.60q is followed by a value; write the name only, the value is taken from the environment",
			name)
	case pattern == "":
		return errors.New("the name of a variable is empty")
	case pattern == "*":
		return errors.New(`"*" would pass all variables; write names, or beginnings of names such as AWS_*`)
	case strings.Contains(strings.TrimSuffix(pattern, "*"), "*"):
		return fmt.Errorf("%.60q has a * that is not at its end", pattern)
	case strings.ContainsFunc(pattern, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return fmt.Errorf("%.60q contains a space or a control character", pattern)
	}
	return nil
}

// list is a set of names and of beginnings of names.
type list struct {
	fold     bool // names match in any case
	names    map[string]bool
	prefixes []string
}

func newList(fold bool, add []string) *list {
	l := &list{fold: fold, names: make(map[string]bool)}
	for _, g := range allowed() {
		l.add(g)
	}
	l.add(add)
	return l
}

func (l *list) add(patterns []string) {
	for _, p := range patterns {
		p = l.key(p)
		if prefix, isPrefix := strings.CutSuffix(p, "*"); isPrefix && prefix != "" {
			l.prefixes = append(l.prefixes, prefix)
		} else {
			l.names[p] = true
		}
	}
}

func (l *list) key(name string) string {
	if l.fold {
		return strings.ToUpper(name)
	}
	return name
}

func (l *list) contains(name string) bool {
	name = l.key(name)
	return l.names[name] ||
		slices.ContainsFunc(l.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// nameOf returns the name of a variable "NAME=value". Windows has variables whose name begins
// with "=".
func nameOf(v string) string {
	if v == "" {
		return ""
	}
	i := strings.IndexByte(v[1:], '=')
	if i < 0 {
		return v
	}
	return v[:i+1]
}

// LikelyNeeded returns at most limit of the names that most likely hold a secret, or that
// programs most likely need, secrets first.
func LikelyNeeded(names []string, limit int) []string {
	found := slices.Concat(Secrets(names), having(names, neededWords()))
	var first []string
	for _, name := range found {
		if len(first) < limit && !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// Secrets returns those of the names that look like names of secrets.
func Secrets(names []string) []string { return having(names, secretWords()) }

// having returns the names of which a part between underscores is one of the words.
func having(names, words []string) []string {
	var found []string
	for _, name := range names {
		for part := range strings.SplitSeq(strings.ToUpper(name), "_") {
			if slices.ContainsFunc(words, func(word string) bool {
				ok, err := path.Match(word, part)
				return ok && err == nil
			}) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

func secretWords() []string {
	return []string{"*KEY", "KEYS", "*TOKEN", "TOKENS", "*SECRET", "SECRETS", "*PASSWORD", "PASS", "*PASSWD", "PASSPHRASE",
		"*PWD", "PAT", "CREDENTIAL", "CREDENTIALS", "*AUTH", "DSN", "COOKIE", "CERT", "AWS", "AZURE", "DATABASE"}
}

func neededWords() []string {
	return []string{"URL", "URI", "HOST", "PORT", "ENDPOINT", "*PATH", "ENV", "OPTS", "OPTIONS", "*FLAGS", "HOME", "DIR",
		"ROOT", "FILE", "CONFIG", "PROFILE", "REGION", "PROJECT", "PRELOAD", "DISPLAY"}
}
