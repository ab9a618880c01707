//go:build !unix

package starlark

import "time"

// processorTime returns 0: without a sandbox there is no limit.
func processorTime() time.Duration { return 0 }
