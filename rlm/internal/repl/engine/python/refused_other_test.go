//go:build !linux

package python_test

// withoutNamespaces has no meaning where there are no sandboxes at all.
func withoutNamespaces(bool) string { return "" }
