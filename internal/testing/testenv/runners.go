package testenv

import (
	"errors"
	"os"
	"path/filepath"
)

// HideRunners hides the large programs of tool chains that the tests of a package do not use,
// such as node: a folder that is now first on PATH has short scripts with their names, which
// fail. A loop hashes the programs that its check may run at its start and before each clean
// copy; with node and Rust that is 300 MB for the shortest loop. A TestMain calls it after [Set].
func HideRunners() {
	dir, err := runners()
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		panic(err) // cannot happen: tests start in the folder of their package
	}
}

// runners returns the folder of the scripts, in the module that has the current folder.
func runners() (string, error) {
	at := filepath.Join("internal", "testing", "testenv", "runners")
	for range 10 { // folders in a module are less deep
		if _, err := os.Stat(at); err == nil {
			return filepath.Abs(at)
		}
		at = filepath.Join("..", at)
	}
	return "", errors.New("no folder of runners in the module")
}
