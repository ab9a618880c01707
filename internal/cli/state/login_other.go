//go:build !unix

package state

import (
	"os"
	"strconv"
)

// terminalLogin is the shell that started the command.
func terminalLogin() string { return strconv.Itoa(os.Getppid()) }
