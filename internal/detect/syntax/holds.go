package syntax

// alwaysHolds reports whether no value fails a condition: a size that is not negative, a result
// that is ok or an error.
func (u *unit) alwaysHolds(begin, end int) bool {
	for j := begin; j < end; j++ {
		switch s := u.at(j); {
		case s == ">=" && u.at(j+1) == "0" && (u.at(j+2) == ")" || u.at(j+2) == "," || j+2 >= end):
			return u.sizeBefore(j, begin)
		case s == "||" && u.at(j-1) == ")" && u.at(j-3) == "is_ok":
			if anyOf(j+1, end, func(k int) bool { return u.at(k) == "is_err" }) {
				return true
			}
		}
	}
	return false
}

// sizeBefore reports whether the expression that ends before i is a size.
func (u *unit) sizeBefore(i, begin int) bool {
	for j := i - 1; j >= begin && j > i-12; j-- {
		switch plain(u.at(j)) {
		case "size", "length", "len", "count":
			return true
		case "&&", "||", "and", "or", "-":
			return false
		}
	}
	return false
}

// Weak reports whether an assertion tests at most that a value exists.
func (a *Assertion) Weak() bool { return a.Strength <= Weak }

// Expects reports whether an assertion expects an error.
func (a *Assertion) Expects() bool {
	return containsAny(plain(a.Name), "throw", "raise", "panic", "reject", "exception", "fail", "err")
}
