//go:build !unix

package failpoint

import "os"

// kill ends the own process at once; where there is no SIGKILL this is
// TerminateProcess.
func kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
}
