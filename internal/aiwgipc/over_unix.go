//go:build unix

package aiwgipc

import "syscall"

// over tells whether the client has closed the connection and nothing of what it
// sent is left to be read. The reader of the connection need not have noticed
// yet.
func (c *conn) over() bool {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true // it is closed here already
	}
	over := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT) //nolint:gosec // a file descriptor is an int
		over = n == 0 && err == nil || err == syscall.ECONNRESET                            //nolint:errorlint // system calls do not wrap
	})
	return over || err != nil
}
