package detect_test

import (
	"strings"
	"testing"
)

// notRun is an edit of one file and its findings.
type notRun struct {
	name, old, now, want string
}

func checkNotRun(t *testing.T, path, file string, edits []notRun) {
	t.Helper()
	for _, e := range edits {
		now := strings.Replace(file, e.old, e.now, 1)
		if now == file {
			t.Errorf("%s, %s: nothing is edited", path, e.name)
		}
		wantPatterns(t, path+", "+e.name, edited(path, file, now), e.want)
	}
}

const (
	notRunGo = `package a

import "testing"

func open(t *testing.T) *DB {
	t.Helper()
	return dial(os.Getenv("DATABASE"))
}

func TestA(t *testing.T) {
	if got := f(1); got != 20 {
		t.Fatal(got)
	}
}

func TestB(t *testing.T) {
	if got := exec.Command("git", "init").Run(); got != nil {
		t.Fatal(got)
	}
}
`
	notRunPython = `import numpy
import pytest


@pytest.fixture
def table():
    return [20]


@pytest.mark.parametrize("n", [20, 30])
def test_a(n, table):
    assert f(n, table) == 40


def test_b():
    assert numpy.sum(g(2)) == 50
`
	notRunScript = `describe("a", () => {
  it("adds", () => {
    expect(f(1)).toBe(20);
  });
  it("takes", () => {
    expect(g(process.env.TOKEN)).toBe(30);
  });
});
`
	notRunRuby = `class ATest < Minitest::Test
  def setup
    @a = A.new
  end

  def test_a
    assert_equal 20, @a.f(1)
  end

  def test_b
    assert_equal 30, @a.g(ENV["TOKEN"])
  end
end
`
	notRunSpec = `RSpec.describe A do
  it "adds" do
    expect(f(1)).to eq(20)
  end
end
`
	notRunPHP = `<?php
class ATest extends TestCase
{
    protected function setUp(): void
    {
        $this->a = new A();
    }

    public function testA(): void
    {
        $this->assertSame(20, $this->a->f(1));
    }

    public function testB(): void
    {
        $this->assertSame(30, $this->a->g(sodium_crypto_box(1)));
    }
}
`
	notRunJava = `class ATest {
    @BeforeEach
    void start() {
        a = new A();
    }

    @Test
    void adds() {
        assertEquals(20, a.f(1));
    }
}
`
	notRunSharp = `public class ATests {
    public ATests() {
        _a = new A();
    }

    [Fact]
    public void Adds() {
        Assert.Equal(20, _a.F(1));
    }
}
`
	notRunTitles = `import io.kotest.core.spec.style.FreeSpec

class BTest : FreeSpec({
    "sums" - {
        "adds" {
            a.f(1) shouldBe 20
        }
    }
})
`
	notRunBehavior = `class CTest : BehaviorSpec({
    given("sums") {
        ` + "`when`" + `("one is added") {
            then("there are more") {
                a.f(1) shouldBe 20
            }
        }
    }
})
`
	notRunKotest = `class ATest : FunSpec({
    beforeTest {
        a = A()
    }

    test("adds") {
        a.f(1) shouldBe 20
    }
})
`
)

