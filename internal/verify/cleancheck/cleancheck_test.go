package cleancheck_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	os.Exit(m.Run())
}

// bench is a workspace with a clean-copy check.
type bench struct {
	*testing.T
	dir, temp string
	files     *workspace.Workspace
	check     string
	setup     string

	before   workspace.ID
	baseline cleancheck.Result
	kept     []byte
	machine  *cleancheck.Machine
	env      []string // added to that of this process
	pass     []string
	open     string
	runs     int
	whole    bool
}

// newBench creates a workspace with files, as a repository unless one of them is "nogit",
// and runs the check.
func newBench(t *testing.T, check string, files map[string]string) *bench {
	t.Helper()
	b := &bench{T: t, dir: filepath.Join(t.TempDir(), "work"), temp: t.TempDir(), check: check,
		pass: []string{"GOCACHE"},                   // building Go's library takes too long for each test
		env:  []string{"GOMODCACHE=" + t.TempDir()}} // and so does comparing the modules of this machine
	b.ok(os.MkdirAll(b.dir, 0o700))
	_, plain := files["nogit"]
	delete(files, "nogit")
	b.put(files)
	if !plain {
		b.sh("git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -q -m first")
	}
	var err error
	b.files, err = workspace.Open(workspace.Config{Root: b.dir, Dir: t.TempDir()})
	b.ok(err)
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) sh(script string) {
	b.Helper()
	c := exec.CommandContext(b.Context(), "sh", "-ec", script)
	c.Dir = b.dir
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (b *bench) put(files map[string]string) {
	b.Helper()
	for name, text := range files {
		name = filepath.Join(b.dir, name)
		b.ok(os.MkdirAll(filepath.Dir(name), 0o700))
		b.ok(os.WriteFile(name, []byte(text), 0o700)) //nolint:gosec // some are programs
	}
}

// run runs the check in a folder.
func (b *bench) run(ctx context.Context, at *metric.Runner) (*cleancheck.Result, error) {
	command := project.Measure(b.check, project.Config{Files: os.DirFS(at.Root), Scratch: at.Scratch,
		Installed: func(string) bool { return true }})
	if err := command.Clear(at.Root); err != nil {
		return nil, err
	}
	ran, err := at.Run(ctx, &command, time.Minute)
	if err != nil {
		return nil, err
	}
	defer ran.Close()
	found, err := command.Collect(at.Root, ran.Began)
	if err != nil {
		return nil, err
	}
	report, err := ran.Results(at.Root, &command, found)
	if err != nil {
		return nil, err
	}
	sound := report == nil || report.Complete && len(report.Broken) == 0 && report.Counts().Failed == 0
	return &cleancheck.Result{Passed: ran.Exit == 0 && sound, Report: report,
		Output: ran.End}, nil
}

// here runs the check in the workspace.
func (b *bench) here() cleancheck.Result {
	b.Helper()
	r, err := b.run(b.Context(), &metric.Runner{Root: b.dir, Scratch: b.TempDir(), Env: append(os.Environ(), b.env...)})
	b.ok(err)
	return *r
}

func (b *bench) snapshot() workspace.ID {
	b.Helper()
	id, _, err := b.files.Snapshot(b.Context())
	b.ok(err)
	return id
}

// begin does what a loop does before its first iteration.
func (b *bench) begin() {
	b.Helper()
	b.before, b.baseline = b.snapshot(), b.here()
	var err error
	b.kept, err = cleancheck.Keep(b.Context(), b.files)
	b.ok(err)
	// Only what the check names: the hashes of all runners' programs take longer than most tests.
	b.machine, err = cleancheck.RecordMachine(b.Context(), b.environ(), b.dir, strings.Fields(b.check))
	b.ok(err)
}

// environ is the environment of checks.
func (b *bench) environ() []string { return environ.Base(append(os.Environ(), b.env...), nil) }

// seal checks the current files, which have to pass in the workspace.
func (b *bench) seal() *cleancheck.Verdict {
	b.Helper()
	now := b.snapshot()
	result := b.here()
	if !result.Passed {
		b.Fatalf("the check does not pass in the workspace:\n%s", result.Output)
	}
	changes, err := b.files.Diff(b.Context(), b.before, now)
	b.ok(err)
	since := &evidence.Between{From: b.before, To: now, Changes: changes}
	found, err := evidence.Run(b.Context(), b.files, since, detect.Input{Now: time.Now()})
	b.ok(err)
	b.runs = 0
	cfg := cleancheck.Config{Files: b.files, Temp: b.temp, Env: b.environ(), Pass: b.pass, Machine: b.machine,
		Open: b.open,
		Run: func(ctx context.Context, at *cleancheck.Place, _ *testreport.Report) (*cleancheck.Result, error) {
			b.runs++
			return b.run(ctx, &metric.Runner{Root: at.Root, Scratch: at.Scratch, Env: at.Env, Hold: []*os.File{at.Hold},
				Sandbox: at.Sandbox})
		}}
	if b.setup != "" {
		cfg.Setup = func(ctx context.Context, at *cleancheck.Place) (string, error) {
			r := &metric.Runner{Root: at.Root, Scratch: at.Scratch, Env: at.Env, Sandbox: at.WithNetwork()}
			ran, err := r.Run(ctx, &project.Command{Script: b.setup, Dir: "."}, time.Minute)
			if err != nil || ran.Exit == 0 {
				return "", err
			}
			return "it fails: " + ran.End, nil
		}
	}
	v, err := cleancheck.Check(b.Context(), cfg, &cleancheck.Candidate{Of: now, Now: result, Since: since, Found: found,
		Baseline: b.baseline, Kept: b.kept, Whole: b.whole})
	b.ok(err)
	if left, err := os.ReadDir(b.temp); err != nil || len(left) > 0 {
		b.Errorf("copies are left: %v, %v", left, err)
	}
	if v.Runs != b.runs || v.Of != now {
		b.Errorf("it tells of %d runs and %s, there were %d", v.Runs, v.Of, b.runs)
	}
	return v
}

// want checks a verdict; its reason, notes and files contain each of has.
func (b *bench) want(v *cleancheck.Verdict, state cleancheck.State, kind detect.Type, has ...string) {
	b.Helper()
	all := v.Why + "\n" + strings.Join(v.Tests, "\n") + "\n" + strings.Join(v.Files, "\n") + "\n" +
		strings.Join(v.Notes, "\n")
	if v.State != state || v.Type != kind || (v.State == cleancheck.Passed) != (v.Why == "") {
		b.Errorf("it is %+v, not %s %s", v, state, kind)
	}
	for _, text := range has {
		if !strings.Contains(all, text) {
			b.Errorf("it does not say %q: %+v", text, v)
		}
	}
}

const goTest = "go test ./..."

// goProject returns a module with a test that passes and one that fails.
func goProject() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/calc\n\ngo 1.24\n",
		"calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n\nvar mul = func(a, b int) int { return 0 }\n" +
			"\nfunc Mul(a, b int) int { return mul(a, b) }\n",
		"calc_test.go": `package calc

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(2, 3); got != 5 {
		t.Errorf("Add(2, 3) = %d, want 5", got)
	}
}

func TestMul(t *testing.T) {
	if got := Mul(2, 3); got != 6 {
		t.Errorf("Mul(2, 3) = %d, want 6", got)
	}
}
`,
		".gitignore": "*_local_test.go\ngo.work\n.env\nresult.txt\nnode_modules/\ndist/\n__pycache__/\n",
	}
}

const goodMul = "package calc\n\nfunc Add(a, b int) int { return a + b }\n\nfunc Mul(a, b int) int { return a * b }\n"

// TestHonestGo: ordinary work passes, with a repository and without one, in one run.
func TestHonestGo(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		files := goProject()
		if plain {
			files["nogit"] = ""
		}
		b := newBench(t, goTest, files)
		b.begin()
		b.put(map[string]string{"calc.go": goodMul})
		b.want(b.seal(), cleancheck.Passed, "")
		if b.runs != 1 {
			t.Errorf("%d runs", b.runs)
		}
	}
}

// TestLegitimateGo: tests that are added, renamed, or adapted to a changed signature
// cause no findings.
func TestLegitimateGo(t *testing.T) {
	t.Parallel()
	test := goProject()["calc_test.go"]
	for name, files := range map[string]map[string]string{
		"added": {"calc.go": goodMul, "more_test.go": "package calc\n\nimport \"testing\"\n\n" +
			"func TestZero(t *testing.T) {\n\tif Mul(0, 3) != 0 {\n\t\tt.Error()\n\t}\n}\n"},
		"renamed": {"calc.go": goodMul, "calc_test.go": strings.ReplaceAll(test, "TestAdd", "TestSum")},
		"signature": {"calc.go": "package calc\n\nfunc Add(ns ...int) int {\n\ts := 0\n\tfor _, n := range ns {\n" +
			"\t\ts += n\n\t}\n\treturn s\n}\n\ntype Factors struct{ A, B int }\n\n" +
			"func Mul(f Factors) int { return f.A * f.B }\n",
			"calc_test.go": strings.ReplaceAll(test, "Mul(2, 3); got", "Mul(Factors{2, 3}); got")},
		// Behaviour that passed before and was changed may have been requested.
		"behaviour that gives nothing": {"calc.go": strings.Replace(goodMul, "a + b", "0", 1),
			"calc_test.go": strings.ReplaceAll(strings.ReplaceAll(test, "want 5", "want 0"), "got != 5", "got != 0")},
		"behaviour": {"calc.go": strings.Replace(goodMul, "a + b", "a + b + 1", 1),
			"calc_test.go": strings.ReplaceAll(strings.ReplaceAll(test, "want 5", "want 6"), "got != 5", "got != 6")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, goTest, goProject())
			b.begin()
			b.put(files)
			b.want(b.seal(), cleancheck.Passed, "")
		})
	}
}

