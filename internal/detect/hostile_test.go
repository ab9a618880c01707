package detect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// Changes in which every part could be compared with every other. The cost is bounded:
// quadratic work would take minutes.
func TestHostileChanges(t *testing.T) {
	t.Parallel()
	const n = 3000
	text := func(head, format string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "N", fmt.Sprint(i)))
		}
		return b.String()
	}
	tests := []struct{ name, old, now string }{
		{"tests renamed and rewritten", text("", "def test_aN():\n    assert f(N) == 'vN'\n    log(x, N)\n\n"),
			text("", "def test_bN():\n    assert g(N) > 'wN'\n    log(y, N)\n\n")},
		{"many assertions in one test", text("def test_a():\n", "    assert f(N) == 'aN'\n"),
			text("def test_a():\n", "    assert f(N) > 'bN'\n")},
		{"functions gone and come", text("", "def func_aN(x):\n    return g(x, N) + h(N)\n\n"),
			text("", "def func_bN(x):\n    return k(x, 'aN') - N\n\n")},
		{"functions of one name", text("", "def func(x):\n    return g(x, N) + h(N)\n\n"),
			text("", "def func(x):\n    return k(x, 'aN') - N\n\n")},
		{"guards of one function", text("def func(x):\n", "    if x < N:\n        raise E('aN')\n    y += g(x)\n"),
			text("def func(x):\n", "    y += g(x, N)\n")},
		{"marks", text("", "xN = f(N)\n"), text("", "xN = f(N)  # noqa\n")},
		{"rows", text("@pytest.mark.parametrize('a', [\n", "    (N, 'xN'),\n") + "])\ndef test_a(a):\n    assert a\n",
			"@pytest.mark.parametrize('a', [1])\ndef test_a(a):\n    assert a\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"tests/test_a.py", "src/a.py"} {
				find(t, &detect.Input{Mode: detect.Aggressive, Changes: edited(path, test.old, test.now)})
			}
		})
	}
}
