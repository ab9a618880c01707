//go:build !linux

package python_test

// withoutSandbox has no meaning where there are no sandboxes at all.
func withoutSandbox(bool) string { return "" }
