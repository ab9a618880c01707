package testenv

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
)

// usePython puts the folder of the interpreter first on PATH if python3 is a script that chooses
// one: such a script takes several times as long as the interpreter.
func usePython() error {
	found, err := exec.LookPath("python3")
	if err != nil {
		return nil // tests that need it say so
	}
	text, err := os.ReadFile(found)
	if err != nil || !bytes.HasPrefix(text, []byte("#!")) {
		return err
	}
	out, err := exec.Command(found, "-I", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		return nil // a script that finds no interpreter is as good as none
	}
	return os.Setenv("PATH", filepath.Dir(string(out))+string(os.PathListSeparator)+os.Getenv("PATH"))
}
