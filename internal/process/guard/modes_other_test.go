//go:build !linux

package guard_test

// special: there are no modes of this system.
func special(string) bool { return false }
