//go:build !unix

package atomicfile

import (
	"errors"
	"io/fs"
)

// DiskFull tells whether an error is that there is no room left.
func DiskFull(error) bool { return false }

// ReadOnly tells whether an error is that nothing may be written.
func ReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }
