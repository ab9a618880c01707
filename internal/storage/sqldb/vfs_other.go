//go:build !linux

package sqldb

// registerVFS returns the name of SQLite's file system layer to use: its own.
func registerVFS() (string, error) { return "", nil }
