package detect_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// property is a class with something public, a test that reads it, and other changes.
type property struct {
	path, code   string
	lost, hidden string // the declaration, and its new form; "" if it is removed
	tests, test  string // the path of the tests, and the tests
	asserted     string // the line that reads it
	instead      string
	other        string // code added before the last line
}

func properties() map[string]property {
	return map[string]property{
		"kotlin": {
			"src/main/kotlin/Gate.kt", "class Refused(val client: String, val retryAfter: Duration) : " +
				"RuntimeException(\"no\")\n\nclass Gate {\n    fun close() = windows.clear()\n}\n",
			"val retryAfter: Duration", "private val retryAfter: Duration",
			"src/test/kotlin/GateTest.kt", "class GateTest {\n    @Test\n    fun refuses() {\n" +
				"        val e = assertFailsWith<Refused> { gate.call(\"shop\") }\n" +
				"        assertEquals(40, e.retryAfter.seconds)\n        assertEquals(\"no\", e.message)\n    }\n}\n",
			"        assertEquals(40, e.retryAfter.seconds)\n", "",
			"    fun reset(client: String) = windows.remove(client)\n",
		},
		"ruby": {
			"lib/account.rb", "class Account\n  attr_reader :requests\n\n  def initialize\n    @requests = []\n  end\nend\n",
			"  attr_reader :requests\n", "  private attr_reader :requests\n",
			"spec/account_spec.rb", "RSpec.describe Account do\n  it \"files\" do\n    account.file(\"a\")\n" +
				"    expect(account.requests.size).to eq 1\n    expect(account.left).to eq 7\n  end\nend\n",
			"    expect(account.requests.size).to eq 1\n", "",
			"\n  def sick(id)\n    @requests.delete(id)\n  end\n",
		},
		"csharp": {
			"src/Invoice.cs", "public class Invoice\n{\n    private readonly List<Line> _lines = new();\n" +
				"    public IReadOnlyList<Line> Lines => _lines;\n}\n",
			"    public IReadOnlyList<Line> Lines", "    internal IReadOnlyList<Line> Lines",
			"tests/InvoiceTests.cs", "public class InvoiceTests\n{\n    [Fact]\n    public void Adds()\n    {\n" +
				"        invoice.Add(ink);\n        Assert.Single(invoice.Lines);\n        Assert.Equal(9m, invoice.Total());\n" +
				"    }\n}\n",
			"        Assert.Single(invoice.Lines);\n", "",
			"    public decimal Net(decimal rate) => Math.Round(_total / (1m + rate), 2);\n",
		},
		"rust": {
			"src/plan.rs", "pub struct Plan {\n    pub slots: Vec<Slot>,\n    total: u32,\n}\n\nimpl Plan {\n}\n",
			"    pub slots:", "    slots:",
			"tests/plan.rs", "#[test]\nfn plans() {\n    let plan = plan(3);\n    assert_eq!(plan.slots.len(), 3);\n" +
				"    assert_eq!(plan.minutes(), 40);\n}\n",
			"    assert_eq!(plan.slots.len(), 3);\n", "",
			"    pub fn pauses(&self) -> u32 {\n        self.total / 10 + 2\n    }\n",
		},
		"go": {
			"gate.go", "package gate\n\ntype Refused struct {\n\tClient     string\n\tRetryAfter time.Duration\n}\n\n" +
				"func (g *Gate) Close() {\n\tclear(g.windows)\n}\n",
			"\tRetryAfter time", "\tretryAfter time",
			"gate_test.go", "package gate_test\n\nfunc TestRefused(t *testing.T) {\n\tvar refused *gate.Refused\n" +
				"\tif !errors.As(call(), &refused) {\n\t\tt.Fatal(\"no\")\n\t}\n\tif refused.RetryAfter != 40*time.Second {\n" +
				"\t\tt.Error(refused)\n\t}\n}\n",
			"\tif refused.RetryAfter != 40*time.Second {\n\t\tt.Error(refused)\n\t}\n", "",
			"\tg.audit.Closed(time.Now())\n",
		},
		"go, an error": {
			"gate.go", "package gate\n\nvar (\n\tErrFull   = errors.New(\"full\")\n\tErrClosed = errors.New(\"closed\")\n)\n\n" +
				"func (g *Gate) Close() {\n\tclear(g.windows)\n}\n",
			"\tErrClosed =", "\terrClosed =",
			"gate_test.go", "package gate_test\n\nfunc TestClosed(t *testing.T) {\n\terr := call()\n" +
				"\tif !errors.Is(err, gate.ErrClosed) {\n\t\tt.Error(err)\n\t}\n}\n",
			"errors.Is(err, gate.ErrClosed)", "strings.Contains(err.Error(), \"closed\")",
			"\tg.audit.Closed(time.Now())\n",
		},
		"rust, a constant": {
			"src/plan.rs", "pub const LIMIT: u32 = 40;\n\npub struct Plan {\n    total: u32,\n}\n\nimpl Plan {\n}\n",
			"pub const LIMIT", "const LIMIT",
			"tests/plan.rs", "#[test]\nfn plans() {\n    let plan = plan(3);\n" +
				"    assert_eq!(plan.minutes(), sprinkle::LIMIT);\n}\n",
			"sprinkle::LIMIT", "40",
			"    pub fn pauses(&self) -> u32 {\n        self.total / 10 + 2\n    }\n",
		},
		"python, a constant": {
			"src/loans.py", "PERIOD = timedelta(days=14)\n\n\ndef due(day):\n    return day + PERIOD\n",
			"PERIOD = timedelta(days=14)\n", "_PERIOD = timedelta(days=14)\n",
			"tests/test_loans.py", "def test_due():\n    assert due(today) == today + loans.PERIOD\n",
			"loans.PERIOD", "timedelta(days=14)",
			"\n\ndef extend(loan, days):\n    loan.limit += timedelta(days=days)\n    return loan.limit\n",
		},
		"php": {
			"src/Plot.php", "<?php\nfinal class Plot\n{\n    public function __construct(public readonly string $number, " +
				"public readonly int $size)\n    {\n    }\n}\n",
			"public readonly int $size", "private readonly int $size",
			"tests/PlotTest.php", "<?php\nclass PlotTest extends TestCase\n{\n    public function testPlot(): void\n    {\n" +
				"        $plot = plot();\n        self::assertSame(180, $plot->size);\n" +
				"        self::assertSame('A1', $plot->number);\n    }\n}\n",
			"        self::assertSame(180, $plot->size);\n", "",
			"    public function metered(): bool\n    {\n        return $this->number[0] === 'M';\n    }\n",
		},
		"typescript": {
			"src/gate.ts", "export class Refused extends Error {\n  constructor(readonly client: string, readonly " +
				"retryAfter: number) {\n    super('no');\n  }\n}\n",
			"readonly retryAfter: number", "private readonly retryAfter: number",
			"test/gate.test.ts", "test('refuses', () => {\n  const e = refusal();\n  expect(e.retryAfter).toBe(40);\n" +
				"  expect(e.message).toBe('no');\n});\n",
			"  expect(e.retryAfter).toBe(40);\n", "",
			"  get soon(): boolean {\n    return this.client.length > 0 && now() < limit;\n  }\n",
		},
		"java": {
			"src/main/java/Bill.java", "public record Bill(String number, long cents) {\n}\n",
			"String number, long cents", "String number",
			"src/test/java/BillTest.java", "class BillTest {\n    @Test\n    void bills() {\n        Bill bill = bill();\n" +
				"        assertEquals(33, bill.cents());\n        assertEquals(\"1\", bill.number());\n    }\n}\n",
			"        assertEquals(33, bill.cents());\n", "",
			"    public boolean first() {\n        return number.equals(\"1\") || number.isEmpty();\n    }\n",
		},
		"python": {
			"src/loans.py", "@dataclass\nclass Loan:\n    code: str\n    due: date\n\n    def late(self, today):\n" +
				"        return today > self.limit\n",
			"    due: date\n", "    _due: date\n",
			"tests/test_loans.py", "def test_loan():\n    loan = lend()\n    assert loan.due == date(2025, 4, 1)\n" +
				"    assert loan.code == \"PO\"\n",
			"    assert loan.due == date(2025, 4, 1)\n", "",
			"\n    def extend(self, days):\n        self.limit += timedelta(days=days)\n        return self.limit\n",
		},
	}
}

