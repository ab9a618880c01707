//go:build !failpoint

package failpoint

// Enabled tells whether this binary was built with the failpoint tag.
const Enabled = false

// Hit does nothing in this build and is inlined away.
func Hit(name string) {}