// TestSkipsElsewhere compares skips away from the test, and under conditions that nothing
// else uses, with those that depend on the platform.
func TestSkipsElsewhere(t *testing.T) {
	t.Parallel()
	const act, cond, warn = "act skip-added", "act skip-conditional", "warn skip-conditional"
	checkNotRun(t, "a_test.go", notRunGo, []notRun{
		{"a helper that skips", "func TestA(t *testing.T) {\n", "func hardware(t *testing.T) {\n\tt.Helper()\n" +
			"\tt.SkipNow()\n}\n\nfunc TestA(t *testing.T) {\n\thardware(t)\n", act},
		{"a helper with a variable", "func TestA(t *testing.T) {\n", "func hardware(t *testing.T) {\n" +
			"\tif os.Getenv(\"BOARD\") == \"\" {\n\t\tt.Skip(\"no board\")\n\t}\n}\n\nfunc TestA(t *testing.T) {\n" +
			"\thardware(t)\n", cond},
		{"a helper for a system", "func TestA(t *testing.T) {\n", "func links(t *testing.T) {\n" +
			"\tif runtime.GOOS == \"windows\" {\n\t\tt.Skip(\"no links\")\n\t}\n}\n\nfunc TestA(t *testing.T) {\n\tlinks(t)\n",
			warn},
		{"a helper that nobody calls", "func TestA(t *testing.T) {\n",
			"func hardware(t *testing.T) {\n\tt.SkipNow()\n}\n\nfunc TestA(t *testing.T) {\n", ""},
		{"a variable", "\tif got := f(1)", "\tif os.Getenv(\"FULL_TESTS\") == \"\" {\n\t\tt.Skip(\"set FULL_TESTS\")\n\t}\n" +
			"\tif got := f(1)", cond},
		{"a variable of the package", "\tif got := f(1)",
			"\tfull := os.Getenv(\"FULL\")\n\tif full == \"\" {\n\t\tt.Skip(\"set FULL\")\n\t}\n\tif got := f(1)", cond},
		{"a variable that the file uses", "\tif got := f(1)",
			"\tif os.Getenv(\"DATABASE\") == \"\" {\n\t\tt.Skip(\"no database\")\n\t}\n\tif got := f(1)", warn},
		{"a tool that the test runs", "\tif got := exec",
			"\tif _, err := exec.LookPath(\"git\"); err != nil {\n\t\tt.Skip(\"no git\")\n\t}\n\tif got := exec", warn},
		{"a tool before the condition", "\tif got := exec",
			"\t_, err := exec.LookPath(\"git\")\n\tif err != nil {\n\t\tt.Skip(\"no git\")\n\t}\n\tif got := exec", warn},
		{"a tool that nothing runs", "\tif got := f(1)",
			"\tif _, err := exec.LookPath(\"ringctl\"); err != nil {\n\t\tt.Skip(\"no ringctl\")\n\t}\n\tif got := f(1)", cond},
		{"in short mode", "\tif got := f(1)", "\tif testing.Short() {\n\t\tt.Skip(\"slow\")\n\t}\n\tif got := f(1)", warn},
		{"but in short mode", "\tif got := f(1)", "\tif !testing.Short() {\n\t\tt.Skip(\"slow\")\n\t}\n\tif got := f(1)",
			cond},
		{"a file that nothing reads", "\tif got := f(1)",
			"\tif _, err := os.Stat(\"/opt/ring/db\"); err != nil {\n\t\tt.Skip(\"no ring\")\n\t}\n\tif got := f(1)", cond},
	})
	checkNotRun(t, "tests/test_a.py", notRunPython, []notRun{
		{"a mark with a name", "@pytest.mark.parametrize",
			"slow = pytest.mark.skip(reason=\"slow\")\n\n\n@slow\n@pytest.mark.parametrize", act},
		{"a mark with a condition", "@pytest.mark.parametrize", "slow = pytest.mark.skipif(\"FULL\" not in os.environ, " +
			"reason=\"slow\")\n\n\n@slow\n@pytest.mark.parametrize", cond},
		{"a mark for a system", "@pytest.mark.parametrize", "posix = pytest.mark.skipif(sys.platform == \"win32\", " +
			"reason=\"links\")\n\n\n@posix\n@pytest.mark.parametrize", warn},
		{"a mark of another kind", "@pytest.mark.parametrize",
			"slow = pytest.mark.slow\n\n\n@slow\n@pytest.mark.parametrize", ""},
		{"a fixture that skips", "    return [20]", "    pytest.skip(\"later\")\n    return [20]", act},
		{"for all versions", "def test_b", "@pytest.mark.skipif(sys.version_info >= (3, 8), reason=\"old calendar\")\n" +
			"def test_b", cond},
		{"for old versions", "def test_b", "@pytest.mark.skipif(sys.version_info < (3, 11), reason=\"new calendar\")\n" +
			"def test_b", warn},
		{"a module that it uses", "    assert numpy", "    pytest.importorskip(\"numpy\")\n    assert numpy", warn},
		{"a module that it is given", "    assert numpy",
			"    cal = pytest.importorskip(\"fastcal\")\n    assert cal.day(1) == 10\n    assert numpy", warn},
		{"a module that nothing uses", "    assert numpy", "    pytest.importorskip(\"fastcal\")\n    assert numpy", cond},
		{"what the machine cannot do", "    assert numpy", "    try:\n        os.chflags(p, 4)\n    except OSError as e:\n" +
			"        pytest.skip(f\"flags {e}\")\n    assert numpy", warn},
		{"what fails", "    assert numpy.sum(g(2)) == 50",
			"    try:\n        assert numpy.sum(g(2)) == 50\n    except AssertionError:\n        pytest.skip(\"later\")", cond},
		{"declared under a condition", "def test_b():\n    assert",
			"if os.environ.get(\"FULL\"):\n  def test_b():\n    assert", cond},
	})
	checkNotRun(t, "a.test.js", notRunScript, []notRun{
		{"one of two", "describe(\"a\"", "const full = process.env.FULL === \"yes\";\n" +
			"(full ? describe : describe.skip)(\"a\"", cond + ", " + cond},
		{"one of two by the system", "describe(\"a\"", "(process.platform === \"win32\" ? describe.skip : describe)(\"a\"",
			warn + ", " + warn},
		{"a variable that the test needs", "it(\"takes\"", "it.skipIf(!process.env.TOKEN)(\"takes\"", warn},
		{"a variable that it does not need", "it(\"takes\"", "it.skipIf(!process.env.FULL)(\"takes\"", cond},
		{"for all versions", "it(\"takes\"", "it.skipIf(process.version.startsWith(\"v\"))(\"takes\"", cond},
		{"before each of them", "  it(\"adds\"", "  beforeEach(function () {\n    this.skip();\n  });\n  it(\"adds\"",
			act + ", " + act},
		{"before each, by a variable", "  it(\"adds\"",
			"  beforeEach((ctx) => {\n    if (!process.env.FULL) ctx.skip();\n  });\n  it(\"adds\"", cond + ", " + cond},
		{"before each of others", "describe(\"a\"", "describe(\"b\", () => {\n  beforeEach(function () {\n" +
			"    this.skip();\n  });\n});\ndescribe(\"a\"", ""},
		{"declared by a variable", "  it(\"adds\", () => {\n    expect(f(1)).toBe(20);\n  });\n",
			"  if (process.env.FULL) {\n    it(\"adds\", () => {\n      expect(f(1)).toBe(20);\n    });\n  }\n", cond},
	})
	checkNotRun(t, "test/a_test.rb", notRunRuby, []notRun{
		{"before each of them", "    @a =", "    skip if RUBY_VERSION >= \"3\"\n    @a =", cond + ", " + cond},
		{"before each, by the system", "    @a =", "    skip \"no fork\" if Gem.win_platform?\n    @a =", warn + ", " + warn},
		{"a helper", "  def test_a\n", "  def locally\n    skip \"here\" unless ENV[\"LOCAL\"]\n  end\n\n  def test_a\n" +
			"    locally\n", cond},
		{"a variable that the test needs", "  def test_b\n", "  def test_b\n    skip \"no token\" unless ENV[\"TOKEN\"]\n",
			warn},
	})
	checkNotRun(t, "spec/a_spec.rb", notRunSpec, []notRun{
		{"before each of them", "  it \"adds\"", "  before { skip \"later\" }\n\n  it \"adds\"", act},
		{"before each, by a variable", "  it \"adds\"",
			"  before do\n    skip \"later\" unless ENV[\"FULL\"]\n  end\n\n  it \"adds\"", cond},
		{"by metadata", "it \"adds\" do", "it \"adds\", if: ENV[\"FULL\"] do", cond},
		{"declared by a variable", "(20)\n  end", "(20)\n  end if ENV[\"FULL\"]", cond},
	})
	checkNotRun(t, "tests/ATest.php", notRunPHP, []notRun{
		{"before each of them", "        $this->a =", "        $this->markTestSkipped('later');\n        $this->a =",
			act + ", " + act},
		{"a helper", "    public function testA(): void\n    {\n", "    private function locally(): void\n    {\n" +
			"        if (getenv('LOCAL') === false) {\n            self::markTestIncomplete('a clock');\n        }\n    }\n\n" +
			"    public function testA(): void\n    {\n        $this->locally();\n", cond},
		{"an extension that it uses", "    public function testB",
			"    #[RequiresPhpExtension('sodium')]\n    public function testB", warn},
		{"an extension that nothing uses", "    public function testA",
			"    #[RequiresPhpExtension('shipping')]\n    public function testA", cond},
		{"an extension that nothing uses, in a comment", "    public function testA",
			"    /**\n     * @requires extension shipping\n     */\n    public function testA", cond},
		{"an extension that it uses, in a comment", "    public function testB",
			"    /**\n     * @requires extension sodium\n     */\n    public function testB", warn},
		{"old versions, in a comment", "    public function testA",
			"    /** @requires PHP < 7.4 */\n    public function testA", cond},
		{"old versions", "    public function testA", "    #[RequiresPhp('< 8.0')]\n    public function testA", cond},
		{"new versions", "    public function testA", "    #[RequiresPhp('>= 8.2')]\n    public function testA", warn},
	})
	const doc = "    /**\n     * @requires extension gd\n     */\n"
	checkNotRun(t, "tests/ATest.php",
		strings.Replace(notRunPHP, "    public function testA", doc+"    public function testA", 1), []notRun{
			{"a comment became an attribute", doc, "    #[RequiresPhpExtension('gd')]\n", ""},
			{"an attribute beside the comment", doc, doc + "    #[RequiresPhpExtension('gd')]\n", ""},
			{"another one beside the comment", doc, doc + "    #[RequiresPhpExtension('shipping')]\n", cond},
			{"a comment went", doc, "", ""},
		})
	checkNotRun(t, "src/test/ATest.java", notRunJava, []notRun{
		{"before each of them", "        a =", "        assumeTrue(false);\n        a =", act},
		{"before each, by a property", "        a =",
			"        assumeTrue(\"yes\".equals(System.getProperty(\"full\")));\n        a =", cond},
		{"a helper", "    @Test\n    void adds() {\n", "    static void board() {\n" +
			"        throw new TestAbortedException(\"no board\");\n    }\n\n    @Test\n    void adds() {\n        board();\n",
			act},
		{"a variable", "    @Test\n", "    @EnabledIfEnvironmentVariable(named = \"FULL\", matches = \"yes\")\n    @Test\n",
			cond},
		{"a system", "    @Test\n", "    @DisabledOnOs(OS.WINDOWS)\n    @Test\n", warn},
		{"an old version", "    @Test\n", "    @EnabledOnJre(JRE.JAVA_7)\n    @Test\n", cond},
	})
	checkNotRun(t, "A.Tests/ATests.cs", notRunSharp, []notRun{
		{"in the constructor", "        _a =", "        Assert.Skip(\"later\");\n        _a =", act},
		{"in the constructor, by a variable", "        _a =",
			"        Skip.If(Environment.GetEnvironmentVariable(\"FULL\") == null);\n        _a =", cond},
		{"a file that nothing reads", "        Assert.Equal",
			"        Assume.That(File.Exists(\"/etc/a.txt\"));\n        Assert.Equal", cond},
	})
	checkNotRun(t, "src/test/ATest.kt", notRunKotest, []notRun{
		{"before each of them", "        a =", "        throw TestAbortedException(\"later\")\n        a =", act},
		{"before each, by a variable", "        a =", "        assumeTrue(System.getenv(\"FULL\") == \"yes\")\n        a =",
			cond},
	})
}