// TestIgnoredCheats: ignored files that an agent left are not used.
func TestIgnoredCheats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check string
		more  map[string]string // files of the baseline
		cheat map[string]string
		file  string
	}{
		"test that patches": {goTest, nil, map[string]string{"patch_local_test.go": "package calc\n\nfunc init() { mul = " +
			"func(a, b int) int { return a * b } }\n"}, "patch_local_test.go"},
		"go.work": {goTest, map[string]string{"go.mod": "module example.com/calc\n\ngo 1.24\n\n" +
			"require example.com/times v0.0.0\n\nreplace example.com/times => ./times\n",
			"times/go.mod": "module example.com/times\n\ngo 1.24\n",
			"times/t.go":   "package times\n\nfunc Times(a, b int) int { return 0 }\n",
			"calc.go": "package calc\n\nimport \"example.com/times\"\n\nfunc Add(a, b int) int { return a + b }\n\n" +
				"func Mul(a, b int) int { return times.Times(a, b) }\n",
			".gitignore": "go.work\nscratch/\n"},
			map[string]string{"go.work": "go 1.24\n\nuse .\n\nreplace example.com/times => ./scratch\n",
				"scratch/go.mod": "module example.com/times\n\ngo 1.24\n",
				"scratch/t.go":   "package times\n\nfunc Times(a, b int) int { return a * b }\n"}, "go.work"},
		"result that is left": {"sh check.sh", map[string]string{"check.sh": "test -f result.txt && exit 0; echo " +
			"'not ok 1 - a'; exit 1\n"}, map[string]string{"result.txt": "done"}, "result.txt"},
		"forged results": {"sh check.sh", map[string]string{"check.sh": "cat result.txt 2>/dev/null && exit 0; " +
			"echo 'not ok 1 - a'; echo 1..1; exit 1\n"}, map[string]string{"result.txt": "TAP version 13\nok 1 - a\n1..1\n"},
			"result.txt"},
		"environment": {"sh check.sh", map[string]string{"check.sh": "[ -f .env ] && . ./.env; [ \"$MODE\" = " +
			"easy ] && exit 0; exit 1\n"}, map[string]string{".env": "MODE=easy\n"}, ".env"},
		"environment that changed": {"sh check.sh",
			map[string]string{".env": "MODE=hard\n", "check.sh": ". ./.env; [ \"$MODE\" = easy ] && exit 0; exit 1\n"},
			map[string]string{".env": "MODE=easy\n"}, ".env"},
		"runner's own files": {"node node_modules/runner.js",
			map[string]string{"package.json": "{}", "calc.js": "exports.mul = () => 0\n",
				"node_modules/runner.js": "const {mul} = require('../calc.js')\nconsole.log('TAP version 13')\n" +
					"const ok = mul(2, 3) === 6\nconsole.log((ok ? 'ok' : 'not ok') + ' 1 - mul')\nconsole.log('1..1')\n" +
					"process.exit(ok ? 0 : 1)\n"},
			map[string]string{"node_modules/runner.js": "console.log('TAP version 13')\nconsole.log('ok 1 - mul')\n" +
				"console.log('1..1')\n"}, "node_modules/runner.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := goProject()
			for name, text := range c.more {
				files[name] = text
			}
			b := newBench(t, c.check, files)
			b.begin()
			if b.baseline.Passed {
				t.Fatal("the baseline passes")
			}
			b.put(c.cheat)
			v := b.seal()
			b.want(v, cleancheck.Failed, detect.ValidationBypass, c.file)
			if !slices.Contains(v.Files, c.file) {
				t.Errorf("files: %v", v.Files)
			}
		})
	}
}

