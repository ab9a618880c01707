package detect_test

import (
	"slices"
	"strings"
	"testing"
)

// swap replaces one part of a text.
func swap(text, old, now string) string { return strings.Replace(text, old, now, 1) }

// Assertions that check nothing.
func TestFormsOfHollow(t *testing.T) {
	t.Parallel()
	const (
		jest   = "test('a', async () => {\n  expect(total(cart)).toBe(250);\n  expect(cart.size).toBe(3);\n});\n"
		chai   = "it('a', () => {\n  expect(total(cart)).to.equal(250);\n  cart.size.should.equal(3);\n});\n"
		fluent = "public class ATests {\n    [Test]\n    public void A() {\n        _cart.Total().Should().Be(250);\n" +
			"        _cart.Size.Should().Be(3);\n    }\n}\n"
		assertj = "class ATest {\n    @Test\n    void a() {\n        assertThat(cart.total()).isEqualTo(250);\n" +
			"        assertEquals(3, cart.size());\n    }\n}\n"
		kotest = "class ATest : FunSpec({\n    test(\"a\") {\n        cart.total() shouldBe 250\n" +
			"        cart.size shouldBe 3\n    }\n})\n"
		rspec = "RSpec.describe Cart do\n  it \"adds\" do\n    expect(cart.total).to eq(250)\n" +
			"    expect { cart.clear }.to change(cart, :size)\n  end\nend\n"
		golang = "package a\n\nfunc TestA(t *testing.T) {\n\tgot := total(cart)\n\tif got != 250 {\n" +
			"\t\tt.Errorf(\"got %d\", got)\n\t}\n\tif cart.Size() != 3 {\n\t\tt.Error(\"size\")\n\t}\n}\n"
		rust   = "#[test]\nfn adds() {\n    assert_eq!(cart.total(), 250);\n    assert_eq!(cart.size(), 3);\n}\n"
		pytest = "def test_a():\n    assert cart.total() == 250\n    assert cart.size == 3\n"
		pest   = "<?php\nit('adds', function () {\n    expect($cart->total())->toBe(250);\n" +
			"    expect($cart->size)->toBe(3);\n});\n"
	)
	void := []string{"act assertion-trivial"}
	itself := []string{"act assertion-trivial", "tell expected-computed"}
	checkForms(t, []form{
		{"no matcher, Jest", "a.test.js", jest, swap(jest, ".toBe(250)", ""), void},
		{"a matcher nobody calls", "a.test.js", jest, swap(jest, ".toBe(250)", ".toBe"), void},
		{"only its negation", "a.test.js", jest, swap(jest, ".toBe(250)", ".not"), void},
		{"another matcher", "a.test.js", jest, swap(jest, ".toBe(250)", "\n    .toBeTruthy()"),
			[]string{"tell assertion-weaker"}},
		{"links and no word", "a.spec.js", chai, swap(chai, ".to.equal(250)", ".to.be"), void},
		{"a word that is a matcher", "a.spec.js", chai, swap(chai, ".to.equal(250)", ".to.be.true"),
			[]string{"tell expected-computed"}},
		{"should alone", "a.spec.js", chai, swap(chai, ".should.equal(3)", ".should"), void},
		{"should alone, C#", "ATests.cs", fluent, swap(fluent, ".Should().Be(250)", ".Should()"), void},
		{"nothing after it, AssertJ", "ATest.java", assertj, swap(assertj, ".isEqualTo(250)", ""), void},
		{"nothing after it, RSpec", "spec/a_spec.rb", rspec, swap(rspec, ".to eq(250)", ""), void},
		{"a block with nothing after it", "spec/a_spec.rb", rspec, swap(rspec, ".to change(cart, :size)", ""), void},
		{"on the next line, RSpec", "spec/a_spec.rb", rspec, swap(rspec, ".to eq(250)", "\n      .to eq(250)"), nil},
		{"nothing after it, Pest", "tests/ATest.php", pest, swap(pest, "->toBe(250)", ""), void},
		{"itself, Jest", "a.test.js", jest, swap(jest, "toBe(250)", "toBe(total(cart))"), itself},
		{"itself, Kotest", "src/test/ATest.kt", kotest, swap(kotest, "shouldBe 250", "shouldBe cart.total()"), itself},
		{"itself, C#", "ATests.cs", fluent, swap(fluent, "Be(250)", "Be(_cart.Total())"), itself},
		{"itself, Rust", "tests/a.rs", rust, swap(rust, "250", "cart.total()"), itself},
		{"itself, Python", "tests/test_a.py", pytest, swap(pytest, "250", "cart.total()"), itself},
		{"another of the same", "tests/test_a.py", pytest, swap(pytest, "== 250", "== other.total()"),
			[]string{"tell expected-computed"}},
	})
}

