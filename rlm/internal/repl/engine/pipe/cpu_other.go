//go:build !linux

package pipe

import "time"

// processorTime returns 0: the limit of the process itself has to do.
func processorTime(int) time.Duration { return 0 }

// processesBeside returns -1: no limit, because all processes of the user would count.
func processesBeside(int) int { return -1 }
