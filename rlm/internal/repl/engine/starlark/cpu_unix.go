//go:build unix

package starlark

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
