//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"syscall"
)

// DiskFull tells whether an error is that there is no room left.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// ReadOnly tells whether an error is that nothing may be written.
func ReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
