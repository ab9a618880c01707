package detect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect"
)

// form is one way to write an edit, and its findings.
type form struct {
	name, path, old, now string
	want                 []string
}

func checkForms(t *testing.T, forms []form) {
	t.Helper()
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			report := find(t, &detect.Input{Changes: edited(f.path, f.old, f.now)})
			if diff := cmp.Diff(f.want, patternsOf(report)); diff != "" {
				list(t, report)
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Tests that do not run, in the forms of the test runners and languages.
func TestFormsOfSkipping(t *testing.T) {
	t.Parallel()
	const (
		jest   = "test('a', () => {\n  expect(f(1)).toBe(2);\n  expect(f(2)).toBe(3);\n});\n"
		golang = "package a\n\nfunc TestA(t *testing.T) {\n\tif f(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n\tif f(2) != 3 {\n" +
			"\t\tt.Fatal(2)\n\t}\n}\n"
		csharp = "public class ATests {\n    [Test]\n    public void A() {\n        Assert.AreEqual(2, F(1));\n" +
			"        Assert.AreEqual(3, F(2));\n    }\n}\n"
		kotest = "class ATest : FunSpec({\n    test(\"a\") {\n        f(1) shouldBe 2\n        f(2) shouldBe 3\n    }\n})\n"
		rspec  = "RSpec.describe A do\n  context \"with one\" do\n    it \"adds\" do\n      expect(f(1)).to eq(2)\n" +
			"    end\n  end\nend\n"
		rust   = "#[test]\nfn adds() {\n    assert_eq!(f(1), 2);\n    assert_eq!(f(2), 3);\n}\n"
		pytest = "import pytest\n\n\n@pytest.mark.parametrize('n', [\n    1,\n    2,\n])\ndef test_a(n):\n" +
			"    assert f(n) == n + 1\n"
		class = "import unittest\n\n\nclass Adds(unittest.TestCase):\n    def test_one(self):\n" +
			"        self.assertEqual(f(1), 2)\n"
		pest = "<?php\nclass ATest extends TestCase\n{\n    public function testA(): void\n    {\n" +
			"        $this->assertSame(2, f(1));\n        $this->assertSame(3, f(2));\n    }\n}\n"
	)
	act, sometimes := []string{"act skip-added"}, []string{"act skip-conditional"}
	checkForms(t, []form{
		{"return at once", "a.test.js", jest, "test('a', () => {\n  return;\n  expect(f(1)).toBe(2);\n" +
			"  expect(f(2)).toBe(3);\n});\n", act},
		{"what a test returns", "a.test.js", jest, "test('a', () => {\n  return check(() => {\n  expect(f(1)).toBe(2);\n" +
			"  expect(f(2)).toBe(3);\n  });\n});\n", nil},
		{"a chain by index", "a.test.js", jest, "test['skip']('a', () => {\n  expect(f(1)).toBe(2);\n" +
			"  expect(f(2)).toBe(3);\n});\n", act},
		{"by the context", "a.test.js", jest, "test('a', ({ skip }) => {\n  skip();\n  expect(f(1)).toBe(2);\n" +
			"  expect(f(2)).toBe(3);\n});\n", act},
		{"if true", "a_test.go", golang, "package a\n\nfunc TestA(t *testing.T) {\n\tif true {\n\t\treturn\n\t}\n" +
			"\tif f(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n\tif f(2) != 3 {\n\t\tt.Fatal(2)\n\t}\n}\n", act},
		{"if the system is another", "a_test.go", golang, "package a\n\nfunc TestA(t *testing.T) {\n" +
			"\tif runtime.GOOS == \"windows\" {\n\t\tt.Skip(\"no links\")\n\t}\n\tif f(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n" +
			"\tif f(2) != 3 {\n\t\tt.Fatal(2)\n\t}\n}\n", []string{"warn skip-conditional"}},
		{"if it is checked", "a_test.go", golang, "package a\n\nfunc TestA(t *testing.T) {\n" +
			"\tif os.Getenv(\"CI\") != \"\" {\n\t\tt.Skip(\"not available\")\n\t}\n\tif f(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n" +
			"\tif f(2) != 3 {\n\t\tt.Fatal(2)\n\t}\n}\n", sometimes},
		{"if something", "a_test.go", golang, "package a\n\nfunc TestA(t *testing.T) {\n\tif slow() {\n\t\treturn\n\t}\n" +
			"\tif f(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n\tif f(2) != 3 {\n\t\tt.Fatal(2)\n\t}\n}\n", sometimes},
		{"passed at once", "ATests.cs", csharp, "public class ATests {\n    [Test]\n    public void A() {\n" +
			"        Assert.Pass();\n        Assert.AreEqual(2, F(1));\n        Assert.AreEqual(3, F(2));\n    }\n}\n", act},
		{"left out by a directive", "ATests.cs", csharp, "public class ATests {\n#if NEVER\n    [Test]\n" +
			"    public void A() {\n        Assert.AreEqual(2, F(1));\n        Assert.AreEqual(3, F(2));\n    }\n#endif\n}\n",
			sometimes},
		{"a bang before the name", "src/test/ATest.kt", kotest,
			"class ATest : FunSpec({\n    test(\"!a\") {\n        f(1) shouldBe 2\n        f(2) shouldBe 3\n    }\n})\n", act},
		{"a focus before the name", "src/test/ATest.kt", kotest, "class ATest : FunSpec({\n    test(\"f:a\") {\n" +
			"        f(1) shouldBe 2\n        f(2) shouldBe 3\n    }\n})\n", []string{"act focus-added"}},
		{"metadata of a group", "spec/a_spec.rb", rspec, "RSpec.describe A do\n  context \"with one\", :skip do\n" +
			"    it \"adds\" do\n      expect(f(1)).to eq(2)\n    end\n  end\nend\n", act},
		{"other metadata", "spec/a_spec.rb", rspec, "RSpec.describe A do\n  context \"with one\", :slow, skip: false do\n" +
			"    it \"adds\" do\n      expect(f(1)).to eq(2)\n    end\n  end\nend\n", nil},
		{"an attribute under a condition", "tests/a.rs", rust, "#[test]\n#[cfg_attr(not(feature = \"slow\"), ignore)]\n" +
			"fn adds() {\n    assert_eq!(f(1), 2);\n    assert_eq!(f(2), 3);\n}\n", sometimes},
		{"a file under a condition", "tests/a.rs", rust,
			"#![cfg(feature = \"disk\")]\n#[test]\nfn adds() {\n    assert_eq!(f(1), 2);\n    assert_eq!(f(2), 3);\n}\n",
			sometimes},
		{"a marked row", "tests/test_a.py", pytest, "import pytest\n\n\n@pytest.mark.parametrize('n', [\n    1,\n" +
			"    pytest.param(2, marks=pytest.mark.xfail),\n])\ndef test_a(n):\n    assert f(n) == n + 1\n",
			[]string{"act skip-added", "warn skip-conditional"}},
		{"not collected", "tests/test_a.py", class, "class Adds:\n    def test_one(self):\n" +
			"        self.assertEqual(f(1), 2)\n", []string{"act test-removed"}},
		{"a module that is not there", "tests/test_a.py", "import pytest\n\n\ndef test_a():\n    assert f(1) == 2\n",
			"import pytest\n\n\ndef test_a():\n    pytest.importorskip('nothing')\n    assert f(1) == 2\n", sometimes},
		{"an extension that is not there", "tests/ATest.php", pest, "<?php\nclass ATest extends TestCase\n{\n" +
			"    #[RequiresPhpExtension('none')]\n    public function testA(): void\n    {\n" +
			"        $this->assertSame(2, f(1));\n        $this->assertSame(3, f(2));\n    }\n}\n", sometimes},
	})
}

// Tests that no longer run because of their options or the code around or before them.
func TestFormsOfNotRunning(t *testing.T) {
	t.Parallel()
	const (
		node  = "test('a', () => {\n  assert.equal(f(1), 2);\n  assert.equal(f(2), 3);\n});\n"
		nunit = "public class ATests {\n    [TestCase(1)]\n    public void A(int n) {\n        Assert.AreEqual(2, F(n));\n" +
			"        Assert.AreEqual(3, G(n));\n    }\n}\n"
		kotest = "class ATest : FunSpec({\n    test(\"a\") {\n        f(1) shouldBe 2\n        f(2) shouldBe 3\n    }\n})\n"
		pytest = "import unittest\n\n\nclass ATest(unittest.TestCase):\n    def test_a(self):\n" +
			"        self.assertEqual(f(1), 2)\n"
		act = "act skip-added"
	)
	sometimes := []string{"act skip-conditional"}
	checkForms(t, []form{
		{"an option with a condition", "a.test.js", node, strings.Replace(node, "'a',", "'a', { skip: !!process.env.CI },",
			1), sometimes},
		{"an option for a system", "a.test.js", node,
			strings.Replace(node, "'a',", "'a', { skip: process.platform === 'win32' },", 1), []string{"warn skip-conditional"}},
		{"an option that is off", "a.test.js", node, strings.Replace(node, "'a',", "'a', { skip: false, timeout: 100 },",
			1), nil},
		{"alone by an option", "a.test.js", node, strings.Replace(node, "'a',", "'a', { only: true },", 1),
			[]string{"act focus-added"}},
		{"not alone by an option", "a.test.js", node, strings.Replace(node, "'a',", "'a', { only: false },", 1), nil},
		{"a row with a reason", "ATests.cs", nunit, strings.Replace(nunit, "(1)", "(1, IgnoreReason = \"later\")", 1),
			[]string{act}},
		{"a row with a description", "ATests.cs", nunit, strings.Replace(nunit, "(1)", "(1, Description = \"later\")", 1),
			nil},
		{"an assumption", "ATests.cs", nunit,
			strings.Replace(nunit, "        Assert.AreEqual(2", "        Assume.That(Full);\n        Assert.AreEqual(2", 1),
			sometimes},
		{"another assertion", "ATests.cs", nunit,
			strings.Replace(nunit, "        Assert.AreEqual(2", "        Assert.That(Full);\n        Assert.AreEqual(2", 1),
			nil},
		{"enabled by a variable", "src/test/ATest.kt", kotest,
			strings.Replace(kotest, "(\"a\")", "(\"a\").config(enabled = System.getenv(\"ALL\") == \"on\")", 1), sometimes},
		{"enabled", "src/test/ATest.kt", kotest, strings.Replace(kotest, "(\"a\")", "(\"a\").config(enabled = true)", 1),
			nil},
		{"raised by the module", "tests/test_a.py", pytest,
			strings.Replace(pytest, "\n\n\n", "\n\nraise unittest.SkipTest('later')\n\n\n", 1), []string{act}},
		{"raised by a function nobody calls", "tests/test_a.py", pytest,
			strings.Replace(pytest, "\n\n\n", "\n\n\ndef later():\n    raise unittest.SkipTest('later')\n\n\n", 1), nil},
		{"a module that the module needs", "tests/test_a.py", pytest,
			strings.Replace(pytest, "\n\n\n", "\n\npytest.importorskip('fast')\n\n\n", 1), sometimes},
	})
}

// Checks that still exist and cannot fail.
func TestFormsOfVoidChecks(t *testing.T) {
	t.Parallel()
	const (
		script = "export function name(s) {\n  if (!NAME.test(s)) {\n    throw new Error(s);\n  }\n  return s;\n}\n"
		kotlin = "fun scale(n: Int): Int {\n    require(n > 0) { \"no\" }\n    return n * 2\n}\n"
		golang = "package a\n\nfunc size(n int) error {\n\tif n <= 0 {\n\t\treturn errSize\n\t}\n\treturn nil\n}\n"
		python = "def size(n):\n    if n <= 0:\n        raise ValueError(n)\n    return n\n"
	)
	void := []string{"act guard-removed"}
	checkForms(t, []form{
		{"and false", "src/a.ts", script, strings.Replace(script, "test(s))", "test(s) && false)", 1), void},
		{"false and", "src/a.ts", script, strings.Replace(script, "(!NAME", "(false && !NAME", 1), void},
		{"and something else", "src/a.ts", script, strings.Replace(script, "test(s))", "test(s) && s !== '')", 1), nil},
		{"and something that is false", "src/a.ts", script,
			strings.Replace(script, "test(s))", "test(s) && empty === false)", 1), nil},
		{"or true, Kotlin", "src/A.kt", kotlin, strings.Replace(kotlin, "0)", "0 || true)", 1), void},
		{"or something else, Kotlin", "src/A.kt", kotlin, strings.Replace(kotlin, "0)", "0 || n == MIN)", 1), nil},
		{"and false, Go", "a.go", golang, strings.Replace(golang, "0 {", "0 && false {", 1),
			[]string{"act guard-removed", "warn guard-removed"}},
		{"and something else, Go", "a.go", golang, strings.Replace(golang, "0 {", "0 && strict {", 1),
			[]string{"warn guard-removed"}},
		{"and false, Python", "src/a.py", python, strings.Replace(python, "0:", "0 and False:", 1),
			[]string{"act guard-removed", "warn guard-removed"}},
		{"and something else, Python", "src/a.py", python, strings.Replace(python, "0:", "0 and strict:", 1),
			[]string{"warn guard-removed"}},
	})
}

// Tables that a test loops over, or that enclose it.
func TestFormsOfRows(t *testing.T) {
	t.Parallel()
	const (
		script = "for (const [n, want] of [[1, 'one'], [20, 'twenty'], [300, 'many']]) {\n  it(`writes ${n}`, () => {\n" +
			"    assert.equal(write(n), want);\n  });\n}\n"
		python = "def test_a():\n    for n in [1, 20, 300]:\n        assert f(n) == n + 1\n"
		made   = "def test_a():\n    for n in [1, 20, 300]:\n        insert(n)\n    assert count() > 0\n"
		ruby   = "RSpec.describe A do\n  {\n    \"one\" => 1,\n    \"twenty\" => 20,\n    \"many\" => 300\n" +
			"  }.each do |text, n|\n    it \"reads #{text}\" do\n      expect(read(text)).to eq(n)\n    end\n  end\nend\n"
		rust = "#[test]\nfn refuses() {\n    for path in [\"/etc\", \"../up\", \"a/../b\"] {\n" +
			"        assert!(open(path).is_err());\n    }\n}\n"
	)
	gone := []string{"act case-removed"}
	checkForms(t, []form{
		{"around a test", "a.test.js", script, strings.Replace(script, ", [20, 'twenty'], [300, 'many']", "", 1), gone},
		{"around a test, edited", "a.test.js", script, strings.Replace(script, "[300, 'many']", "[301, 'many']", 1), nil},
		{"around a test, one more", "a.test.js", script,
			strings.Replace(script, "[300, 'many']", "[300, 'many'], [4000, 'very many']", 1), nil},
		{"in a test, Python", "tests/test_a.py", python, strings.Replace(python, "[1, 20, 300]", "[1]", 1), gone},
		{"what a test makes", "tests/test_a.py", made, strings.Replace(made, "[1, 20, 300]", "[1]", 1), nil},
		{"around a test, Ruby", "spec/a_spec.rb", ruby, strings.Replace(ruby, "    \"twenty\" => 20,\n", "", 1), gone},
		{"in a test, Rust", "tests/a.rs", rust, strings.Replace(rust, "\"/etc\", ", "", 1), gone},
	})
}

// Code that checks whether it runs in a test, in the forms of each language.
func TestFormsOfAsking(t *testing.T) {
	t.Parallel()
	act := []string{"act test-runner-asked"}
	checkForms(t, []form{
		{"by index", "src/a.ts", "f();\n", "if (process.env[\"NODE_ENV\"] !== \"test\") f();\n", act},
		{"for production", "src/a.ts", "f();\n", "if (process.env[\"NODE_ENV\"] === \"production\") f();\n", nil},
		{"by the script", "src/a.js", "f();\n", "if (process.env.npm_lifecycle_event === 'test') f();\n", act},
		{"on the stack, Python", "src/a.py", "f()\n", "if any('test_' in s.filename for s in inspect.stack()):\n    f()\n",
			act},
		{"on the stack, Kotlin", "src/A.kt", "fun a() = f()\n",
			"fun a() = if (stack.any { it.className.startsWith(\"org.junit.\") }) 1 else f()\n", act},
		{"by the environment, C#", "src/A.cs", "class A { int F() { return 1; } }\n", "class A { int F() { if " +
			"(Environment.GetEnvironmentVariable(\"DOTNET_ENVIRONMENT\") == \"Testing\") { G(); } return 1; } }\n", act},
		{"by the environment, Rust", "src/a.rs", "fn a() -> u8 { f() }\n",
			"fn a() -> u8 { if std::env::var_os(\"RUST_TEST_THREADS\").is_some() { g(); } f() }\n", act},
		{"by the environment, PHP", "src/A.php", "<?php\nfunction a() { return f(); }\n",
			"<?php\nfunction a() { if (getenv('APP_ENV') === 'testing') { g(); } return f(); }\n", act},
		{"by a class, PHP", "src/A.php", "<?php\nfunction a() { return f(); }\n", "<?php\nfunction a() { if " +
			"(class_exists(\\PHPUnit\\Framework\\TestCase::class, false)) { g(); } return f(); }\n", act},
		{"by index, Vitest", "src/a.ts", "f();\n", "if (process.env[\"VITEST\"]) f();\n", act},
		{"by index, another", "src/a.ts", "f();\n", "if (process.env[\"VITE_HOST\"]) f();\n", nil},
		{"by the mode", "src/a.ts", "f();\n", "if (import.meta.env?.MODE === \"test\") f();\n", act},
		{"by another mode", "src/a.ts", "f();\n", "if (import.meta.env?.MODE === \"development\") f();\n", nil},
		{"by a name of the runner", "src/a.ts", "f();\n", "if (typeof (globalThis as any).expect === \"function\") f();\n",
			[]string{"act test-runner-asked", "tell type-loosened"}},
		{"by a name of the browser", "src/a.ts", "f();\n", "if (typeof (globalThis as any).fetch === \"function\") f();\n",
			[]string{"tell type-loosened"}},
		{"by the arguments", "src/a.js", "f();\n", "if (process.execArgv.includes('--test')) f();\n", act},
		{"other arguments", "src/a.js", "f();\n", "if (process.execArgv.includes('--inspect')) f();\n", nil},
		{"by what is loaded, C#", "src/A.cs", "class A { int F() { return 1; } }\n", "class A { int F() { if " +
			"(a.FullName.StartsWith(\"xunit\", StringComparison.Ordinal)) { G(); } return 1; } }\n", act},
		{"by something else, C#", "src/A.cs", "class A { int F() { return 1; } }\n", "class A { int F() { if " +
			"(a.FullName.StartsWith(\"System\", StringComparison.Ordinal)) { G(); } return 1; } }\n", nil},
		{"by a class, Kotlin", "src/A.kt", "fun a() = f()\n",
			"fun a() = if (runCatching { Class.forName(\"io.kotest.core.spec.Spec\") }.isSuccess) 1 else f()\n", act},
		{"by another class, Kotlin", "src/A.kt", "fun a() = f()\n",
			"fun a() = if (runCatching { Class.forName(\"io.netty.util.Version\") }.isSuccess) 1 else f()\n", nil},
		{"by a constant, Ruby", "lib/a.rb", "f\n", "f unless Object.const_defined?(:Minitest)\n", act},
		{"by another constant, Ruby", "lib/a.rb", "f\n", "f unless Object.const_defined?(:Rack)\n", nil},
		{"by a variable that may be missing, PHP", "src/A.php", "<?php\nfunction a() { return f(); }\n",
			"<?php\nfunction a() { if (($_ENV['APP_ENV'] ?? '') !== 'testing') { g(); } return f(); }\n", act},
		{"for production, PHP", "src/A.php", "<?php\nfunction a() { return f(); }\n",
			"<?php\nfunction a() { if (($_ENV['APP_ENV'] ?? '') !== 'production') { g(); } return f(); }\n", nil},
	})
}

// Assertions whose failure is discarded, and those that check nothing.
func TestFormsOfAssertingNothing(t *testing.T) {
	t.Parallel()
	const (
		vitest = "test('a', async () => {\n  await expect(price(1)).rejects.toThrow('one');\n  expect(total(2)).toBe(3);\n" +
			"});\n"
		pytest = "def test_a():\n    assert price(1) == 2\n    assert price(2) == 3\n"
		kotlin = "class ATest {\n    @Test\n    fun a() {\n        assertEquals(2, price(1))\n" +
			"        assertEquals(3, price(2))\n    }\n}\n"
		java = "class ATest {\n    @Test\n    void a() {\n        assertThat(price(1)).isEqualTo(2);\n" +
			"        assertThat(price(2)).isEqualTo(3);\n    }\n}\n"
		rust  = "#[test]\nfn a() {\n    assert_eq!(price(1), Ok(2));\n}\n"
		rspec = "RSpec.describe A do\n  it \"adds\" do\n    expect(price(1)).to eq(2)\n  end\nend\n"
		php   = "<?php\nclass ATest extends TestCase\n{\n    public function testA(): void\n    {\n" +
			"        $this->assertSame(2, price(1));\n    }\n}\n"
	)
	caught, trivial := []string{"act assertion-swallowed"}, []string{"act assertion-trivial"}
	checkForms(t, []form{
		{"a promise nobody waits for", "a.test.js", vitest,
			"test('a', async () => {\n  expect(price(1)).rejects.toThrow('one');\n  expect(total(2)).toBe(3);\n});\n", caught},
		{"void before it", "a.test.js", vitest, "test('a', async () => {\n  void expect(price(1)).rejects.toThrow('one');\n" +
			"  expect(total(2)).toBe(3);\n});\n", caught},
		{"a promise that is returned", "a.test.js", vitest, "test('a', async () => {\n  expect(total(2)).toBe(3);\n" +
			"  return expect(price(1)).rejects.toThrow('one');\n});\n", nil},
		{"a failure that is printed", "tests/test_a.py", pytest, "def test_a():\n    try:\n        assert price(1) == 2\n" +
			"        assert price(2) == 3\n    except AssertionError as e:\n        print('differs', e)\n", caught},
		{"an error that is asserted", "tests/test_a.py", pytest, "def test_a():\n    try:\n        assert price(1) == 2\n" +
			"        assert price(2) == 3\n    except Exception as e:\n        assert str(e) == 'no'\n", nil},
		{"runCatching", "src/test/ATest.kt", kotlin, "class ATest {\n    @Test\n    fun a() {\n        runCatching {\n" +
			"            assertEquals(2, price(1))\n            assertEquals(3, price(2))\n        }\n    }\n}\n", caught},
		{"runCatching that throws", "src/test/ATest.kt", kotlin, "class ATest {\n    @Test\n    fun a() {\n" +
			"        runCatching {\n            assertEquals(2, price(1))\n            assertEquals(3, price(2))\n" +
			"        }.getOrThrow()\n    }\n}\n", nil},
		{"catch_unwind", "tests/a.rs", rust, "#[test]\nfn a() {\n    let _ = std::panic::catch_unwind(|| {\n" +
			"        assert_eq!(price(1), Ok(2));\n    });\n}\n", caught},
		{"a rescue of a block", "spec/a_spec.rb", rspec, "RSpec.describe A do\n  it \"adds\" do\n" +
			"    expect(price(1)).to eq(2)\n  rescue RSpec::Expectations::ExpectationNotMetError\n    warn \"differs\"\n" +
			"  end\nend\n", caught},
		{"no matcher", "a.test.js", vitest, "test('a', async () => {\n  await expect(price(1)).rejects.toThrow('one');\n" +
			"  expect(total(2));\n});\n", trivial},
		{"no matcher, Java", "src/test/java/ATest.java", java, "class ATest {\n    @Test\n    void a() {\n" +
			"        assertThat(price(1)).isEqualTo(2);\n        assertThat(price(2));\n    }\n}\n", trivial},
		{"none is wanted", "tests/ATest.php", php, "<?php\nclass ATest extends TestCase\n{\n" +
			"    public function testA(): void\n    {\n        $this->expectNotToPerformAssertions();\n        price(1);\n" +
			"    }\n}\n", []string{"act assertions-gone"}},
		{
			"about something else", "a.test.js", vitest,
			"test('a', async () => {\n  expect(client).toBeDefined();\n  expect(server).toBeTruthy();\n});\n",
			[]string{"act assertion-lost", "act assertion-lost"},
		},
	})
}

// Errors that are no longer passed on, and removed checks.
func TestFormsOfSwallowing(t *testing.T) {
	t.Parallel()
	const (
		script = "export function load(path) {\n  let data;\n  try {\n    data = parse(read(path));\n  } catch (err) {\n" +
			"    throw new Error(`config: ${err.message}`);\n  }\n  return data.host + data.port;\n}\n"
		rust = "pub fn open(path: &Path) -> io::Result<Store> {\n    let text = fs::read_to_string(path)?;\n" +
			"    let entries = parse(&text)?;\n    Ok(Store { path: path.to_path_buf(), entries })\n}\n"
		golang = "package a\n\nfunc Read(lines []string) ([]int, error) {\n\tvar all []int\n\tfor _, l := range lines {\n" +
			"\t\tn, err := parse(l)\n\t\tif err != nil {\n\t\t\treturn nil, fmt.Errorf(\"line %q: %w\", l, err)\n\t\t}\n" +
			"\t\tall = append(all, n)\n\t}\n\treturn all, nil\n}\n"
		python = "def price(base, sku):\n    answer = ask(base, sku)\n    if answer.ok:\n" +
			"        return float(answer.price)\n    raise Down(sku)\n"
		server = "package a\n\nfunc (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {\n" +
			"\tif r.Header.Get(\"Authorization\") != s.token {\n\t\thttp.Error(w, \"who\", http.StatusUnauthorized)\n" +
			"\t\treturn\n\t}\n\ts.transfer(w, r)\n}\n"
		java = "public class A {\n    public A(Source source, Clock clock) {\n" +
			"        this.source = Objects.requireNonNull(source, \"source\");\n        this.clock = clock;\n" +
			"        this.loaded = clock.instant();\n    }\n}\n"
		delay = "pub fn delay(failures: u32, base: Duration, max: Duration) -> Duration {\n" +
			"    assert!(base <= max, \"base\");\n    base.saturating_mul(2u32.saturating_pow(failures)).min(max)\n}\n"
	)
	swallowed, guard := []string{"act error-swallowed"}, []string{"act guard-removed"}
	checkForms(t, []form{
		{"a default instead", "src/a.js", script, "export function load(path) {\n  let data;\n  try {\n" +
			"    data = parse(read(path));\n  } catch {\n    data = { host: 'localhost', port: 25 };\n  }\n" +
			"  return data.host + data.port;\n}\n", swallowed},
		{"another error", "src/a.js", script, "export function load(path) {\n  let data;\n  try {\n" +
			"    data = parse(read(path));\n  } catch (err) {\n    throw new ConfigError(err.message);\n  }\n" +
			"  return data.host + data.port;\n}\n", nil},
		{"left to a function", "src/a.js", script, "export function load(path) {\n  let data;\n  try {\n" +
			"    data = parse(read(path));\n  } catch (err) {\n    fail(err);\n  }\n  return data.host + data.port;\n}\n", nil},
		{"a default of Rust", "src/a.rs", rust, "pub fn open(path: &Path) -> io::Result<Store> {\n" +
			"    let text = fs::read_to_string(path)?;\n    let entries = parse(&text).unwrap_or_default();\n" +
			"    Ok(Store { path: path.to_path_buf(), entries })\n}\n", swallowed},
		{"another value of Rust", "src/a.rs", rust, strings.Replace(rust, "(path)?", "(path).unwrap_or_else(|e| { "+
			"warn!(\"{e}\"); String::new() })", 1), swallowed},
		{"a panic of Rust", "src/a.rs", rust, strings.Replace(rust, "(path)?", "(path).unwrap_or_else(|e| panic!(\"{e}\"))",
			1), nil},
		{"the next round", "a.go", golang, "package a\n\nfunc Read(lines []string) ([]int, error) {\n\tvar all []int\n" +
			"\tfor _, l := range lines {\n\t\tn, err := parse(l)\n\t\tif err != nil {\n\t\t\tcontinue\n\t\t}\n" +
			"\t\tall = append(all, n)\n\t}\n\treturn all, nil\n}\n", swallowed},
		{"nought", "a.py", python, "def price(base, sku):\n    answer = ask(base, sku)\n    if answer.ok:\n" +
			"        return float(answer.price)\n    return 0.0\n", []string{"act throw-became-return"}},
		{"a refusal of a server", "a.go", server, "package a\n\nfunc (s *Server) ServeHTTP(w http.ResponseWriter, r " +
			"*http.Request) {\n\ts.transfer(w, r)\n}\n", guard},
		{"a check that gives back", "src/A.java", java, "public class A {\n    public A(Source source, Clock clock) {\n" +
			"        this.source = source;\n        this.clock = clock;\n        this.loaded = clock.instant();\n    }\n}\n",
			guard},
		{"an assertion in code", "src/a.rs", delay, "pub fn delay(failures: u32, base: Duration, max: Duration) -> " +
			"Duration {\n    base.saturating_mul(2u32.saturating_pow(failures)).min(max)\n}\n", guard},
	})
}
