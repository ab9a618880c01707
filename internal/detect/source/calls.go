package source

// called tells whether the word at i is called: f(x), or f<T>(x).
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

// maxTypes is how many tokens the types between a name and its parenthesis may have.
const maxTypes = 40

// failedCall finds the name of the call whose error a check of Go is about: the
// statement in the condition, or the one before it; -1 for none.
func (u *unit) failedCall(i, from, to int) int {
	name := -1
	for j := from; j < to; j++ {
		if u.at(j) == "(" && u.isWord(j-1) {
			return j - 1
		}
	}
	for j := i - 1; j > max(0, i-80); j-- {
		if u.at(j) == "(" && u.isWord(j-1) && u.tok[j-1].Line >= u.tok[i-1].Line-3 {
			name = j - 1
		}
		if u.at(j) == "=" || u.at(j) == ":=" {
			break
		}
	}
	return name
}
