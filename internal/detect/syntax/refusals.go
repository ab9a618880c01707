package syntax

import (
	"sync"
)

// roundOf returns the beginning of the names that the condition of the statement at i is about: its
// own, or the list of the loop around it if that has no other statement.
func (u *unit) roundOf(i, from int) int {
	if s := u.at(i - 1); s != "{" && s != ":" && u.lang.shape != ends || u.lang.shape == ends && !u.tok[i].First {
		return from
	}
	for j := i - 2; j > max(0, i-20) && u.at(j) != ";" && u.at(j) != "}"; j-- {
		if u.isWord(j) && rounds()[u.at(j)] {
			return j + 1
		}
	}
	return from
}

var rounds = sync.OnceValue(wordSet("for foreach each forEach"))