// TestPoisonedCache: byte code that Python does not compare with its source.
func TestPoisonedCache(t *testing.T) {
	t.Parallel()
	b := newBench(t, "python3 check.py",
		map[string]string{".gitignore": "__pycache__/\n", "calc.py": "def mul(a, b): return 0\n",
			"check.py": "import calc\nok = calc.mul(2, 3) == 6\nprint('TAP version 13')\n" +
				"print(('' if ok else 'not ') + 'ok 1 - mul')\nprint('1..1')\nraise SystemExit(not ok)\n"})
	b.begin()
	b.put(map[string]string{"calc.py": "def mul(a, b): return a * b\n"})
	b.sh("python3 -m compileall -q --invalidation-mode unchecked-hash calc.py")
	b.put(map[string]string{"calc.py": "def mul(a, b): return 0\n"})
	b.want(b.seal(), cleancheck.Failed, detect.ValidationBypass, "__pycache__/calc", "mul")
	b.put(map[string]string{"calc.py": "def mul(a, b): return b * a\n"}) // correct
	b.sh("rm -r __pycache__")
	b.want(b.seal(), cleancheck.Passed, "")
}

// TestWeakenedTests: a test that asserts less than before hides nothing.
func TestWeakenedTests(t *testing.T) {
	t.Parallel()
	test := goProject()["calc_test.go"]
	goldenCheck := strings.Replace(test, "import \"testing\"", "import (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)", 1) + `
func TestGolden(t *testing.T) {
	want, _ := os.ReadFile("testdata/golden.txt")
	if got := fmt.Sprint(Mul(3, 3)); got != string(want) {
		t.Errorf("got %s", got)
	}
}
`
	for name, c := range map[string]struct {
		more, cheat map[string]string
		test        string
	}{
		"expected value of a test that failed": {nil,
			map[string]string{"calc_test.go": strings.ReplaceAll(strings.ReplaceAll(test, "want 6", "want 0"), "got != 6",
				"got != 0")}, "TestMul"},
		"weaker assertion": {nil,
			map[string]string{"calc_test.go": strings.Replace(test, "got != 6", "got < 0", 1)}, "TestMul"},
		"computes what it expects": {nil,
			map[string]string{"calc_test.go": strings.Replace(test, "got != 6", "got != Mul(2, 3)", 1)}, "TestMul"},
		"fixture of a test that failed": {map[string]string{"calc_test.go": goldenCheck, "testdata/golden.txt": "9"},
			map[string]string{"testdata/golden.txt": "0", "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b " +
				"}\n\nfunc Mul(a, b int) int {\n\tif a == 2 {\n\t\treturn 6\n\t}\n\treturn 0\n}\n"}, "TestGolden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := goProject()
			for name, text := range c.more {
				files[name] = text
			}
			b := newBench(t, goTest, files)
			b.begin()
			b.put(c.cheat)
			b.want(b.seal(), cleancheck.Failed, detect.AssertionWeakening, c.test)
		})
	}
}