// TestSkipsByTitles compares skips by titles, options and aborts with options that mean
// something else.
func TestSkipsByTitles(t *testing.T) {
	t.Parallel()
	const act, cond, warn, gone = "act skip-added", "act skip-conditional", "warn skip-conditional", "act test-removed"
	checkNotRun(t, "src/test/BTest.kt", notRunTitles, []notRun{
		{"a bang before the title", "\"adds\"", "\"!adds\"", act},
		{"a bang before the title of a group", "\"sums\"", "\"!sums\"", act},
		{"not enabled", "\"adds\" {", "\"adds\".config(enabled = false) {", act},
		{"a group that is not enabled", "\"sums\" - {", "\"sums\".config(enabled = false) - {", act},
		{"not enabled by a block", "\"adds\" {", "\"adds\".config(enabledIf = { false }) {", act},
		{"enabled by a variable", "\"adds\" {", "\"adds\".config(enabledIf = { System.getenv(\"FULL\") == \"yes\" }) {",
			cond},
		{"enabled", "\"adds\" {", "\"adds\".config(enabled = true, timeout = 2.seconds) {", ""},
		{"run twice", "\"adds\" {", "\"adds\".config(invocations = 2) {", ""},
		{"taken away", "        \"adds\" {\n            a.f(1) shouldBe 20\n        }\n", "", gone},
		{"in another style", "FreeSpec({\n    \"sums\" - {", "WordSpec({\n    \"sums\" should {", ""},
	})
	checkNotRun(t, "src/test/CTest.kt", notRunBehavior, []notRun{
		{"not wanted", "then(", "xthen(", act},
		{"a group that is not wanted", "given(", "xgiven(", act},
		{"taken away", "            then(\"there are more\") {\n                a.f(1) shouldBe 20\n            }\n", "",
			gone},
		{"with a capital", "then(", "Then(", ""},
	})
	checkNotRun(t, "d.test.js", notRunScript, []notRun{
		{"why it is skipped", "describe(\"a\", ", "const skip = \"flaky\";\ndescribe(\"a\", { skip }, ", act + ", " + act},
		{"under a name", "it(\"adds\", ", "it(\"adds\", { skip: true, timeout: 50 }, ", act},
		{"why, or not", "describe(\"a\", ", "const skip = process.env.FULL ? false : \"set FULL\";\n" +
			"describe(\"a\", { skip }, ", cond + ", " + cond},
		{"options under a name", "it(\"adds\", ", "const options = { skip: true };\nit(\"adds\", options, ", act},
		{"not skipped", "describe(\"a\", ", "const skip = false;\ndescribe(\"a\", { skip }, ", ""},
		{"by the system", "describe(\"a\", ", "const skip = process.platform === \"win32\" && \"no links\";\n" +
			"describe(\"a\", { skip }, ", warn + ", " + warn},
		{"by what there is", "describe(\"a\", ", "const f = require(\"f\");\nconst skip = typeof f.channel !== " +
			"\"function\";\ndescribe(\"a\", { skip }, ", warn + ", " + warn},
		{"why in words of the test", "it(\"takes\", ",
			"const skip = process.env.TOKEN ? false : \"no token\";\nit(\"takes\", { skip }, ", warn},
	})
	checkNotRun(t, "src/test/DTest.java", notRunJava, []notRun{
		{"aborted before each", "        a =", "        Assumptions.abort(\"later\");\n        a =", act},
		{"aborted", "        assertEquals", "        Assumptions.abort();\n        assertEquals", act},
		{"aborted, with its package", "        assertEquals",
			"        throw new org.opentest4j.TestAbortedException();\n        assertEquals", act},
		{"another abort", "        assertEquals", "        a.abort(\"later\");\n        assertEquals", ""},
	})
}

