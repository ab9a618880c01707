package loop_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/verify/trial"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// checkPython runs the functions of test_calc.py as tests.
const checkPython = `python3 -c "
import sys, test_calc
names = [n for n in dir(test_calc) if n.startswith('test_')]
bad = 0
for i, n in enumerate(names, 1):
    try:
        getattr(test_calc, n)(); print('ok', i, '-', n)
    except Exception:
        print('not ok', i, '-', n); bad = 1
print('1..%d' % len(names)); sys.exit(bad)"`

// TestNewTestsThatCannotFail: a new test that passes whatever the changed code does is reported, does
// not count, and is named in the next prompt.
func TestNewTestsThatCannotFail(t *testing.T) {
	t.Parallel()
	const head = `from calc import add, half

`
	const old = `def test_half():
    assert half(4) == 2
`
	turn := func(w *turn) error {
		if !strings.Contains(w.prompt, "Previous iterations") {
			if err := w.write("calc.py", `def add(a, b):
    return a + b

def half(x):
    return x
`); err != nil {
				return err
			}
			return w.write("test_calc.py", head+old+`
def test_adds():
    assert add(2, 5) == 7

def test_adds_well():
    add(1, 2)
    assert True
`)
		}
		return w.write("calc.py", `def add(a, b):
    return a + b

def half(x):
    return x / 2
`)
	}
	b := newBench(t, turn)
	b.put("calc.py", `def add(a, b):
    return a

def half(x):
    return x
`)
	b.put("test_calc.py", head+old)
	b.launch(func(c *config.Config) { c.Until, c.MutationPercent = checkPython, 1000 })
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	first, second := b.outcomes()[1], b.outcomes()[2]
	results := make(map[string]trial.Result)
	for _, n := range first.NewTests {
		results[n.Test] = n.Result
	}
	if len(results) != 2 || results["test_adds"] != trial.Killed || results["test_adds_well"] != trial.Survived {
		t.Errorf("results %v of %+v", results, first.NewTests)
	}
	if first.Parts["validation"] != 50 { // one of two tests that count
		t.Errorf("validation of the first iteration is %d %%, want 50 %%", first.Parts["validation"])
	}
	if len(second.NewTests) != 0 {
		t.Errorf("tests of an earlier iteration were tried again: %+v", second.NewTests)
	}
	const want = `the test "test_adds_well" passes although line 2 of calc.py`
	if p := b.agent.prompts; len(p) != 2 || !strings.Contains(p[1], want) {
		t.Errorf("prompts %q", p)
	}
}
