// Package testenv sets the environment of a test process so that its tests need
// little processor time. It is for tests only.
package testenv

import (
	"errors"
	"os"

	"github.com/perdure/perdure/internal/testing/effort"
)

// Set sets the environment of this process and of those that it starts. A
// TestMain calls it first.
//
// Temporary folders are in memory where the machine has room for them: on a
// disk, a test that writes small files spends most of its processor time in the
// file system. The long run keeps them on the disk.
//
// Go commands that tests start compile a package once, whatever folder its copy
// is in, do not vet it, and run without the race detector.
func Set() {
	err := os.Setenv("GOFLAGS", "-trimpath -vet=off")
	if dir := MemoryDir(); dir != "" && !effort.Long() {
		err = errors.Join(err, os.Setenv("TMPDIR", dir))
	}
	if err != nil {
		panic(err) // a name or a value that no system takes
	}
}
