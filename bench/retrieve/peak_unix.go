//go:build unix

package main

import (
	"os"
	"syscall"
)

// peak returns the peak memory of a process that ended, in KiB on Linux.
func peak(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss)
	}
	return 0
}