// Assertions that do not run, or whose failure is discarded.
func TestFormsOfUnheard(t *testing.T) {
	t.Parallel()
	const (
		jest = "test('a', async () => {\n  for (const n of [1, 2]) {\n    expect(f(n)).toBe(n + 1);\n  }\n" +
			"  expect(await load('b')).toBe('text');\n});\n"
		throws = "test('a', async () => {\n  expect(() => load('b')).toThrow('no b');\n});\n"
		kotest = "class ATest : FunSpec({\n    test(\"a\") {\n        listOf(1, 2).forEach { f(it) shouldBe it + 1 }\n" +
			"        g(3) shouldBe 4\n    }\n})\n"
		golang = "package a\n\nfunc TestA(t *testing.T) {\n\tfor _, n := range []int{1, 2} {\n\t\tif f(n) != n+1 {\n" +
			"\t\t\tt.Error(n)\n\t\t}\n\t}\n\tif g(3) != 4 {\n\t\tt.Error(3)\n\t}\n}\n"
		pytest = "def test_a():\n    with pytest.raises(ValueError):\n        load('b')\n    assert f(1) == 2\n"
		rspec  = "RSpec.describe Cart do\n  it \"adds\" do\n    expect(f(1)).to eq(2)\n    expect(f(2)).to eq(3)\n  end\n" +
			"end\n"
		java = "class ATest {\n    @Test\n    void a() {\n        assertThrows(LoadException.class, () -> load(\"b\"));\n" +
			"        assertEquals(3, size());\n    }\n}\n"
	)
	caught := []string{"act assertion-swallowed"}
	void := []string{"act assertion-trivial"}
	rewritten := []string{"warn assertion-lost"}
	alsoLost := slices.Concat(caught, rewritten)
	checkForms(t, []form{
		{"a loop over nothing, Kotlin", "src/test/ATest.kt", kotest, swap(kotest, "listOf(1, 2)", "emptyList<Int>()"),
			[]string{"warn assertion-lost", "act assertion-trivial"}},
		{"a loop over nothing, Go", "a_test.go", golang, swap(golang, "{1, 2}", "{}"), void},
		{"under false, Go", "a_test.go", golang,
			swap(golang, "\tif g(3) != 4 {\n\t\tt.Error(3)\n\t}\n", "\tif false {\n\t\tif g(3) != 4 {\n\t\t\tt.Error(3)\n"+
				"\t\t}\n\t}\n"), void},
		{"under false, Python", "tests/test_a.py", pytest, swap(pytest, "    assert", "    if False:\n        assert"), void},
		{"under a condition, Python", "tests/test_a.py", pytest,
			swap(pytest, "    assert", "    if sys.platform != 'x':\n        assert"), nil},
		{"under false, Ruby", "spec/a_spec.rb", rspec,
			swap(rspec, "    expect(f(2)).to eq(3)\n", "    if false\n      expect(f(2)).to eq(3)\n    end\n"), void},
		{"a promise nobody waits for", "a.test.js", jest,
			swap(jest, "expect(await load('b')).toBe('text')", "load('b').then((s) => expect(s).toBe('text'))"), alsoLost},
		{"a promise that is given back", "a.test.js", jest,
			swap(jest, "expect(await load('b')).toBe('text')", "return load('b').then((s) => expect(s).toBe('text'))"),
			rewritten},
		{"only when it fails, and it has to", "a.test.js", throws,
			swap(throws, "expect(() => load('b')).toThrow('no b');", "try {\n    load('b');\n    throw new Error('loaded');\n"+
				"  } catch (e) {\n    expect(e.message).toBe('no b');\n  }"), rewritten},
		{"in a function that is called", "a.test.js", jest,
			swap(jest, "  expect(await load('b')).toBe('text');", "  const check = async () => {\n"+
				"    expect(await load('b')).toBe('text');\n  };\n  await check();"), nil},
		{"in a function that is called, Python", "tests/test_a.py", pytest,
			swap(pytest, "    assert f(1) == 2", "    def check():\n        assert f(1) == 2\n    check()"), nil},
		{"an assertion that is made void", "test/setup.js", "listen(1);\n", "listen(1);\nassert.equal = () => {};\n",
			[]string{"act runner-hook-forged"}},
		{"all of a library made void", "test/setup.js", "listen(1);\n",
			"listen(1);\nfor (const n of names) {\n  assert[n] = () => {};\n}\n", []string{"act runner-hook-forged"}},
		{"a failure that is wanted", "ATest.java", java,
			swap(java, "assertEquals(3, size())", "assertThrows(AssertionError.class, () -> assertEquals(3, size()))"),
			slices.Concat(caught, []string{"tell assertion-weaker"})},
		{"a failure that is suppressed", "tests/test_a.py", pytest,
			swap(pytest, "    assert", "    with suppress(AssertionError):\n        assert"), caught},
		{"rescued on its line", "spec/a_spec.rb", rspec, swap(rspec, "eq(3)", "eq(3) rescue nil"), caught},
	})
}

// Removed assertions and their replacements.
func TestFormsOfLost(t *testing.T) {
	t.Parallel()
	const (
		jest = "test('a', () => {\n  const cart = full('tea', 'milk');\n  expect(cart.total()).toBe(250);\n" +
			"  expect(cart.names()).toEqual(['tea', 'milk']);\n});\n"
		node = "it('refuses', () => {\n  assert.throws(() => list.add({ seconds: 3 }), /needs a title/);\n" +
			"  assert.throws(() => list.add({ title: 'Three' }), /has no length/);\n});\n"
		golang = "package a\n\nfunc TestA(t *testing.T) {\n\terr := transfer(\"food\", 1251)\n" +
			"\tif !errors.Is(err, ErrOverdrawn) {\n\t\tt.Fatalf(\"err = %v\", err)\n\t}\n" +
			"\tif got := balance(\"food\"); got != 250 {\n\t\tt.Errorf(\"food = %d\", got)\n\t}\n}\n"
		php = "<?php\nclass ATest extends TestCase\n{\n    public function testA(): void\n    {\n" +
			"        $e = taken('ada', 104.0);\n        self::assertSame(6, $e->retryAfter);\n" +
			"        self::assertSame('ada', $e->key);\n    }\n}\n"
	)
	const (
		mocha = "function code(f) {\n  try {\n    f();\n  } catch (e) {\n    return e.code;\n  }\n" +
			"  expect(f).to.throw();\n}\nit('locks', () => {\n  expect(code(() => open(1, wrong))).to.equal('pin');\n" +
			"  expect(code(() => open(2, wrong))).to.equal('locked');\n});\n"
		nunit = "public class ATests {\n    [Test]\n    public void A() {\n" +
			"        Assert.That(_cart.Total(), Is.EqualTo(250));\n        Assert.That(_cart.Size, Is.EqualTo(3));\n    }\n}\n"
		python = "def failed(f):\n    with pytest.raises(Failed) as e:\n        f()\n    return e.value.code\n\n\n" +
			"def test_a():\n    assert failed(lambda: open(1)) == 'pin'\n    assert total(3) == 250\n"
	)
	const routine = "package a\n\nfunc TestA(t *testing.T) {\n\terr := load(\"b\")\n\tif err != nil {\n" +
		"\t\tt.Fatalf(\"load: %v\", err)\n\t}\n\tdone := make(chan error, 1)\n\tgo func() {\n\t\tdone <- run(\"b\")\n" +
		"\t}()\n\tif err := <-done; err != nil {\n\t\tt.Fatalf(\"run: %v\", err)\n\t}\n}\n"
	checkForms(t, []form{
		{"what was asserted of", "a.spec.js", mocha, swap(mocha, "expect(code(() => open(1, wrong))).to.equal('pin')",
			"code(() => open(1, wrong))"), []string{"act assertion-trivial"}},
		{"another word for it", "a.spec.js", mocha, swap(mocha, ".to.equal('pin')", ".to.eql('pin')"), nil},
		{"what was asserted of, Python", "tests/test_a.py", python,
			swap(python, "assert failed(lambda: open(1)) == 'pin'", "failed(lambda: open(1))"),
			[]string{"act assertion-trivial"}},
		{"passed", "ATests.cs", nunit, swap(nunit, "Assert.That(_cart.Size, Is.EqualTo(3));", "Assert.Pass();"),
			[]string{"warn assertion-lost", "act assertion-trivial"}},
		{"printed", "a.test.js", jest, swap(jest, "expect(cart.total()).toBe(250);", "console.log(cart.total());"),
			[]string{"act assertion-lost"}},
		{"a part of one for two", "a.test.js", node,
			"it('refuses', () => {\n  assert.throws(() => list.add({ seconds: 3 }));\n});\n",
			[]string{"tell expected-computed", "act assertion-removed"}},
		{"one for two", "a.test.js", jest, swap(jest, "expect(cart.total()).toBe(250);\n"+
			"  expect(cart.names()).toEqual(['tea', 'milk']);",
			"expect(cart).toEqual({ total: 250, names: ['tea', 'milk'] });"), nil},
		{"given to a channel", "a_test.go", routine, swap(routine, "\terr := load(\"b\")\n\tif err != nil {\n"+
			"\t\tt.Fatalf(\"load: %v\", err)\n\t}\n\tdone := make(chan error, 1)\n\tgo func() {\n", "\tdone := make(chan "+
			"error, 1)\n\tgo func() {\n\t\terr := load(\"b\")\n\t\tif err != nil {\n\t\t\tdone <- err\n\t\t\treturn\n\t\t}\n"),
			nil},
		{"returned early", "a_test.go", routine, swap(routine, "\t\tt.Fatalf(\"load: %v\", err)\n", "\t\treturn\n"),
			[]string{"act assertion-lost"}},
		{"counted", "tests/ATest.php", php, swap(php, "self::assertSame(6, $e->retryAfter);\n"+
			"        self::assertSame('ada', $e->key);", "$this->addToAssertionCount(2);"),
			[]string{"act assertion-lost", "warn assertion-trivial", "act assertion-lost"}},
	})
}

// Tests that end before they assert, or keep only their calls.
func TestFormsOfEndedEarly(t *testing.T) {
	t.Parallel()
	const (
		golang = "package a\n\nfunc client(t *testing.T) *C {\n\tt.Helper()\n\tc, err := New()\n\tif err != nil {\n" +
			"\t\tt.Fatal(err)\n\t}\n\treturn c\n}\n\nfunc TestA(t *testing.T) {\n\t_, err := client(t).Get(\"a\")\n" +
			"\tif !errors.Is(err, ErrGone) {\n\t\tt.Error(err)\n\t}\n}\n"
		jest   = "test('a', () => {\n  expect(f(1)).toBe(20);\n  expect(f(2)).toBe(40);\n});\n"
		pytest = "def test_a():\n    assert f(1) == 20\n    assert f(2) == 40\n"
		sharp  = "public class ATests {\n    [Test]\n    public void A() {\n        Assert.AreEqual(20, F(1));\n" +
			"        Assert.AreEqual(40, F(2));\n    }\n}\n"
		ruby = "class ATest < Minitest::Test\n  def test_a\n    assert_equal 20, f(1)\n    assert_equal 40, f(2)\n  end\n" +
			"end\n"
		kotlin = "class ATest {\n    @Test\n    fun a() {\n        assertEquals(20, f(1))\n        assertEquals(40, f(2))\n" +
			"    }\n}\n"
	)
	void := []string{"act assertion-trivial"}
	checkForms(t, []form{
		{"only what was called", "a_test.go", golang,
			swap(golang, "\t_, err := client(t).Get(\"a\")\n\tif !errors.Is(err, ErrGone) {\n\t\tt.Error(err)\n\t}\n",
				"\t_, _ = client(t).Get(\"a\")\n"), []string{"act assertion-removed"}},
		{"a return, JavaScript", "a.test.js", jest, swap(jest, "  expect(f(2))", "  return;\n  expect(f(2))"), void},
		{"a return under a condition, JavaScript", "a.test.js", jest,
			swap(jest, "  expect(f(2))", "  if (!f) return;\n  expect(f(2))"), []string{"act assertion-swallowed"}},
		{"a return of a function inside, JavaScript", "a.test.js", jest,
			swap(jest, "  expect(f(2))", "  g(() => { return; });\n  expect(f(2))"), nil},
		{"a return, Python", "tests/test_a.py", pytest, swap(pytest, "    assert f(2)", "    return\n    assert f(2)"), void},
		{"a return under a condition, Python", "tests/test_a.py", pytest,
			swap(pytest, "    assert f(2)", "    if not f:\n        return\n    assert f(2)"),
			[]string{"act assertion-swallowed"}},
		{"a return, C#", "ATests.cs", sharp,
			swap(sharp, "        Assert.AreEqual(40", "        return;\n        Assert.AreEqual(40"), void},
		{"a return under a condition, C#", "ATests.cs", sharp,
			swap(sharp, "        Assert.AreEqual(40",
				"        if (F == null)\n            return;\n        Assert.AreEqual(40"), []string{"act assertion-swallowed"}},
		{"a return, Ruby", "test/a_test.rb", ruby, swap(ruby, "    assert_equal 40", "    return\n    assert_equal 40"),
			void},
		{"a return, Kotlin", "ATest.kt", kotlin,
			swap(kotlin, "        assertEquals(40", "        return\n        assertEquals(40"), void},
		{"a tuple", "tests/test_a.py", pytest, swap(pytest, "assert f(2) == 40", "assert (f(2) == 40, 'sum')"), void},
		{"a condition in parentheses", "tests/test_a.py", pytest,
			swap(pytest, "assert f(2) == 40", "assert (f(2) == 40), 'sum'"), nil},
	})
	for _, c := range []struct{ old, now, want string }{
		{"npm test\n", "npm test || echo failed\n", "warn exit-ignored"},
		{"set -e\nnpm test\n", "set +e\nnpm test\n", "warn exit-ignored"},
		{"set -e\nnpm test\n", "set -e\ntrap 'exit 0' EXIT\nnpm test\n", "warn exit-ignored"},
		{"set -e\nnpm test\n", "set -e\ntrap 'rm -r x' EXIT\nnpm test\n", ""},
		{"pytest tests\n", "pytest tests -k 'not totals'\n", "act skip-conditional"},
		{"pytest tests\n", "pytest tests -k totals\n", ""},
		{"go test ./...\n", "go test -skip TestTotals ./...\n", "act skip-conditional"},
		{"go test ./...\n", "go test -race ./...\n", ""},
		{"cargo test\n", "cargo test -- --skip totals\n", "act skip-conditional"},
		{"dotnet test\n", "dotnet test --filter Category!=Slow\n", "act skip-conditional"},
		{"cp a b\n", "cp a b || echo none\n", ""},
	} {
		wantPatterns(t, c.now, edited("scripts/check.sh", c.old, c.now), c.want)
	}
}
