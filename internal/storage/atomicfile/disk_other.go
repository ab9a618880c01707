//go:build !unix

package atomicfile

import (
	"errors"
	"io/fs"
)

// DiskFull reports whether the error is a full disk.
func DiskFull(error) bool { return false }

// ReadOnly reports whether the error is that writing is not permitted.
func ReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }
