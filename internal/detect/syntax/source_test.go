package syntax_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// summary describes the tests of a model, one a line.
func summary(m *syntax.Model) []string {
	var all []string
	for _, t := range m.Tests {
		line := fmt.Sprintf("%d %s", t.Line, t.Name)
		if n := len(t.Asserts); n > 0 {
			line += fmt.Sprintf(" asserts=%d", n)
		}
		if n := len(t.Cases); n > 0 {
			line += fmt.Sprintf(" cases=%d", n)
		}
		switch t.Skip {
		case syntax.Always:
			line += " skipped"
		case syntax.Sometimes:
			line += " skipped sometimes"
		case syntax.Runs:
		}
		if t.Focus {
			line += " focused"
		}
		if t.Fails {
			line += " fails"
		}
		all = append(all, line)
	}
	return all
}

func read(t *testing.T, path, text string) *syntax.Model {
	t.Helper()
	lang := syntax.LanguageOf(path)
	if lang == nil {
		t.Fatalf("%s is of no language", path)
	}
	return syntax.Read(lang, path, text)
}

type identity struct {
	name, path, text string
	want             []string
}

// The identity of tests, their suites, tables and skips, in each language.
func TestIdentities(t *testing.T) {
	t.Parallel()
	for _, test := range slices.Concat(scripted(), compiled(), mixed()) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, summary(read(t, test.path, test.text))); diff != "" {
				t.Errorf("tests differ (-want +got):\n%s", diff)
			}
		})
	}
}

func scripted() []identity {
	return []identity{
		{"go", "a_test.go", `package a
func TestMain(m *testing.M) { os.Exit(m.Run()) }
func TestA(t *testing.T) {
	for _, c := range []struct{ n int }{{1}, {2}} { require.Equal(t, 1, c.n) }
	t.Run("x", func(t *testing.T) {
		if got := f(); got != 2 { t.Errorf("got %d", got) }
		t.Run("y", func(t *testing.T) { if testing.Short() { t.Skip() }; check(t, 1) })
	})
}
func TestB(t *testing.T) { if false { t.Skip("x") }; t.Fatal("no") }
func Testing() {}
func TestNot(a, b int) {}
func FuzzC(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) { if n < 0 { t.Error(n) } }) }
func ExampleD() {
	fmt.Println(1)
	// Output: 1
}
func ExampleE() { fmt.Println(1) }
func (s *OneSuite) TestF() { s.Equal(1, 2) }
func helper(t *testing.T) { t.Run("not", func(t *testing.T) {}) }
`, []string{
			"3 TestA asserts=1 cases=2", "5 TestA > x asserts=1", "7 TestA > x > y asserts=1 skipped sometimes",
			"10 TestB asserts=1 skipped",
			"13 FuzzC asserts=1 cases=1", "14 ExampleD", "19 OneSuite.TestF asserts=1",
		}},
		{"broken go", "a_test.go", "package a\nfunc TestA(t *testing.T) { t.Fatal(\"x\") }\nfunc broken( {\n" +
			"func TestB(t *testing.T) { t.Fatal(\"y\") }\n",
			[]string{"2 TestA asserts=1", "4 TestB asserts=1"}},
		{"javascript", "test/a.spec.js", `
describe('s', function () {
  it("plain", async () => { expect(await f()).toBe(1); assert.equal(1, x); });
  it.only(` + "`tick ${x}`" + `, () => { a.should.equal(2) });
  describe.each([[1], [2]])('n %i', (n) => { test('t', () => expect(n).toBe(1)) });
  it.each` + "`a | b\n${1} | ${2}\n`" + `('tab', ({ a }) => { expect(a).toBe(1) });
  it.todo('later');
  it('pending');
  xdescribe('off', () => { it('inner', () => { expect(1).toBe(y) }) });
  it('runtime', function () { this.skip(); });
  it('sometimes', function () { if (process.platform === 'win32') { this.skip(); } expect(g()).toBe(2) });
  it('option', { skip: true }, () => {});
  test.failing('bug', () => { expect(h()).toBe(3) });
});
const it2 = it; it2('not');
suite.run('x', () => {});
// it('comment', () => {})
`, []string{
			"3 s > plain asserts=2", "4 s > tick ${x} asserts=1 focused", "5 s > n %i > t asserts=1 cases=2",
			"6 s > tab asserts=1 cases=1",
			"11 s > off > inner asserts=1 skipped", "12 s > runtime skipped", "13 s > sometimes asserts=1 skipped sometimes",
			"14 s > option skipped", "15 s > bug asserts=1 fails",
		}},
		{"tape", "test/a.js", "test('a', function (t) {\n  t.test('b', function (st) { st.equal(f(1), 2); st.end(); });\n" +
			"  t.end();\n});\n", []string{"2 a > b asserts=1"}},
		{"typescript", "a.test.ts", `
test('generic', async () => { const a = <T,>(x: T): T => x; expect<number>(a(1)).toBe(1); });
describe('class', () => { it('as', () => { expect((x as any).y!).toEqual({ a: [1] }) }) });
`, []string{"2 generic asserts=1", "3 class > as asserts=1"}},
		{"python", "tests/test_a.py", `
import pytest
def test_plain():
    """Not test_doc()."""
    assert f(1) == 2, "why"
    with pytest.raises(ValueError):
        f(-1)

@pytest.mark.parametrize("a", [1, 2, pytest.param(3, id="x")])
@pytest.mark.skipif(sys.platform == "win32", reason="x")
async def test_table(a): assert a

class TestC(Base):
    @staticmethod
    def test_inner():
        def test_local(): assert 1
        self.assertEqual(1,
            2)
    class TestD:
        def test_deep(self):
            if x:
                pytest.skip("sometimes")
            np.testing.assert_allclose(a, b)
@pytest.mark.xfail(strict=True)
def test_bug(): assert g()
def helper(): assert 1
def test_helped():
    helper()
`, []string{
			"3 test_plain asserts=2", "11 test_table asserts=1 cases=3 skipped sometimes", "15 TestC > test_inner asserts=2",
			"20 TestC > TestD > test_deep asserts=1 skipped sometimes", "25 test_bug asserts=1 fails",
			"27 test_helped asserts=1",
		}},
	}
}

func compiled() []identity {
	return []identity{
		{"java", "src/test/java/ATest.java", `
package a;
@Tag("x") class ATest<T extends B> extends Base implements C {
  @Test void plain() { assertEquals(1, f()); assertThat(g()).isEqualTo(2).isNotNull(); }
  @Test @Timeout(value = 5, unit = SECONDS) public void annotated() throws IOException, E { verify(m).call(); }
  @ParameterizedTest(name = "{0}") @ValueSource(ints = {1, 2, 3}) void table(int n) { assertTrue(n > 0); }
  @Nested @Disabled("x") class In { @Test void inner() { fail("x"); } }
  @Test void assumed() { assumeTrue(System.getenv("X") != null); assertNull(f()); }
  @Test(enabled = false) public void off() { assertNull(f()); }
  @BeforeEach void setUp() { new Runnable() { public void run() { x(); } }.run(); }
  public void testOld() { assertEquals("""
     a "quoted" text { """, f()); }
  static int[] helper(int[] a) { return a; }
}
`, []string{
			"4 ATest > plain asserts=2", "5 ATest > annotated asserts=1", "6 ATest > table asserts=1 cases=3",
			"7 ATest > In > inner asserts=1 skipped",
			"8 ATest > assumed asserts=1 skipped sometimes", "9 ATest > off asserts=1 skipped", "11 ATest > testOld asserts=1",
		}},
		{"kotlin", "src/test/kotlin/ATest.kt", `
class ATest : Base() {
  @Test fun ` + "`with blanks`" + `() = runTest { assertEquals(1, f()) }
  @Test
  @Ignore("x")
  fun off() { f() shouldBe 2 }
  val x: Int by lazy { 1 }
  @get:Rule val rule = Rule()
  @Test fun generic(): Unit { assertFailsWith<A<B>> { f() } }
}
class S : FunSpec({ context("c") { test("t") { f(1).shouldBe(2) } } })
`, []string{"3 ATest > with blanks asserts=1", "6 ATest > off asserts=1 skipped", "9 ATest > generic asserts=1",
			"11 c > t asserts=1"}},
		{"c#", "A.Tests/ATests.cs", `
namespace A.Tests;
[Collection("x")]
public class ATests : Base<B> {
  [Fact] public async Task Plain() { var s = @"c:\"; Assert.Equal(1, await F()); s.Should().Be("x"); }
  [Theory, InlineData(1), InlineData(2)] public void Table(int n) => Assert.True(n > 0);
  [Test] [TestCase(1, ExpectedResult = 2)] public int Case(int n) { return n; }
  [Fact(Skip = "x")] public void Off() { Assert.Null(F()); }
  [TestMethod] [Ignore] public void Off2() { Assert.IsNull(F()); }
  public int Prop { get; set; }
  private static List<int> Helper<T>(int[] a) where T : new() { return null; }
}
`, []string{
			"5 ATests > Plain asserts=2", "6 ATests > Table asserts=1 cases=2", "7 ATests > Case cases=1",
			"8 ATests > Off asserts=1 skipped", "9 ATests > Off2 asserts=1 skipped",
		}},
	}
}

func mixed() []identity {
	return []identity{
		{"rust", "src/a.rs", `
impl<'a> A<'a> { pub fn f(&'a self) -> char { 'x' } }
#[cfg(test)]
mod tests {
    #[test] fn plain() { assert_eq!(f(), r#"a " b"#); }
    #[tokio::test(flavor = "multi_thread")]
    async fn asynchronous() -> Result<(), E> { assert!(g().await?.is_ok()); Ok(()) }
    #[test] #[ignore] fn off() { assert_ne!(1, f()); }
    #[test] #[should_panic(expected = "x")] fn panics() { f(); }
    fn helper() { assert!(true) }
    #[test] fn helped() { helper(); }
}
`, []string{
			"5 tests > plain asserts=1", "7 tests > asynchronous asserts=1", "8 tests > off asserts=1 skipped",
			"9 tests > panics fails", "11 tests > helped asserts=1",
		}},
		{"ruby", "spec/a_spec.rb", `
RSpec.describe A, type: :model do
  let(:x) { if y then 1 else 2 end }
  it 'plain' do
    expect(f / 2).to eq(1)
    x = 1 if y
    while y do z end
  end
  context "when #{"nested"}" do
    it('brace') { expect(g).to be_nil }
    it { is_expected.to be_valid }
    specify 'skipped in it' do skip 'x'; expect(1).to eq(2) end
    it 'without a block'
  end
  describe '#end', :skip do
    xit 'off' do expect(1).to eq(2) end
  end
end
class T < Minitest::Test
  def test_m = assert_equal(1, f)
  def test_n
    assert f, <<~MSG
      end of the world
    MSG
    refute_nil g unless z
  end
  private
  def test_helper?; end
end
`, []string{
			"4 A, type: :model > plain asserts=1", "10 A, type: :model > when #{\"nested\"} > brace asserts=1",
			"11 A, type: :model > when #{\"nested\"} > is_expected.to be_valid asserts=1",
			"12 A, type: :model > when #{\"nested\"} > skipped in it asserts=1 skipped",
			"13 A, type: :model > when #{\"nested\"} > without a block skipped",
			"16 A, type: :model > #end > off asserts=1 skipped", "20 T > test_m asserts=1", "21 T > test_n asserts=2",
		}},
		{"php", "tests/ATest.php", `<html><?php
namespace A;
class ATest extends TestCase {
    public function testPlain(): void { $this->assertSame(1, $this->f("a {$b['c']}")); self::assertTrue($x); }
    /** @test @dataProvider rows */
    public function annotated(int $n): void { $this->assertSame($n, 1); }
    #[Test, Group('x')]
    public function attributed() { $this->markTestSkipped('x'); }
    public function test_snake() { if (PHP_OS === 'x') { $this->markTestSkipped(); } $this->assertNull(1); }
    public function helper() { return fn ($x) => $x; }
}
test('pest', function () { expect(f())->toBe(1); })->with([[1], [2]]);
it('skips', fn () => expect(f())->toBe(1))->skip();
?> <b>it('html', function () {})</b>
`, []string{
			"4 ATest > testPlain asserts=2", "6 ATest > annotated asserts=1", "8 ATest > attributed skipped",
			"9 ATest > test_snake asserts=1 skipped sometimes",
			"12 pest asserts=1 cases=2", "13 skips asserts=1 skipped",
		}},
	}
}

// Comments and strings are not code.
func TestBlank(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, text, want string }{
		{"a.go", "a // b\n\"c\" + `d\ne` /* f */ + 'g'", "a     \n\" \" + ` \n `         + ' '"},
		{"a.py", "a # b\nf'{c}' + \"\"\"d\n\"\"\" + r'\\'", "a    \nf    ' + \"   \n  \" + r  '"},
		{"a.js", "a / b / c; x = /d'e/g; `f${`g`}h` // i", "a / b / c; x = /    g; `        `     "},
		{"a.rs", "'a: loop {} // b\nlet c = '\\''; r##\"d\"##", "'a: loop {}     \nlet c = '  '; r      #"},
		{"a.rb", "x = 5 / y # a\n%w[b c] << <<~D\n  e\nD\n=begin\nf\n=end\n",
			"x = 5 / y    \n%     ] << <  D\n   \nD\n      \n \n    \n"},
		{"a.kt", "`a b` + \"c ${d(\"e\")} f\" /* g /* h */ */ + i", "`a b` + \"             \"                 + i"},
		{"a.cs", "@\"a\"\"b\\\" + $\"c\" + \"\"\"d \" e\"\"\"", "@      \" + $  \" + \"         \""},
		{"a.php", "html <?php a # b\n// c ?> d <?= 'e' ?>", "           a    \n              ' '   "},
	}
	for _, test := range tests {
		if got := syntax.Blank(syntax.LanguageOf(test.path), test.text, false); got != test.want {
			t.Errorf("%s\n got %q\nwant %q", test.path, got, test.want)
		}
	}
	if got := syntax.Blank(syntax.LanguageOf("a.go"), "a // b\nc /* d\ne */ f", true); got != "  // b\n  /* d\ne */  " {
		t.Errorf("comments: %q", got)
	}
}

func TestStrengths(t *testing.T) {
	t.Parallel()
	// Each group is weaker than the one before.
	groups := [][]string{
		{"expect(f()).toBe(2)", "assert.deepEqual(f(), [2])", "expect(f()).to.equal('x')", "expect(f()).toEqual({ a: 1 })",
			"assert(f() === 2)"},
		{"expect(f()).toContain(2)", "expect(f()).toMatchObject({ a: 1 })", "expect(f()).toBeGreaterThan(1)"},
		{"expect(f()).toBeTruthy()", "expect(f()).toBeDefined()", "assert.ok(f())", "assert(f())"},
		{"expect(true).toBe(true)", "expect(1).toBe(1)", "assert(true)", "assert.equal(x, x)", "assert(f() || true)"},
	}
	last := 99
	for _, group := range groups {
		least := 99
		for _, text := range group {
			m := read(t, "a.test.js", "test('x', () => { "+text+"; });")
			if len(m.Tests) != 1 || len(m.Tests[0].Asserts) != 1 {
				t.Fatalf("%s: %v", text, summary(m))
			}
			got := int(m.Tests[0].Asserts[0].Strength)
			if got >= last {
				t.Errorf("%s has strength %d, as much as the group before", text, got)
			}
			least = min(least, got)
		}
		last = least
	}
}

// Reading takes time linear in the text: otherwise, these cases take minutes.
func TestHostile(t *testing.T) {
	t.Parallel()
	const n = 20_000
	pieces := []string{
		"`${", "\"${", "/*", "<<~A\n", "<<<A\n", "r#\"", "((((", "[{(", "}", "it('x', () => {", "it 'x'\n",
		"describe('x', () => {\n", "def test_a():\n ", "if x:\n", "class A{",
		"@A(", "#[a(", "[A(", "f(){", "=> {", "assert ", "a.b.", "<", "'", "\\", "%w[", "if (a) ", "catch {", "rescue\n",
		"x, ", "except:\n", "\"\"\"", "fun `", "@A ", "// x\n", "t.Skip();", "func TestA(t *testing.T) {",
		"t.Run(\"a\", func(t *testing.T) {", "begin\n", "end\n", "skip\n", "public ", "expect(", ").toBe(", "#if A\n",
		"#if false\n", "#if A\nx\n#else\n", "#if A\n{\n#else\n", "$\"{", "@\"", "\"\"\"\"", "a<b,", "export {",
		"export default a;function f(){}", "\u00e9", "if err != nil {",
	}
	for _, path := range []string{"a_test.go", "a.test.ts", "test_a.py", "ATest.java", "ATest.kt", "ATests.cs",
		"tests/a.rs", "a_spec.rb", "ATest.php"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, p := range pieces {
				text := strings.Repeat(p, n/len(p)+1)
				if strings.HasSuffix(path, ".php") {
					text = "<?php " + text
				}
				read(t, path, text)
			}
		})
	}
}

// The body of a Rust function begins after its result, also if that names an associated
// type.
func TestAssociatedType(t *testing.T) {
	t.Parallel()
	m := read(t, "a.rs", "fn all(\n    a: &A,\n) -> Option<Box<dyn Iterator<Item = u8> + '_>> {\n    if a.none() {\n"+
		"        None\n    } else {\n        a.all()\n    }\n}\n\nfn one(a: &A) -> u8 {\n    let one = a.one();\n"+
		"    one\n}\n")
	if len(m.Funcs) != 2 || m.Funcs[0].Lines != 9 || m.Funcs[1].Name != "one" {
		t.Errorf("functions %+v, want all with 9 lines, and one", m.Funcs)
	}
}
