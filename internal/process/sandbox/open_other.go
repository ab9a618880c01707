//go:build !linux

package sandbox

import "net"

// ReceiveListener returns [ErrUnsupported]: there are no doors.
func ReceiveListener(*net.UnixConn) (net.Listener, error) { return nil, ErrUnsupported }
