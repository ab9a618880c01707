package loop_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// TestSuppressionIsARegression: what the files show counts also where all tests
// pass: an error that is caught away. By the mode it is a regression or a finding.
func TestSuppressionIsARegression(t *testing.T) {
	t.Parallel()
	const before = "def load(path):\n    data = open(path).read()\n    check(data)\n    return data\n"
	const after = "def load(path):\n    try:\n        data = open(path).read()\n        check(data)\n" +
		"    except Exception:\n        pass\n    return None\n"
	for mode, step := range map[config.Detection]string{"": "gate", config.DetectionOff: "ended"} {
		b := newBench(t, func(w *turn) error {
			b := w.write("load.py", after)
			if b != nil {
				return b
			}
			return w.write("tests/b", "pass")
		})
		b.put("load.py", before)
		b.launch(func(c *config.Config) { c.Detection, c.MaxRetries = mode, -1 })
		l := b.work()
		if l.Step != step {
			t.Errorf("mode %q: %s, findings %+v", mode, show(l), b.outcomes()[1].Findings)
		}
		if mode == "" {
			g := b.outcomes()[1].Regressions
			if len(g) == 0 || g[0].Type != "error_suppression" || !strings.Contains(g[0].Text, "load.py:") {
				t.Errorf("regressions %+v", g)
			}
		}
	}
}

// TestRenamedTestIsNotDeleted: a test that runs under another name, or in another
// file, is there.
func TestRenamedTestIsNotDeleted(t *testing.T) {
	t.Parallel()
	const check = `for f in *_test.py; do sed -n 's/^def \(test_[a-z_]*\).*/\1/p' "$f"; done | awk '{print "ok " NR " ` +
		`- " $1} END {print "1.." NR}'; test -e done`
	body := "():\n    cart = Cart()\n    cart.add('apple', 2)\n    cart.add('pear', 3)\n    assert cart.total() == 12\n" +
		"    assert cart.count('apple') == 2\n"
	b := newBench(t, func(w *turn) error {
		if err := w.write("cart_test.py", "def test_sums_up_the_cart"+body); err != nil {
			return err
		}
		return w.write("done", "")
	})
	b.put("cart_test.py", "def test_total"+body)
	b.launch(func(c *config.Config) { c.Until = check })
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s, regressions %+v", show(l), b.outcomes()[1].Regressions)
	}
}

// TestForgedResults: results that list a test which the files do not have any more
// are not proof that it ran.
func TestForgedResults(t *testing.T) {
	t.Parallel()
	const check = `printf 'ok 1 - test_total\nok 2 - test_count\n1..2\n'; test -e done`
	total := "def test_total():\n    cart = Cart()\n    cart.add('apple', 2)\n    assert cart.total() == 12\n"
	count := "def test_count():\n    assert Cart.of('pear').count('pear') == 1\n"
	b := newBench(t, func(w *turn) error {
		if err := w.write("cart_test.py", count); err != nil {
			return err
		}
		return w.write("done", "")
	})
	b.put("cart_test.py", total+"\n\n"+count)
	b.launch(func(c *config.Config) { c.Until, c.MaxRetries = check, -1 })
	l := b.work()
	g := b.outcomes()[1].Regressions
	if l.Status == record.Completed || len(g) == 0 || g[0].Type != "test_deletion" ||
		!strings.Contains(g[0].Text, "the test results list it") {
		t.Errorf("%s, regressions %+v", show(l), g)
	}
}
