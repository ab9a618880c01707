// Package testenv sets the environment of a test process so that its tests need little
// processor time. It is for tests only.
package testenv

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/perdure/perdure/internal/testing/effort"
)

// Set sets the environment of this process and of those that it starts. A
// TestMain calls it first.
//
// Temporary folders are in memory if the machine has enough of it: on a disk, a test that
// writes small files spends most of its processor time in the file system. In the long run
// they are on the disk.
//
// Go commands that tests start compile a package once for all folders that have a copy of it,
// do not vet it, and run without the race detector.
//
// python3 is the interpreter, also where it is a script that chooses one.
//
// There is no home folder: loops compare the packages that the user downloaded before and after
// each check, on a developer's machine a hundred thousand files.
func Set() {
	err := os.Setenv("GOFLAGS", "-trimpath -vet=off")
	if os.Getenv("GOCACHE") == "" { // tests can pass it to clean copies
		if dir, dirErr := os.UserCacheDir(); dirErr == nil {
			err = errors.Join(err, os.Setenv("GOCACHE", filepath.Join(dir, "go-build")))
		}
	}
	err = errors.Join(err, usePython()) // before HOME is set: the script may need it
	for _, name := range []string{"GOMODCACHE", "GOPATH"} {
		err = errors.Join(err, os.Unsetenv(name))
	}
	err = errors.Join(err, os.Setenv("HOME", filepath.Join(os.TempDir(), "no-home")))
	if dir := MemoryDir(); dir != "" && !effort.Long() {
		err = errors.Join(err, os.Setenv("TMPDIR", dir))
	}
	if err != nil {
		panic(err) // cannot happen: names and values are valid
	}
}
