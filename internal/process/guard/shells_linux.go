package guard

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Shells returns the shells below a process that run a command line, by their process IDs.
func Shells(pid int) map[int]string {
	pids, _ := children(pid)
	found := make(map[int]string)
	for _, p := range running(walk(pids)) {
		if line, ok := shellLine(p.pid); ok {
			found[p.pid] = line
		}
	}
	return found
}

// shellLine returns the command line that a shell runs (bash -c LINE); false for another process.
func shellLine(pid int) (string, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "", false
	}
	var words []string
	for _, word := range bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	if !slices.Contains([]string{"sh", "bash", "zsh", "dash", "ash", "ksh", "fish"}, path.Base(words[0])) {
		return "", false
	}
	for i, word := range words[1:] {
		flags, isOption := strings.CutPrefix(word, "-")
		if isOption && strings.Contains(flags, "c") && !strings.HasPrefix(flags, "-") && i+2 < len(words) {
			return words[i+2], true
		}
	}
	return "", false
}
