package workspace

import "path/filepath"

// safeName tells whether a name means the same in a path as in its folder.
func safeName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name
}
