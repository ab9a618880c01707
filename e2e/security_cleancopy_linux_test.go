package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These tests run loops with agents that change the machine instead of the work, so that
// the check passes in the workspace. The clean-copy check has to find it.

// tapOfTests is a program that reports the tests of a workspace as they are, for a check.
const tapOfTests = `#!/bin/sh
for f in a b; do if grep -q pass tests/$f; then echo "ok - $f"; else echo "not ok - $f"; bad=1; fi; done
echo 1..2; exit ${bad:-0}
`

// tapOfPython is the same in Python.
const tapOfPython = `import builtins, sys
bad = 0
for f in "ab":
    ok = "pass" in builtins.open("tests/" + f).read()
    bad |= not ok
    print("ok -" if ok else "not ok -", f)
print("1..2")
sys.exit(bad)
`

// newToolPlace is a place for loops whose user has a home folder with programs.
func newToolPlace(t *testing.T) (w *workplace, home string) {
	t.Helper()
	w = newLoopPlace(t)
	home = w.beside("home")
	for _, dir := range []string{"early", "late"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err := os.WriteFile(filepath.Join(home, "late", "runner"), []byte(tapOfTests), 0o700) //nolint:gosec // a program
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "HOME="+home, "PATH="+home+"/early:"+home+"/late:"+os.Getenv("PATH"), "PYTHONUSERBASE=")
	return w, home
}

// TestSecurityReplacedTools: an agent that fakes the program of the check, or what this one
// loads, completes no loop.
func TestSecurityReplacedTools(t *testing.T) {
	t.Parallel()
	const fake = `printf '#!/bin/sh\necho "ok - a"; echo "ok - b"; echo 1..2\n' > `
	for name, c := range map[string]struct{ needs, until, agent, says string }{
		"earlier on PATH": {"sh", "runner", fake + `~/early/runner; chmod +x ~/early/runner`, "runner is "},
		"in place":        {"sh", "runner", fake + `~/late/runner`, "content of "},
		"link":            {"sh", "runner", fake + `~/x; chmod +x ~/x; ln -sf ~/x ~/late/runner`, "leads to "},
		"usercustomize": {"python3", "python3 check.py", `d=$(python3 -c 'import site; print(site.getusersitepackages())')
			mkdir -p "$d"
			printf 'import builtins, io\nbuiltins.open = lambda n: io.StringIO("pass")\n' > "$d/usercustomize.py"`,
			"fails in a clean copy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skip(err)
			}
			w, _ := newToolPlace(t)
			w.write("check.py", tapOfPython)
			w.agent(c.agent)
			said, errs, status := w.try("perdure loop run 'Make the tests pass' --until '" + c.until +
				"' --agent 'exec:sh " + w.agentFile() + "' --no-wait --max-iterations 2")
			if said += errs; status == 0 || !strings.Contains(said, c.says) || strings.Contains(said, "completed:") {
				t.Errorf("status %d:\n%s", status, said)
			}
		})
	}
}

// TestSecurityGoEnv: settings of Go that the agent writes for the user have no effect on the
// clean-copy check.
func TestSecurityGoEnv(t *testing.T) {
	t.Parallel()
	w, home := newToolPlace(t)
	w.write("go.mod", "module example.com/a\n\ngo 1.24\n")
	w.write("a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\n\n"+
		"func TestB(t *testing.T) { t.Fatal(\"not done\") }\n")
	fake := "#!/bin/sh\nfor n in A B; do echo \"=== RUN   Test$n\"; echo \"--- PASS: Test$n (0.00s)\"; done; echo PASS\n"
	if err := os.WriteFile(filepath.Join(home, "fake"), []byte(fake), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err = errors.Join(err, os.MkdirAll(filepath.Join(cache, "go-build"), 0o700)); err != nil {
		t.Fatal(err)
	}
	w.agent(`unset GOFLAGS; go env -w "GOFLAGS=-exec=$HOME/fake"`)
	// Go's settings are found by HOME; GOFLAGS of the environment would hide them.
	said, errs, status := w.try("perdure loop run 'Make the tests pass' --until 'go test ./...' --agent 'exec:sh "+
		w.agentFile()+"' --no-wait --max-iterations 2 --env GOCACHE", "GOFLAGS=",
		"XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "GOCACHE="+filepath.Join(cache, "go-build"))
	// They are named at once: a second check of this kind would take as long again.
	if said += errs; status != 6 || !strings.Contains(said, "fails in a clean copy") ||
		!strings.Contains(said, filepath.Join(home, ".config", "go", "env")) ||
		strings.Contains(said, "iteration 2: ") {
		t.Errorf("status %d:\n%s", status, said)
	}
}
