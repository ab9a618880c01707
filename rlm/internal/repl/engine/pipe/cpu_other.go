//go:build !linux && !darwin

package pipe

import "time"

// watchEvery is how often the host reads what the process uses.
const watchEvery = time.Second

// processorTime returns 0: the limit of the process itself has to do.
func processorTime(int) time.Duration { return 0 }

// memoryOf returns 0, as processorTime.
func memoryOf(int) int64 { return 0 }

// processesBeside returns -1: no limit, because all processes of the user would count.
func processesBeside(int) int { return -1 }
