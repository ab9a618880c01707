package loop

import (
	"errors"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/human"
)

// maxAgentText is how much of an agent's last words a record keeps, in bytes.
const maxAgentText = 4 << 10

// clip shortens a text to a number of bytes, at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// lastLine is the last line of a text that says something.
func lastLine(text string) string {
	return clip(human.LastLine(text), 300)
}

// removeFile removes a file that may be gone already.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
