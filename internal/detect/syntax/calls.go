package syntax

import "strings"

// called reports whether the word at i is called: f(x), or f<T>(x).
func (u *unit) called(i int) bool {
	if !u.isWord(i) {
		return false
	}
	j := i + 1
	if u.at(j) == "::" { // Rust
		j++
	}
	if u.at(j) != "<" {
		return u.at(i+1) == "("
	}
	for depth := 0; j < min(len(u.tok), i+maxTypes); j++ {
		switch s := u.at(j); {
		case s == "<":
			depth++
		case s == ">":
			if depth--; depth == 0 {
				return u.at(j+1) == "("
			}
		case !u.isWord(j) && s != "," && s != "." && s != "::" && s != "?" && s != "[" && s != "]":
			return false
		}
	}
	return false
}

// maxTypes is the maximum length of the type arguments of a call.
const maxTypes = 40

// resultOf returns the call that produced the variable of the condition [from, to), or the error
// passed to a callback; 0 for none.
func (u *unit) resultOf(i, from, to int) uint32 {
	for u.at(from) == "(" || u.at(from) == "!" {
		from++
	}
	if !u.isWord(from) || from >= to {
		return 0
	}
	name := u.at(from)
	for j := i - 1; j > max(0, i-80); j-- {
		switch s := u.at(j); {
		case (s == "=" || s == ":=") && u.at(j-1) == name && u.lang.Name == "go":
			for k := j + 1; k < i; k++ {
				if u.at(k) == "(" && u.isWord(k-1) {
					return Hash(u.at(k - 1))
				}
			}
			return 0
		case s == "=>" && strings.HasPrefix(name, "err"): // f(a, (err, b) => { if (err) ... })
			return u.calledBack(j, name)
		}
	}
	return 0
}
