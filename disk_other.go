//go:build !unix

package perdure

import (
	"errors"
	"io/fs"
)

func isDiskFull(error) bool { return false }

func isReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }
