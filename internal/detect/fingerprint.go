package detect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Fingerprint names what was found so that it is known again: the same in the
// next version of the files, also when other lines have moved it.
func (f *Finding) Fingerprint() string {
	parts := []string{f.Pattern, f.File, f.Subject, strings.Join(strings.Fields(f.Evidence), " ")}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	const digits = 16
	return hex.EncodeToString(sum[:])[:digits]
}
