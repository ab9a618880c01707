//go:build !linux && !darwin

package trust

import "os"

// fileID returns the same text for every file, because this system identifies none: the
// path alone is trusted.
func fileID(name string) (string, error) {
	if _, err := os.Lstat(name); err != nil {
		return "", err
	}
	return "any", nil
}
