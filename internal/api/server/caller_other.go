//go:build !linux

package server

// opens is not called: there is no supervisor.
func opens(int, string) bool { return true }