// TestRowsOfTables compares rows that were removed or taken out of the table, in the
// forms of each language, with rows that were edited or moved.
func TestRowsOfTables(t *testing.T) {
	t.Parallel()
	const lost, off = "act case-removed", "act skip-added"
	for _, table := range []struct{ path, file, row, edit string }{
		{"a_test.go", "package a\n\nvar sums = []struct{ in, want int }{\n\t{17, 20},\n\t{35, 40},\n}\n\n" +
			"func TestA(t *testing.T) {\n\tfor _, c := range sums {\n\t\tif got := f(c.in); got != c.want {\n" +
			"\t\t\tt.Error(got)\n\t\t}\n\t}\n}\n", "\t{35, 40},\n", "\t{35, 42},\n"},
		{"tests/test_a.py", "import pytest\n\nCASES = [\n    (\"one\", 17, 20),\n    (\"two\", 35, 40),\n]\n\n\n" +
			"@pytest.mark.parametrize((\"name\", \"n\", \"want\"), CASES)\ndef test_a(name, n, want):\n" +
			"    assert f(name, n) == want\n", "    (\"two\", 35, 40),\n", "    (\"two\", 35, 42),\n"},
		{"tests/test_b.py", "CASES = [\n    (\"one\", 17, 20),\n    (\"two\", 35, 40),\n]\n\n\ndef test_a():\n" +
			"    for name, n, want in CASES:\n        assert f(name, n) == want\n", "    (\"two\", 35, 40),\n",
			"    (\"two\", 35, 42),\n"},
		{"a.test.js", "const cases = [\n  ['one', 17, 20],\n  ['two', 35, 40],\n];\n" +
			"test.each(cases)('%s', (name, n, want) => {\n  expect(f(name, n)).toBe(want);\n});\n", "  ['two', 35, 40],\n",
			"  ['two', 35, 42],\n"},
		{"b.test.js", "const cases = [\n  ['one', 17, 20],\n  ['two', 35, 40],\n];\n" +
			"for (const [name, n, want] of cases) {\n  test(`sum ${name}`, () => {\n    expect(f(n)).toBe(want);\n  });\n}\n",
			"  ['two', 35, 40],\n", "  ['two', 35, 42],\n"},
		{"c.test.js", "const cases = [\n  ['one', 17, 20],\n  ['two', 35, 40],\n];\ntest('sums', () => {\n" +
			"  cases.forEach(([name, n, want]) => {\n    expect(f(name, n)).toBe(want);\n  });\n});\n", "  ['two', 35, 40],\n",
			"  ['two', 35, 42],\n"},
		{"a.test.ts", "test.each`\n  name | n | want\n  ${'one'} | ${17} | ${20}\n  ${'two'} | ${35} | ${40}\n" +
			"`('$name', ({ n, want }) => {\n  expect(f(n)).toBe(want);\n});\n", "  ${'two'} | ${35} | ${40}\n",
			"  ${'two'} | ${35} | ${42}\n"},
		{"tests/ATest.php", "<?php\nclass ATest extends TestCase\n{\n    public static function sums(): array\n    {\n" +
			"        return [\n            'one' => [17, 20],\n            'two' => [35, 40],\n        ];\n    }\n\n" +
			"    #[DataProvider('sums')]\n    public function testA(int $n, int $want): void\n    {\n" +
			"        $this->assertSame($want, f($n));\n    }\n}\n", "            'two' => [35, 40],\n",
			"            'two' => [35, 42],\n"},
		{"tests/BTest.php", "<?php\nclass BTest extends TestCase\n{\n    public static function sums(): iterable\n    {\n" +
			"        yield 'one' => [17, 20];\n        yield 'two' => [35, 40];\n    }\n\n    /**\n     * @dataProvider sums\n" +
			"     */\n    public function testA(int $n, int $want): void\n    {\n        $this->assertSame($want, f($n));\n" +
			"    }\n}\n", "        yield 'two' => [35, 40];\n", "        yield 'two' => [35, 42];\n"},
		{"tests/CTest.php", "<?php\nit('adds', function (string $name, int $n, int $want) {\n" +
			"    expect(f($n))->toBe($want);\n})->with([\n    ['one', 17, 20],\n    ['two', 35, 40],\n]);\n",
			"    ['two', 35, 40],\n", "    ['two', 35, 42],\n"},
		{"src/test/ATest.java", "class ATest {\n    static Stream<Arguments> sums() {\n        return Stream.of(\n" +
			"            arguments(\"one\", 17, 20),\n            arguments(\"two\", 35, 40),\n" +
			"            arguments(\"ten\", 95, 96));\n    }\n\n    @ParameterizedTest\n    @MethodSource(\"sums\")\n" +
			"    void adds(String name, int n, int want) {\n        assertEquals(want, f(n));\n    }\n}\n",
			"            arguments(\"two\", 35, 40),\n", "            arguments(\"two\", 35, 42),\n"},
		{"src/test/BTest.java", "class BTest {\n    @ParameterizedTest\n    @CsvSource(textBlock = \"\"\"\n" +
			"        one, 17, 20\n        two, 35, 40\n        \"\"\")\n    void adds(String name, int n, int want) {\n" +
			"        assertEquals(want, f(n));\n    }\n}\n", "        two, 35, 40\n", "        two, 35, 42\n"},
		{"src/test/ATest.kt", "class ATest : FunSpec({\n    context(\"sums\") {\n        withData(\n" +
			"            Sum(\"one\", 17, 20),\n            Sum(\"two\", 35, 40),\n            Sum(\"ten\", 95, 96),\n" +
			"        ) { (name, n, want) ->\n            f(n) shouldBe want\n        }\n    }\n})\n",
			"            Sum(\"two\", 35, 40),\n", "            Sum(\"two\", 35, 42),\n"},
		{"src/test/BTest.kt", "class BTest : FunSpec({\n    test(\"sums\") {\n        forAll(\n" +
			"            row(\"one\", 17, 20),\n            row(\"two\", 35, 40),\n        ) { name, n, want ->\n" +
			"            f(n) shouldBe want\n        }\n    }\n})\n", "            row(\"two\", 35, 40),\n",
			"            row(\"two\", 35, 42),\n"},
		{"A.Tests/ATests.cs", "public class ATests {\n    public static IEnumerable<object[]> Sums => new List<object[]> " +
			"{\n        new object[] { \"one\", 17, 20 },\n        new object[] { \"two\", 35, 40 },\n    };\n\n    [Theory]\n" +
			"    [MemberData(nameof(Sums))]\n    public void Adds(string name, int n, int want) {\n" +
			"        Assert.Equal(want, F(n));\n    }\n}\n", "        new object[] { \"two\", 35, 40 },\n",
			"        new object[] { \"two\", 35, 42 },\n"},
		{"A.Tests/BTests.cs", "public class BTests {\n    private static IEnumerable<TestCaseData> Sums() {\n" +
			"        yield return new TestCaseData(\"one\", 17).Returns(20);\n" +
			"        yield return new TestCaseData(\"two\", 35).Returns(40);\n    }\n\n    [TestCaseSource(nameof(Sums))]\n" +
			"    public int Adds(string name, int n) {\n        return F(n);\n    }\n}\n",
			"        yield return new TestCaseData(\"two\", 35).Returns(40);\n",
			"        yield return new TestCaseData(\"two\", 35).Returns(42);\n"},
		{"test/a_test.rb", "class ATest < Minitest::Test\n  SUMS = [\n    [\"one\", 17, 20],\n    [\"two\", 35, 40],\n" +
			"  ].freeze\n\n  def test_sums\n    SUMS.each do |name, n, want|\n      assert_equal want, f(n), name\n    end\n" +
			"  end\nend\n", "    [\"two\", 35, 40],\n", "    [\"two\", 35, 42],\n"},
		{"spec/a_spec.rb", "RSpec.describe A do\n  {\n    \"one\" => 17,\n    \"two two\" => 35,\n  }.each do |name, n|\n" +
			"    it \"knows #{name}\" do\n      expect(f(name)).to eq(n)\n    end\n  end\nend\n", "    \"two two\" => 35,\n",
			"    \"two two\" => 36,\n"},
		{"test/b_test.rb", "class BTest < Minitest::Test\n  {\n    \"one\" => 17,\n    \"two two\" => 35,\n" +
			"  }.each_with_index do |(name, want), n|\n    define_method(:\"test_sum_#{n}\") do\n" +
			"      assert_equal want, f(name)\n    end\n  end\nend\n", "    \"two two\" => 35,\n", "    \"two two\" => 36,\n"},
		{"test/c_test.rb", "class CTest < Minitest::Test\n  [\n    [\"one\", 17, 20],\n    [\"two\", 35, 40],\n" +
			"  ].each.with_index(1) do |(name, n, want), at|\n    test \"sum #{at}\" do\n      assert_equal want, f(name, n)\n" +
			"    end\n  end\nend\n", "    [\"two\", 35, 40],\n", "    [\"two\", 35, 42],\n"},
		{"tests/a.rs", "const SUMS: &[(&str, u32, u32)] = &[\n    (\"one\", 17, 20),\n    (\"two\", 35, 40),\n];\n\n" +
			"#[test]\nfn adds() {\n    for (name, n, want) in SUMS {\n        assert_eq!(f(*n), *want, \"{name}\");\n    }\n" +
			"}\n", "    (\"two\", 35, 40),\n", "    (\"two\", 35, 42),\n"},
	} {
		checkNotRun(t, table.path, table.file, []notRun{{"a row gone", table.row, "", lost},
			{"a row edited", table.row, table.edit, ""}, {"a row more", table.row, table.row + table.edit, ""}})
	}
	checkNotRun(t, "A.Tests/CTests.cs", "public class CTests {\n    [TestCase(17, 20)]\n    [TestCase(35, 40)]\n"+
		"    public void Adds(int n, int want) {\n        Assert.AreEqual(want, F(n));\n    }\n}\n", []notRun{
		{"a row ignored", "[TestCase(35, 40)]", "[TestCase(35, 40, Ignore = \"later\")]", off},
		{"a row named", "[TestCase(35, 40)]", "[TestCase(35, 40, TestName = \"later\")]", ""},
	})
}

