//go:build !linux

package blob_test

import "errors"

func mountSmallDisk(string) (string, error) { return "", errors.ErrUnsupported }

func makeReadOnly(string) error { return errors.ErrUnsupported }
