//go:build !unix

package caller

// HideValue does nothing: the arguments of a process are not changed on this system.
func HideValue(string) {}