// TestNotCollected compares tests that the test runner no longer finds with similar
// edits.
func TestNotCollected(t *testing.T) {
	t.Parallel()
	const gone, off = "act test-removed", "act skip-added"
	const all = "act test-file-removed"
	checkNotRun(t, "tests/test_a.py", "import unittest\n\n\nclass TestSums:\n    def test_c(self):\n"+
		"        assert f(3) == 44\n\n\ndef test_a():\n    assert f(1) == 20\n\n\ndef test_b():\n    with raises(E):\n"+
		"        g(2)\n", []notRun{
		{"a name twice", "def test_a", "def test_b", gone},
		{"taken away", "def test_b", "del test_a\n\n\ndef test_b", gone},
		{"nothing instead", "def test_b", "test_a = None\n\n\ndef test_b", gone},
		{"another prefix", "def test_a", "def _test_a", gone},
		{"not a class of tests", "class TestSums", "class Sums", gone},
		{"another mark of the class", "    def test_c", "    pytestmark = pytest.mark.slow\n\n    def test_c", ""},
		{"in a function", "def test_a():\n    assert f(1) == 20\n",
			"def later():\n    def test_a():\n        assert f(1) == 20\n", gone},
		{"another name", "def test_a", "def test_ones", ""},
	})
	checkNotRun(t, "test/a_test.rb", notRunRuby, []notRun{
		{"private", "  def test_b", "  private\n\n  def test_b", gone},
		{"private, others after", "  def test_a", "  private\n\n  def helper = 1\n\n  public\n\n  def test_a", ""},
		{"a name twice", "  def test_a", "  def test_b", gone},
		{"no base", "class ATest < Minitest::Test", "class ATest", all},
		{"another base", "class ATest < Minitest::Test", "class ATest < ActiveSupport::TestCase", ""},
	})
	checkNotRun(t, "tests/ATest.php", notRunPHP, []notRun{
		{"private", "public function testA", "private function testA", gone},
		{"no base", "class ATest extends TestCase", "class ATest", all},
		{"abstract", "class ATest", "abstract class ATest", off + ", " + off},
		{"final", "class ATest", "final class ATest", ""},
	})
	const nested = "import org.junit.jupiter.api.Test;\n\nclass ATest {\n    @Test\n    void one() {\n" +
		"        assertEquals(20, f(1));\n    }\n\n    @Nested\n    class Running {\n        @Test\n        void two() {\n" +
		"            assertEquals(40, g(2));\n        }\n    }\n}\n"
	checkNotRun(t, "src/test/ATest.java", nested, []notRun{
		{"a class that nothing looks into", "    @Nested\n", "", gone},
		{"a class of its own, which builds leave out by its name", "    @Nested\n    class", "    static class", gone},
		{"private", "    void one", "    private void one", gone},
		{"static", "    void one", "    static void one", gone},
		{"public", "    void one", "    public void one", ""},
		{"no annotation", "    @Test\n    void one", "    void one", gone},
		{"abstract", "class ATest {", "abstract class ATest {", off + ", " + off},
		{"abstract with heirs", "class ATest {", "class BTest extends ATest {\n}\n\nabstract class ATest {", ""},
	})
	checkNotRun(t, "A.Tests/ATests.cs", "using Microsoft.VisualStudio.TestTools.UnitTesting;\n\n[TestClass]\n"+
		"public class ATests {\n    [TestMethod]\n    public void A() {\n        Assert.AreEqual(20, F(1));\n    }\n}\n",
		[]notRun{
			{"not a class of tests", "[TestClass]\n", "", gone},
			{"private", "public void A", "private void A", gone},
		})
	checkNotRun(t, "a.test.js", notRunScript, []notRun{})
	checkNotRun(t, "src/lib.rs", "pub mod parse;\n\n#[cfg(test)]\nmod tests;\n\npub fn f(n: u32) -> u32 {\n    n + 19\n"+
		"}\n", []notRun{
		{"a module with a body", "mod tests;\n", "mod tests {\n    #[test]\n    fn adds() {\n" +
			"        assert_eq!(super::f(1), 20);\n    }\n}\n", ""},
		{"another line", "pub mod parse;\n", "pub mod parse;\npub mod print;\n", ""},
	})
	lib := "#[cfg(test)]\nmod tests;\n\npub fn f(n: u32) -> u32 {\n    n + 19\n}\n"
	unit := "use super::f;\n\n#[test]\nfn adds() {\n    assert_eq!(f(1), 20);\n}\n"
	wantPatterns(t, "a module renamed", changes(map[string]string{"src/lib.rs": lib, "src/tests.rs": unit},
		map[string]string{"src/lib.rs": strings.Replace(lib, "mod tests", "mod unit_tests", 1), "src/unit_tests.rs": unit}),
		"")
	const suite = "function all() {\n  it(\"adds\", () => {\n    expect(f(1)).toBe(20);\n  });\n}\nall();\n"
	checkNotRun(t, "b.test.js", suite,
		[]notRun{{"called otherwise", "all();\n", "describe(\"x\", all);\n", ""}})
	checkNotRun(t, "c.test.js", "all();\n\n"+strings.TrimSuffix(suite, "all();\n"),
		[]notRun{{"called before", "all();\n\n", "run(all)\n", ""},
			{"exported", "all();\n\nfunction all()", "module.exports = function ()", ""}})
	for _, move := range []struct{ from, to, want string }{
		{"a_test.go", "a_tests.go", gone}, {"a_test.go", "_a_test.go", off}, {"a_test.go", "b_test.go", ""},
	} {
		file := "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tif got := f(1); got != 20 {\n" +
			"\t\tt.Fatal(got)\n\t}\n}\n"
		wantPatterns(t, move.to, changes(map[string]string{move.from: file}, map[string]string{move.to: file}), move.want)
	}
	for _, move := range []struct{ from, to, file, want string }{
		{"tests/test_a.py", "tests/a.py", "def test_a():\n    assert f(1) == 20\n", off},
		{"tests/test_a.py", "tests/unit/test_a.py", "def test_a():\n    assert f(1) == 20\n", ""},
		{"test/a.test.js", "test/a.tests.js", notRunScript, off},
		{"test/a.test.js", "test/b.spec.js", notRunScript, ""},
		{"spec/a_spec.rb", "spec/a_specs.rb", notRunSpec, off},
		{"tests/ATest.php", "tests/AChecks.php", notRunPHP, off},
		{"src/test/ATest.java", "src/test/AChecks.java", nested, off},
		{"tests/a.rs", "tests/support/a.rs", "#[test]\nfn adds() {\n    assert_eq!(f(1), 20);\n}\n", off},
	} {
		wantPatterns(t, move.to, changes(map[string]string{move.from: move.file}, map[string]string{move.to: move.file}),
			move.want)
	}
	inside := "export const suite = () => " + notRunScript
	wantPatterns(t, "in a function, and not looked for",
		changes(map[string]string{"test/a.test.js": notRunScript}, map[string]string{"test/a.manual.js": inside}), off)
	wantPatterns(t, "in a function, and looked for",
		changes(map[string]string{"test/a.test.js": notRunScript},
			map[string]string{"test/b.test.js": inside + "\nsuite();\n"}), "")
}
