package syntax

// Weak reports whether an assertion tests at most that a value exists.
func (a *Assertion) Weak() bool { return a.Strength <= Weak }

// Expects reports whether an assertion expects an error.
func (a *Assertion) Expects() bool {
	return containsAny(plain(a.Name), "throw", "raise", "panic", "reject", "exception", "fail", "err")
}
