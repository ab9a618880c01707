//go:build !linux

package main

import (
	"os"
	"time"
)

func fdatasync(f *os.File) error { return f.Sync() }

// maxRSS is the most memory that a process took, in KiB; 0 where it is not known.
func maxRSS(*os.ProcessState) int64 { return 0 }

// processorTime is measured on Linux only.
func processorTime() time.Duration { return 0 }
