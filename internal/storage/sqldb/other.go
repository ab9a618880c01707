//go:build !linux

package sqldb

// registerVFS returns no name: SQLite uses its own VFS.
func registerVFS() (string, error) { return "", nil }

// checkFileSystem knows the types of file systems only on Linux.
func checkFileSystem(string) error { return nil }
