// Package filelock takes advisory locks of the operating system on open files.
//
// A lock belongs to the open file description: the kernel drops it when the
// last descriptor that refers to it is closed, also when the process is killed.
// That makes a lock the one trustworthy sign that a process on this host is
// alive, which is what leases and the write turnstile rest on. Two opens of one
// file conflict even inside one process.
package filelock

import "errors"

// ErrLocked is returned by TryLock when somebody else holds the lock.
var ErrLocked = errors.New("file is locked")
