package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// noTerminal is the session of commands without a terminal: scripts, CI, agents.
const noTerminal = "no-terminal"

// Session returns the session of commands without --session.
func Session(getenv func(name string) string) string {
	return cmp.Or(getenv("PERDURE_SESSION"), login())
}

// login returns the session of this terminal: the same one until its login shell ends.
func login() string {
	terminal := terminalLogin()
	if terminal == "" {
		return noTerminal
	}
	host, _ := os.Hostname() // without it, the start time still distinguishes the terminals of several hosts
	sum := sha256.Sum256([]byte(host + "\x00" + terminal))
	return "login-" + hex.EncodeToString(sum[:4])
}