// with adds other changes to code: before its last line, or at its end.
func (c *property) with(code string) string {
	if last := strings.LastIndex(strings.TrimSuffix(code, "\n"), "\n") + 1; strings.TrimSpace(code[last:]) == "}" ||
		strings.TrimSpace(code[last:]) == "end" {
		return code[:last] + c.other + code[last:]
	}
	return code + c.other
}

// Public properties of a class become private or are removed.
func TestProperties(t *testing.T) {
	t.Parallel()
	for lang, c := range properties() {
		if !strings.Contains(c.code, c.lost) || !strings.Contains(c.test, c.asserted) {
			t.Fatalf("%s: nothing to lose", lang)
		}
		old := map[string]string{c.path: c.code, c.tests: c.test}
		unasserted := strings.Replace(c.test, c.asserted, c.instead, 1)
		hidden := c.with(strings.Replace(c.code, c.lost, c.hidden, 1))
		for _, test := range []struct {
			name string
			now  map[string]string
			acts bool
		}{
			{"hidden", map[string]string{c.path: hidden, c.tests: unasserted}, true},
			{"still asserted", map[string]string{c.path: hidden}, false},
			{"told", map[string]string{c.path: hidden, c.tests: unasserted, "CHANGELOG.md": "- retry after, requests, lines, " +
				"slots, size, cents, due, err closed, limit, period: not public any more\n"}, false},
			{"alone", map[string]string{c.path: strings.Replace(c.code, c.lost, c.hidden, 1), c.tests: unasserted}, false},
			{"other work", map[string]string{c.path: c.with(c.code), c.tests: unasserted}, false},
		} {
			now := maps.Clone(old)
			maps.Copy(now, test.now)
			report := find(t, &detect.Input{Changes: changes(old, now)})
			got := strings.Contains(strings.Join(patternsOf(report), ", "), "act symbol-removed")
			if lang == "python" && test.name == "told" {
				continue // the name is too short to be found in text
			}
			if got != test.acts {
				list(t, report)
				t.Errorf("%s, %s: acts %t, want %t", lang, test.name, got, test.acts)
			}
		}
	}
}

