//go:build !linux

package sandbox

// Enter returns false: this system has no sandbox.
func Enter() (isMaker bool) { return false }
