//go:build !linux && !darwin

package handoff

import (
	"io/fs"
	"time"
)

// changeTime is not known on this system: every file is read.
func changeTime(fs.FileInfo) (time.Time, bool) { return time.Time{}, false }

func stampOf(fs.FileInfo) string { return "" }

func notDirectory(error) bool { return false }
