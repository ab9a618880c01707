//go:build !unix

package caller

// HideArgument does nothing: the arguments of a process are not changed on this system.
func HideArgument(string) {}