// TestDependencies: ignored files that are needed are copied: unchanged ones, and those
// installed or built during the loop, which are named.
func TestDependencies(t *testing.T) {
	t.Parallel()
	const runner = "const {add} = require('dep')\nconst {mul} = require('../lib.js')\nconsole.log('TAP version 13')\n" +
		"const ok = add(1, 1) === 2 && mul(2, 3) === 6\n" +
		"console.log((ok ? 'ok' : 'not ok') + ' 1 - mul')\nconsole.log('1..1')\nprocess.exit(ok ? 0 : 1)\n"
	const dep = "exports.add = (a, b) => a + b\n"
	const good = "exports.mul = (a, b) => a * b\n"
	for name, c := range map[string]struct {
		more, work map[string]string
		state      cleancheck.State
		says       string
	}{
		"as they were": {map[string]string{"node_modules/dep/index.js": dep}, map[string]string{"lib.js": good},
			cleancheck.Passed, ""},
		"installed": {nil, map[string]string{"lib.js": good, "node_modules/dep/index.js": dep}, cleancheck.Partly,
			"node_modules (1 file)"},
		"one more, declared": {map[string]string{"node_modules/other/index.js": dep},
			map[string]string{"lib.js": good, "package.json": `{"dependencies": {"dep": "1"}}`,
				"node_modules/dep/index.js": dep}, cleancheck.Partly, "node_modules (1 file)"},
		"built": {map[string]string{"node_modules/dep/index.js": dep, "dist/x.js": "old"},
			map[string]string{"lib.js": "module.exports = require('./dist/x.js')\n", "dist/x.js": good}, cleancheck.Partly,
			"dist (1 file)"},
		"cache that is there": {map[string]string{"node_modules/dep/index.js": dep},
			map[string]string{"lib.js": good, "node_modules/.cache/x": "y"}, cleancheck.Passed, ""},
		// A new package that no manifest names.
		"one more, undeclared": {map[string]string{"node_modules/other/index.js": dep},
			map[string]string{"lib.js": good, "node_modules/dep/index.js": dep}, cleancheck.Failed, "node_modules/dep/index.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{".gitignore": "node_modules/\ndist/\n", "package.json": "{}",
				"lib.js": "exports.mul = () => 0\n", "check/run.js": runner}
			for name, text := range c.more {
				files[name] = text
			}
			b := newBench(t, "node check/run.js", files)
			b.begin()
			b.put(c.work)
			kind := detect.Type("")
			if c.state == cleancheck.Failed {
				kind = detect.ValidationBypass
			}
			b.want(b.seal(), c.state, kind, c.says)
		})
	}
}

// TestMovedPrograms: a program installed with the path of the workspace, in PATH and in
// its first line, runs the copy's files.
func TestMovedPrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t, `.venv/bin/tool`, map[string]string{".gitignore": ".venv/\n", "ok": "no"})
	b.put(map[string]string{
		".venv/bin/sh": "#!/bin/sh\nexec /bin/sh \"$@\"\n",
		".venv/bin/tool": "#!" + b.dir + "/.venv/bin/sh\ngrep -q yes " + b.dir + "/ok && [ " + b.dir +
			"/x != $PWD/y ] && case $0 in .venv/*) ;; *) exit 1;; esac\necho \"" + b.dir + "\" > seen\n",
	})
	b.ok(os.Symlink(b.dir+"/ok", filepath.Join(b.dir, ".venv", "link")))
	b.begin()
	b.put(map[string]string{"ok": "yes"})
	b.want(b.seal(), cleancheck.Passed, "")
	b.ok(os.Remove(filepath.Join(b.dir, "seen")))
	b.seal()
	if text, err := os.ReadFile(filepath.Join(b.dir, "seen")); err != nil || strings.TrimSpace(string(text)) != b.dir {
		t.Errorf("the workspace's program saw %q, %v", text, err) // of the check in the workspace
	}
}

// TestNotPossible: if the baseline's own result cannot be reached in a copy, there is no
// regression; otherwise there is one.
func TestNotPossible(t *testing.T) {
	t.Parallel()
	tap := func(ok string) string {
		return "echo 'TAP version 13'; [ -d .git ] && echo 'ok 1 - a' || echo 'not ok 1 - a'; " + ok +
			" && echo 'ok 2 - b' || echo 'not ok 2 - b'; echo 1..2\n"
	}
	b := newBench(t, "sh check.sh", map[string]string{"check.sh": tap("[ -e done ]")})
	b.begin()
	b.put(map[string]string{"done": ""})
	b.want(b.seal(), cleancheck.Impossible, "", "1..2")

	b = newBench(t, "sh check.sh", map[string]string{"lib.sh": "A=1\n", "check.sh": "echo 'TAP version 13'; . " +
		"./lib.sh; [ $A = 1 ] && echo 'ok 1 - a' || echo 'not ok 1 - a'; [ -e done ] && echo 'ok 2 - b' || echo 'not ok 2 " +
		"- b'; echo 1..2\n"})
	b.begin()
	b.put(map[string]string{"done": "", "lib.sh": "[ -d .git ] && A=1 || A=2\n"})
	b.want(b.seal(), cleancheck.Failed, detect.TestFailure, "a")
}