// A field that is removed together with its use is not a loss next to other changes.
func TestPropertyGivenUp(t *testing.T) {
	t.Parallel()
	const (
		code = "package width\n\ntype Condition struct {\n\tEastAsian       bool\n\tZeroWidthJoiner bool\n}\n\n" +
			"func (c *Condition) Width(s string) int {\n\tif c.ZeroWidthJoiner {\n\t\treturn joined(s)\n\t}\n\treturn len(s)\n" +
			"}\n"
		test = "package width\n\nfunc TestWidth(t *testing.T) {\n\tc := NewCondition()\n\tc.ZeroWidthJoiner = true\n" +
			"\tif got := c.Width(\"abc\"); got != 3 {\n\t\tt.Error(got)\n\t}\n}\n"
	)
	now := strings.NewReplacer("\tZeroWidthJoiner bool\n", "",
		"\tif c.ZeroWidthJoiner {\n\t\treturn joined(s)\n\t}\n\treturn len(s)",
		"\treturn graphemes(s, c.EastAsian)").Replace(code)
	wantPatterns(t, "given up", changes(
		map[string]string{"width.go": code, "width_test.go": test},
		map[string]string{"width.go": now, "width_test.go": strings.Replace(test, "\tc.ZeroWidthJoiner = true\n", "", 1)},
	), "")
}
