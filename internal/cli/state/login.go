package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// noTerminal is the session of commands that have none: scripts, CI, agents.
const noTerminal = "no-terminal"

// Session names the session that commands without --session belong to.
func Session(getenv func(name string) string) string {
	return cmp.Or(getenv("PERDURE_SESSION"), login())
}

// login names the session of this terminal: the same for all commands until the
// shell that was started in it ends, another one afterwards.
func login() string {
	who := terminalLogin()
	if who == "" {
		return noTerminal
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // then terminals of several machines may meet; they are told apart by time
	}
	sum := sha256.Sum256([]byte(host + "\x00" + who))
	return "login-" + hex.EncodeToString(sum[:4])
}
