package project_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
)

// wrapped are test runners in a script of a script, with the tests that they have to name.
var wrapped = map[string]struct {
	needs, run string
	files      map[string]string
	want       []string
}{
	"node": {needs: "node", run: "node --test", want: []string{"add", "mul"}, files: map[string]string{
		"a.test.js": "const t = require('node:test');\nt('add', () => {});\nt('mul', () => { throw new Error('no'); });\n"}},
	"go": {needs: "go", run: "go test ./...", want: []string{"x::TestAdd", "x::TestMul"}, files: map[string]string{
		"go.mod": "module x\n\ngo 1.24\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {}\n\n" +
			"func TestMul(t *testing.T) { t.Fatal(\"no\") }\n"}},
	"unittest": {needs: "python3", run: "PYTHONPATH=. python3 -m unittest",
		want: []string{"test_a.py::T::test_add", "test_a.py::T::test_mul"}, files: map[string]string{
			"test_a.py": "import unittest\nclass T(unittest.TestCase):\n  def test_add(self): pass\n" +
				"  def test_mul(self): self.assertEqual(1, 2)\n"}},
	"pytest": {needs: "pytest", run: "pytest -q", want: []string{"test_b.py::test_add", "test_b.py::test_mul"},
		files: map[string]string{"test_b.py": "def test_add(): pass\ndef test_mul(): assert 0\n"}},
	"bats": {needs: "bats", run: "bats .", want: []string{"add", "mul"}, files: map[string]string{
		"a.bats": "@test \"add\" {\n  true\n}\n@test \"mul\" {\n  false\n}\n"}},
	"phpunit": {needs: "phpunit", run: "phpunit ATest.php", want: []string{"ATest::testAdd", "ATest::testMul"},
		files: map[string]string{"ATest.php": "<?php\nclass ATest extends PHPUnit\\Framework\\TestCase {\n" +
			"function testAdd() { $this->assertTrue(true); }\nfunction testMul() { $this->assertTrue(false); }\n}\n"}},
	"rspec": {needs: "rspec", run: "rspec", want: []string{"spec/a_spec.rb::a adds", "spec/a_spec.rb::a muls"},
		files: map[string]string{"spec/a_spec.rb": "RSpec.describe 'a' do\n it('adds') {}\n it('muls') { fail }\nend\n"}},
}

// TestProbesReachRunners: runners in a script of a script of a make target keep their results
// by test, and the command prints and exits as without probes.
func TestProbesReachRunners(t *testing.T) {
	t.Parallel()
	for name, c := range wrapped {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("%s is not installed", c.needs)
			}
			root, scratch := t.TempDir(), filepath.Join(t.TempDir(), "results of it")
			write(t, root, c.files)
			write(t, root, map[string]string{"check.sh": "sh ./inner.sh\n", "inner.sh": "set -e\n" + c.run + "\necho after\n"})
			command := project.Measure("(sh check.sh)", project.Config{Files: os.DirFS(root), Scratch: scratch})
			if command.Weak == "" || command.Probe == "" {
				t.Fatalf("%+v", command)
			}
			if err := os.MkdirAll(scratch, 0o700); err != nil {
				t.Fatal(err)
			}
			env, err := command.WithProbes(root, append(os.Environ(), "NO_COLOR=1"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", command.Script)
			cmd.Dir, cmd.Env = root, env
			printed, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() <= 0 || strings.Contains(string(printed), "after") {
				t.Fatalf("%v:\n%s", err, printed)
			}
			runs, err := command.Runs()
			if err != nil || len(runs) != 1 || runs[0].File == "" {
				t.Fatalf("runs %+v, %v:\n%s", runs, err, printed)
			}
			report, err := testreport.ParseFiles(testreport.Format(runs[0].Format), []string{runs[0].File},
				testreport.Config{Root: root})
			if err != nil || !report.Complete {
				t.Fatalf("%+v, %v:\n%s", report, err, printed)
			}
			var got []string
			for _, test := range report.Tests {
				got = append(got, test.ID)
			}
			slices.Sort(got)
			failing := report.Failing()
			if !slices.Equal(got, c.want) || len(failing) != 1 || failing[0].ID != c.want[1] {
				t.Errorf("tests %q, failing %+v", got, failing)
			}
		})
	}
}

// TestHiddenStatus: a pipe into a program that only formats hides the status of the check.
func TestHiddenStatus(t *testing.T) {
	t.Parallel()
	for command, hidden := range map[string]bool{
		"npm test 2>&1 | tee log":              true,
		"cd a && go test ./... | tail -20":     true,
		"pytest || true":                       true,
		"pytest; true":                         true,
		"make test\necho done":                 true,
		"jest | cat | head -5":                 true,
		"npm test":                             false,
		"cat n | grep -q 3":                    false,
		"go test ./... | grep -v FAIL":         false,
		"set -o pipefail; npm test | tee log":  false,
		"bash -o pipefail -c 'npm test | tee'": false,
		"test -f a || exit 1":                  false,
		"echo start; npm test":                 false,
		"curl -s x | jq -e .ok":                false,
	} {
		if got := project.HiddenStatus(command); (got != "") != hidden {
			t.Errorf("%q: %q", command, got)
		}
	}
}
