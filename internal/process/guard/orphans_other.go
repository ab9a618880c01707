//go:build unix && !linux

package guard

import "github.com/perdure/perdure/internal/process/sandbox"

// startInSandbox refuses: only Linux has a sandbox.
func startInSandbox(*order) (int, []string, error) {
	return 0, nil, &sandbox.Error{Op: "create namespaces", Err: sandbox.ErrUnsupported, Refused: true}
}

// adoptsOrphans, adoptNoOrphans, endOrphans and protect do nothing: the system cannot do
// it.
func adoptsOrphans() bool { return false }

func adoptNoOrphans() {}

func endOrphans(func(pid int) bool) {}

func protect() {}

// awaitEnd returns at once: a stopped guard stays stopped.
func awaitEnd(int) {}
