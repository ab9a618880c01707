package detect_test

import (
	"testing"
)

// TestRowsLeftOut compares tables of which the test no longer runs all rows with similar
// ones that run all.
func TestRowsLeftOut(t *testing.T) {
	t.Parallel()
	const act = "act case-removed"
	for _, f := range []struct{ path, file, old, now, want string }{
		{"spec/a_spec.rb", "RSpec.describe A do\n  {\n    \"a\" => [1, 2],\n    \"b\" => [3, 4]\n  }.each do |text, n|\n" +
			"    it \"reads #{text}\" do\n      expect(f(text)).to eq(n)\n    end\n  end\nend\n", "}.each", "}.first(1).each",
			act},
		{"spec/a_spec.rb", "RSpec.describe A do\n  {\n    \"a\" => [1, 2],\n    \"b\" => [3, 4]\n  }.each do |text, n|\n" +
			"    it \"reads #{text}\" do\n      expect(f(text)).to eq(n)\n    end\n  end\nend\n", "}.each", "}.sort.each", ""},
		{"a.test.js", jsRows, "of rows)", "of rows.filter((r) => r.n < 2))", act},
		{"a.test.js", jsRows, "of rows)", "of rows.slice(0, 1))", act},
		{"a.test.js", jsRows, "    test(", "    if (n > 1) continue;\n    test(", act},
		{"a.test.js", jsRows, "of rows)", "of rows.toSorted())", ""},
		{"a.test.js", jsRows, "  ];", "  ].slice(1);", act},
		{"tests/test_a.py", pyRows, "in (1, 2, 3)", "in (3,)", act},
		{"tests/test_a.py", pyRows, "in (1, 2, 3)", "in (1, 2, 3)[:1]", act},
		{"tests/test_a.py", "ROWS = [1, 2, 3]\n\n\ndef test_a():\n    for n in ROWS:\n        assert f(n) == n + 1\n",
			"in ROWS", "in islice(ROWS, 1)", act},
		{"tests/test_a.py", pyRows, "in (1, 2, 3)", "in sorted((1, 2, 3))", ""},
		{"tests/test_a.py", pyRows, "(1, 2, 3):\n", "(1, 2, 3):\n        if n == 2:\n            continue\n", act},
		{"tests/test_a.py", pyRows, "(1, 2, 3):\n", "(1, 2, 3):\n        if n == 2 and sys.platform == 'win32':\n" +
			"            continue\n", ""},
		{"tests/test_a.py", pyNamed, "def test_a", "def helper():\n    rows = g()[:6]\n    return rows\n\n\ndef test_a", ""},
		{"tests/test_a.py", pyNamed, "= [1, 2]", "= [1, 2][:1]", act},
		{"a_test.go", goRows, "range rows {", "range rows[:1] {", act},
		{"a_test.go", goRows, "range rows {\n", "range rows {\n\t\tif r.n == 2 {\n\t\t\tcontinue\n\t\t}\n", act},
		{"a_test.go", goRows, "range rows {\n", "range rows {\n\t\tr := r\n", ""},
		{"tests/a.rs", "#[test]\nfn adds() {\n    for (n, want) in [(1, 2), (2, 3), (3, 4)] {\n" +
			"        assert_eq!(f(n), want);\n    }\n}\n", "(3, 4)]", "(3, 4)].into_iter().take(1)", act},
		{"tests/a.rs", "#[test]\nfn adds() {\n    for (n, want) in [(1, 2), (2, 3), (3, 4)] {\n" +
			"        assert_eq!(f(n), want);\n    }\n}\n", "(3, 4)]", "(3, 4)].into_iter()", ""},
		{"a_test.go", "package a\n\nfunc FuzzA(f *testing.F) {\n\tf.Add(\"a b\")\n\tf.Add(\"<c>\")\n" +
			"\tf.Fuzz(func(t *testing.T, s string) {\n\t\tif g(s) != s {\n\t\t\tt.Error(s)\n\t\t}\n\t})\n}\n",
			"\tf.Add(\"<c>\")\n", "", act},
		{"tests/test_a.py", "@given(st.text())\n@example('a b')\n@example('<c>')\ndef test_a(s):\n    assert g(s) == s\n",
			"@example('<c>')\n", "", act},
		{"src/test/java/ATest.java", testNG, "            {0, \"c\"},\n", "", act},
		{"src/test/java/ATest.java", testNG, "            {0, \"c\"},\n", "            // {0, \"c\"},\n", act},
		{"src/test/java/ATest.java", testNG, "            {0, \"c\"},\n",
			"            {0, \"c\"},\n            {4, \"d\"},\n", ""},
	} {
		wantPatterns(t, f.path+", "+f.now, edited(f.path, f.file, swap(f.file, f.old, f.now)), f.want)
	}
}

