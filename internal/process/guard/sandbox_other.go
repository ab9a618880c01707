//go:build unix && !linux && !darwin

package guard

import "github.com/perdure/perdure/internal/process/sandbox"

// startInSandbox refuses: the system has no sandbox.
func startInSandbox(*order) (int, []string, error) {
	return 0, nil, &sandbox.Error{Op: "create namespaces", Err: sandbox.ErrUnsupported, Refused: true}
}
