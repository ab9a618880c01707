package project_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/project"
)

// TestJudges: what a check runs or collects judges; what it reads, or runs to read the output, is
// judged.
func TestJudges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, task, want string }{
		{`test "$(cat n)" = 3`, "", ""},
		{`[ -s out.txt ] && grep -q done out.txt && wc -l < out.txt`, "", ""},
		{`diff want.txt got.txt && cmp a b; jq -e .ok result.json`, "", ""},
		{`jq -e -f rules.jq result.json && grep -f words.txt text`, "", "rules.jq words.txt"},
		{`sh ./check.sh`, "make check.sh pass", "check.sh"},
		{`./run.sh data.txt`, "", "run.sh"},
		{`./run.sh data.txt`, "Mend run.sh.", ""},
		{`bash run.sh < data`, "see prerun.sh", "run.sh"},
		{`sh < steps`, "", "steps"},
		{`python main.py`, "", "main.py"},
		{`python main.py`, "Fix the crash in main.py", ""},
		{`python check.py main.py`, "Fix main.py", "check.py"},
		{`test "$(python prime.py)" = 7`, "", ""},
		{`python prime.py | grep -q 7`, "", ""},
		{`./test.sh | tee log`, "", "test.sh"},
		{`diff <(python prog.py) want`, "", ""},
		{`python -m pytest tests/test_a.py`, "", "pytest tests/test_a.py"},
		{`pytest -q tests/test_a.py`, "Make tests/test_a.py pass", "tests/test_a.py"},
		{`node --test a.test.js`, "", "a.test.js"},
		{`npx jest --config=jest.config.js`, "", "jest jest.config.js"},
		{`go test ./... && sh -c 'bash verify.sh && cat n'`, "", "test verify.sh"},
		{`CI=1 timeout 5m env -i A=b ./ci.sh`, "", "ci.sh"},
		{`. ./lib.sh && make -f rules.mk check`, "", "check lib.sh rules.mk"},
		{`awk '/x/ { exit 1 }' data.csv; awk -f prog.awk data.csv`, "", "prog.awk"},
		{`python -c 'print(open("n").read())' n`, "", ""},
		{`cat "n`, "", "cat n"},
		{`go test -coverprofile=c.out -trace t.out ./... && go tool cover -func=c.out`, "", "cover test tool"},
		{`pytest --junitxml=r.xml --cov-report xml:cov.xml --cov-report=html:htmlcov tests/test_a.py`, "",
			"tests/test_a.py"},
		{`pytest --junit-xml r.xml -c ci.ini && python -m pytest --html=r.html a.py`, "", "a.py ci.ini pytest"},
		{`npx jest --json --outputFile=r.json --config jest.ci.js`, "", "jest jest.ci.js"},
		{`npx vitest run --outputFile.junit ./r.xml a.test.ts`, "", "a.test.ts run vitest"},
		{`phpunit --log-junit r.xml --coverage-clover c.xml -c ci.xml`, "", "ci.xml"},
		{`rspec -o r.txt spec/a_spec.rb && mocha --reporter ./mine.js`, "", "mine.js spec/a_spec.rb"},
	} {
		got := slicesWithout(project.Judges(c.command, c.task), "./...", ".")
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (task %q): %s", c.command, c.task, diff)
		}
	}
}

// slicesWithout returns the names other than those to leave out.
func slicesWithout(names []string, out ...string) (rest []string) {
	for _, n := range names {
		if !strings.Contains(" "+strings.Join(out, " ")+" ", " "+n+" ") && n != "..." {
			rest = append(rest, n)
		}
	}
	return rest
}

// FuzzJudges: any command line is read, and what judges are names.
func FuzzJudges(f *testing.F) {
	for _, seed := range []string{`test "$(cat n)" = 3`, "sh -c 'sh -c \"./x\"'", "timeout", "env", "python", "a | b < c",
		"$(", "jq -f"} {
		f.Add(seed, "fix n")
	}
	f.Fuzz(func(t *testing.T, command, task string) {
		for _, name := range project.Judges(command, task) {
			if name == "" || strings.HasPrefix(name, "-") {
				t.Errorf("%q: %q", command, name)
			}
		}
	})
}
