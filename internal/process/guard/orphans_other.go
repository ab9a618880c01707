//go:build unix && !linux

package guard

// adoptsOrphans, adoptNoOrphans, endOrphans and protect do nothing: the system cannot do
// it.
func adoptsOrphans() bool { return false }

func adoptNoOrphans() {}

func endOrphans(func(pid int) bool) {}

func protect() {}

// awaitEnd returns at once: a stopped guard stays stopped.
func awaitEnd(int) {}