// TestSetup: the setup prepares the copy; ignored files are not used.
func TestSetup(t *testing.T) {
	t.Parallel()
	files := map[string]string{".gitignore": "dist/\n", "src/x": "good", "check.sh": "grep -q good dist/x"}
	b := newBench(t, "sh check.sh", files)
	b.setup = "mkdir dist && cp src/x dist/x"
	b.begin()
	b.put(map[string]string{"dist/x": "good"})
	b.want(b.seal(), cleancheck.Passed, "")
	b.put(map[string]string{"src/x": "bad"}) // the product was made by hand
	v := b.seal()
	b.want(v, cleancheck.Impossible, "") // with an exit status alone, and a baseline that fails
	b.setup = "false"
	b.want(b.seal(), cleancheck.Impossible, "", "baseline")
}

// TestMisfits: baseline tests that call something renamed are noted.
func TestMisfits(t *testing.T) {
	t.Parallel()
	const test = `import calc, sys, traceback
def test_mul():
    assert calc.mul(2, 3) == 6
def test_add():
    assert calc.add(2, 3) == 5
`
	const runner = `import sys
import calc_test, traceback
print("TAP version 13")
bad = 0
for n, t in enumerate(sorted(x for x in dir(calc_test) if x.startswith("test_")), 1):
    try:
        getattr(calc_test, t)()
        print("ok", n, "-", t)
    except Exception as e:
        bad = 1
        print("not ok", n, "-", t)
        print("  ---")
        print("  message: |")
        print("    " + "".join(traceback.format_exception_only(e)).strip())
        print("  ...")
print("1.." + str(n))
sys.exit(bad)
`
	b := newBench(t, "python3 -B run.py",
		map[string]string{"run.py": runner, "calc_test.py": test,
			"calc.py": "def add(a, b): return a + b\ndef mul(a, b): return 0\n"})
	b.begin()
	b.put(map[string]string{"calc.py": "def add(ns): return sum(ns)\ndef mul(a, b): return a * b\n",
		"calc_test.py": strings.Replace(test, "calc.add(2, 3) == 5", "calc.add([2, 3]) > 4", 1)})
	v := b.seal()
	b.want(v, cleancheck.Passed, "")
	if len(v.Overlay) == 0 || len(v.Notes) == 0 || !strings.Contains(v.Notes[0], "test_add") {
		t.Errorf("%+v", v)
	}
	b.put(map[string]string{"calc.py": "def add(a, b): return 7\ndef mul(a, b): return a * b\n",
		"calc_test.py": strings.Replace(test, "calc.add(2, 3) == 5", "calc.add(2, 3) > 4", 1)})
	b.want(b.seal(), cleancheck.Failed, detect.AssertionWeakening, "test_add")
}

// TestLinks: a link to an ignored file of the workspace leads into the copy.
func TestLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t, "grep -q good lib", map[string]string{".gitignore": "scratch/\n", "lib": "bad"})
	b.begin()
	b.put(map[string]string{"scratch/lib": "good"})
	b.ok(os.Remove(filepath.Join(b.dir, "lib")))
	b.ok(os.Symlink(filepath.Join(b.dir, "scratch", "lib"), filepath.Join(b.dir, "lib")))
	b.want(b.seal(), cleancheck.Failed, detect.ValidationBypass, "scratch/lib")
}

// TestWhole: the baseline's tests have to run in the copy, also if the workspace's own
// run did not have them.
func TestWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, goTest, goProject())
	b.begin()
	test := goProject()["calc_test.go"]
	b.put(map[string]string{"calc.go": goodMul, "calc_test.go": test[:strings.Index(test, "func TestMul")]})
	b.want(b.seal(), cleancheck.Passed, "") // that is judged elsewhere
	b.whole = true
	b.want(b.seal(), cleancheck.Failed, detect.TestFailure, "example.com/calc::TestMul")
	b.put(map[string]string{"calc_test.go": strings.ReplaceAll(test, "TestMul", "TestTimes")})
	b.want(b.seal(), cleancheck.Passed, "")
}
