//go:build !unix

package aiwgipc

// over tells whether the client has closed the connection. Here its reader
// notices, a moment later.
func (c *conn) over() bool { return false }
