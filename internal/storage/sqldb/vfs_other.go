//go:build !linux

package sqldb

// registerVFS returns no name: SQLite uses its own VFS.
func registerVFS() (string, error) { return "", nil }
