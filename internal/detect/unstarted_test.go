package detect_test

import (
	"testing"
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