const (
	jsRows = "describe('a', () => {\n  const rows = [\n    { s: 'a', n: 1 },\n    { s: 'b', n: 2 },\n  ];\n" +
		"  for (const { s, n } of rows) {\n    test(`reads ${s}`, () => {\n      expect(f(s)).toBe(n);\n    });\n  }\n});\n"
	pyRows  = "def test_a():\n    for n in (1, 2, 3):\n        assert f(n) == n + 1\n"
	pyNamed = "def test_a():\n    rows = [1, 2]\n    for n in rows:\n        assert f(n) == n + 1\n"
	goRows  = "package a\n\nfunc TestA(t *testing.T) {\n\trows := []struct {\n\t\ts string\n\t\tn int\n\t}{\n" +
		"\t\t{\"a\", 1},\n\t\t{\"b\", 2},\n\t}\n\tfor _, r := range rows {\n\t\tif f(r.s) != r.n {\n\t\t\tt.Error(r.s)\n" +
		"\t\t}\n\t}\n}\n"
	testNG = "class ATest {\n    @DataProvider\n    public Object[][] words() {\n        return new Object[][] {\n" +
		"            {1, \"a\"},\n            {2, \"b\"},\n            {0, \"c\"},\n        };\n    }\n\n" +
		"    @Test(dataProvider = \"words\")\n    public void reads(int n, String s) {\n        assertEquals(f(s), n);\n" +
		"    }\n}\n"
)

// TestTestsThatNothingStarts compares tests that nothing starts any more with tests that are
// started in another way.
func TestTestsThatNothingStarts(t *testing.T) {
	t.Parallel()
	const (
		suite = "package a\n\ntype FromSuite struct {\n\tsuite.Suite\n}\n\nfunc (s *FromSuite) TestA() {\n" +
			"\ts.Equal(2, f(1))\n}\n\nfunc TestFrom(t *testing.T) {\n\tsuite.Run(t, new(FromSuite))\n}\n"
		specs = "package a\n\nfunc TestAll(t *testing.T) {\n\tRegisterFailHandler(Fail)\n\tRunSpecs(t, \"all\")\n}\n"
		unit  = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n"
		pest  = "<?php\nit('a', function () {\n    expect(f(1))->toBe(2);\n});\n\nit('b', function () {\n" +
			"    expect(f(2))->toBe(3);\n});\n"
		rspec = "require 'a'\n\nRSpec.describe A do\n  it 'adds' do\n    expect(f(1)).to eq(2)\n  end\nend\n"
		lists = "@Suite\n@SelectClasses({ATest.class, BTest.class})\nclass AllTests {\n}\n"
	)
	for _, f := range []struct{ path, file, old, now, want string }{
		{"a_test.go", suite, "new(FromSuite)", "&FromSuite{}", ""},
		{"a_test.go", specs, "\"all\"", "\"all of it\"", ""},
		{"tests/test_a.py", unit, "\n\n\nclass", "\n\n\ndef load_tests(loader, tests, pattern):\n" +
			"    tests.addTests(doctest.DocTestSuite(a))\n    return tests\n\n\nclass", ""},
		{"tests/ATest.php", pest, "it('b'", "function g() {\n    return;\n}\n\nit('b'", ""},
		{"src/test/java/AllTests.java", lists, "ATest.class, BTest.class", "ATest.class, BTest.class, CTest.class", ""},
	} {
		wantPatterns(t, f.path+", "+f.now, edited(f.path, f.file, swap(f.file, f.old, f.now)), f.want)
	}
}
