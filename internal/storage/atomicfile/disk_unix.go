//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"syscall"
)

// DiskFull reports whether the error is a full disk or quota.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// ReadOnly reports whether the error is that writing is not permitted.
func ReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
