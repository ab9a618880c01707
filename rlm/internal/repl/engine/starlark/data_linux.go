package starlark

import "golang.org/x/sys/unix"

// limitData has the system refuse this process more memory than so many bytes. The process ends
// then: one value can need much memory before limits.watch looks again.
func limitData(bytes int64) error {
	most := uint64(bytes) //nolint:gosec // positive
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}
