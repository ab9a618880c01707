package loop

import (
	"errors"
	"io/fs"
	"os"

	"github.com/perdure/perdure/internal/text/clip"
)

// maxAgentText is how much of an agent's last words a record keeps, in bytes.
const maxAgentText = 4 << 10

// lastLine returns the last line of a text that is not blank, shortened.
func lastLine(text string) string {
	return clip.Bytes(clip.LastLine(text), 300)
}

// removeFile removes a file that may be gone already.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
