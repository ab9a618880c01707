package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// readSofter notes words that report failures, and calls of variants that do not fail.
func (u *unit) readSofter(f *Function, d *decl) {
	if f.Test || u.lang.Name == "go" {
		return
	}
	add := func(b *multiset.Hashes, name string) {
		if name != "" {
			*b = append(*b, Hash(name))
		}
	}
	for i := d.body; i < d.end; i++ {
		if !u.isWord(i) {
			continue
		}
		add(&f.Strict, u.strict(i))
		add(&f.Softer, u.softerThan(i))
		add(&f.Ignored, u.letGo(i, d.body))
	}
	for _, b := range []multiset.Hashes{f.Strict, f.Softer, f.Ignored} {
		slices.Sort(b)
	}
}

// strict returns the word at i if failures go unnoticed without it; empty for others.
func (u *unit) strict(i int) string {
	s := u.at(i)
	if failuresShown()[s] || (s == "check" || s == "strict") && u.at(i+1) == "=" && u.at(i+2) == "True" {
		return s
	}
	return ""
}

var failuresShown = sync.OnceValue(wordSet("raise_for_status EnsureSuccessStatusCode error_for_status " +
	"JSON_THROW_ON_ERROR throw_on_error raise_on_error throwOnError"))

// softerThan returns the failing variant of the call at i; empty for none.
func (u *unit) softerThan(i int) string {
	s := u.at(i)
	switch u.lang.Name {
	case "kotlin":
		if base, ok := strings.CutSuffix(s, "OrNull"); ok && u.at(i+1) == "(" && !u.elseFails(u.closer(i+1)) {
			return base
		}
		if s == "getOrDefault" && u.at(i+1) == "(" {
			return "getValue"
		}
	case "csharp":
		if base, ok := strings.CutSuffix(s, "OrDefault"); ok && u.at(i+1) == "(" && !u.elseFails(u.closer(i+1)) {
			return base
		}
	case "java":
		if s == "orElse" || s == "orElseGet" {
			return "orElseThrow"
		}
	case "ruby":
		switch {
		case u.at(i-1) == "." && oneOf(s, "save", "update", "create", "destroy"):
			return s + "!"
		case s == "to_i":
			return "Integer"
		case s == "to_f":
			return "Float"
		}
	case "javascript", "typescript":
		if s == "decode" && strings.Contains(strings.ToLower(u.at(i-2)), "jwt") {
			return "verify"
		}
		if s == "allSettled" && !u.looksAtOutcome() {
			return "all"
		}
	}
	return ""
}

// looksAtOutcome reports whether the file tests the outcome of promises.
func (u *unit) looksAtOutcome() bool {
	return slices.ContainsFunc(u.tok, func(t lex.Token) bool {
		return t.S == "reason" || t.S == "rejected" || t.S == "'rejected'" || t.S == `"rejected"`
	})
}

// elseFails reports whether the code after i throws or leaves if there is no value.
func (u *unit) elseFails(i int) bool {
	s := u.at(i + 1)
	return (u.at(i) == "?:" || u.at(i) == "??") && (u.lang.throws[s] || s == "return" || s == "error" || s == "continue")
}

// letGo returns the call whose failure is dropped at i; empty for none.
func (u *unit) letGo(i, begin int) string {
	s := u.at(i)
	switch u.lang.Name {
	case "rust":
		switch {
		case s == "unwrap_or" || s == "unwrap_or_default" || s == "unwrap_or_else" && u.replacesError(i+1), s == "ok" &&
			u.at(i-1) == "." && u.at(i+1) == "(" && u.at(i+3) != "?" && u.at(i+4) != "ok_or" && u.at(i+4) != "ok_or_else":
			return u.calledBefore(i-1, begin)
		case s == "flat_map" && u.at(i+1) == "(":
			return u.at(u.closer(i+1) - 2)
		case s == "Err" && u.at(i+2) == "_" && u.at(i+4) == "=>" && u.at(i+5) == "Ok":
			return u.matched(i, begin)
		}
	case "ruby":
		if s == "exception" && u.at(i+1) == ":" && u.at(i+2) == "false" {
			for j := i; j > begin && i-j < maxTypes; j-- {
				if u.at(j) == "(" && u.isWord(j-1) {
					return u.at(j - 1)
				}
			}
		}
	case "php":
		if u.at(i-1) == "@" && u.at(i+1) == "(" && !cleanNames()[s] {
			return s
		}
	}
	return ""
}

// calledBefore returns the call that the chain has before the dot at i.
func (u *unit) calledBefore(i, begin int) string {
	for u.at(i) == "." && u.at(i-1) == ")" {
		open := u.opener(i - 1)
		if open <= begin {
			return ""
		}
		if u.at(open-1) == ">" { // parse::<u32>()
			for open > begin && u.at(open) != "::" {
				open--
			}
		}
		if s := u.at(open - 1); s != "await" && s != "map" && s != "map_err" {
			return s
		}
		i = open - 2
	}
	return ""
}

// matched returns the call whose result the match around the arm at i tests.
func (u *unit) matched(i, begin int) string {
	for j := i; j > begin && i-j < maxBlock; j-- {
		if u.at(j) == "match" {
			for k := j + 1; k < i; k++ {
				if u.at(k) == "{" && u.at(k-1) == ")" {
					return u.at(u.opener(k-1) - 1)
				}
			}
		}
	}
	return ""
}
