//go:build !linux && !darwin

package workspace

import (
	"io/fs"
	"os"
)

const openFlags = os.O_RDONLY

// sysStamp returns no stamp, without a change time: every file is read.
func sysStamp(fs.FileInfo) (stamp, bool) { return stamp{}, false }

func notDirectory(error) bool { return false }

func syncAll(*os.File) error { return nil }

const canSyncAll = false
