package testreport_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/testreport"
)

// rows formats a report as "outcome identity" lines, with "flaky" where it applies, then
// the broken suites.
func rows(r *testreport.Report) []string {
	var all []string
	for _, t := range r.Tests {
		line := string(t.Outcome) + " " + t.ID
		if t.Flaky {
			line = "flaky " + line
		}
		all = append(all, line)
	}
	for _, b := range r.Broken {
		all = append(all, "broken "+string(b.Kind)+" "+b.Suite)
	}
	return all
}

// fixtures are files of testdata and the tests in them.
var fixtures = []struct {
	file   string
	format testreport.Format
	want   []string
	reason string
}{
	{file: "vitest.xml", format: testreport.JUnit, want: []string{
		"passed src/a.test.js::outer > inner > x > adds",
		"failed src/a.test.js::outer > inner > x > adds#2",
		"skipped src/a.test.js::outer > inner > x > later",
		"skipped src/a.test.js::outer > inner > x > todo one",
		"passed src/a.test.js::outer > inner > x > known",
		"passed src/a.test.js::top",
		"broken load src/bad.test.js",
	}},
	{file: "vitest.json", format: testreport.Jest, want: []string{
		"passed src/a.test.js::outer > inner > x > adds",
		"failed src/a.test.js::outer > inner > x > adds#2",
		"skipped src/a.test.js::outer > inner > x > later",
		"todo src/a.test.js::outer > inner > x > todo one",
		"passed src/a.test.js::outer > inner > x > known",
		"flaky passed src/a.test.js::top",
		"broken load src/bad.test.js",
	}},
	{file: "jest.json", format: testreport.Jest, want: []string{
		"passed jest/a.test.cjs::outer > inner > adds",
		"failed jest/a.test.cjs::outer > inner > adds#2",
		"skipped jest/a.test.cjs::outer > inner > later",
		"todo jest/a.test.cjs::outer > inner > todo one",
		"passed jest/a.test.cjs::outer > inner > known",
		"passed jest/a.test.cjs::top",
		"broken load jest/bad.test.cjs",
	}},
	{file: "jest-junit.xml", format: testreport.JUnit, want: []string{
		"passed outer inner adds",
		"failed outer inner adds#2",
		"skipped outer inner later",
		"passed outer inner todo one",
		"passed outer inner known",
		"passed top",
	}},
	{file: "mocha.xml", format: testreport.JUnit, want: []string{
		"passed mo.cjs::a > p", "failed mo.cjs::a > f", "skipped mo.cjs::a > s", "skipped mo.cjs::a > pending",
	}},
	{file: "mocha.tap", format: testreport.TAP, want: []string{
		"passed a p", "failed a f", "skipped a s", "skipped a pending",
	}},
	{file: "node.xml", format: testreport.JUnit, want: []string{
		"passed suite::one", "failed suite::two", "skipped suite::sk", "todo suite::td", "todo suite::td ok",
		"passed top # hash", "passed top # hash#2",
	}},
	{file: "node.tap", format: testreport.TAP, want: []string{
		"passed suite > one", "failed suite > two", "skipped suite > sk", "todo suite > td", "xpass suite > td ok",
		"failed suite", "passed top # hash", "passed top # hash#2",
	}},
	{file: "perl.tap", format: testreport.TAP, want: []string{
		"passed loads", "passed numbers > one", "failed numbers > two", "passed numbers > #3",
		"failed numbers", "skipped #3", "todo later",
	}},
	{file: "pytest.xml", format: testreport.JUnit, want: []string{
		"passed tests/test_a.py::TestC::test_m",
		"passed tests/test_a.py::test_p[1-a b]",
		"failed tests/test_a.py::test_p[2-c::d]",
		"skipped tests/test_a.py::test_s",
		"xfail tests/test_a.py::test_xf",
		"passed tests/test_a.py::test_xp",
		"failed tests/test_a.py::test_xps",
		"failed tests/test_a.py::test_double",
		"failed tests/test_a.py::test_setup",
		"passed tests/test_a.py::test_out",
		"broken load tests/test_bad.py",
	}},
	{file: "surefire.xml", format: testreport.JUnit, want: []string{
		"passed com.acme.CartTest::adds",
		"passed com.acme.CartTest::sums(int, int)[1]",
		"failed com.acme.CartTest::fails",
		"flaky passed com.acme.CartTest::sometimes",
		"skipped com.acme.CartTest::later",
		"broken load com.acme.StoreTest",
	}},
	{file: "gradle.xml", format: testreport.JUnit, want: []string{
		"passed com.acme.MainTest::greets()", "passed com.acme.MainTest::greets()#2", "skipped com.acme.MainTest::skips()",
	}},
	{file: "nextest.xml", format: testreport.JUnit, want: []string{
		"passed foo::tests::works", "flaky passed foo::tests::flaky", "failed foo::tests::fails",
		"passed foo::integ::it_works",
	}},
	{file: "phpunit.xml", format: testreport.JUnit, want: []string{
		"passed CartTest::testAdds", "passed CartTest::testSum with data set #0", "failed CartTest::testSum with data set #1",
	}},
	{file: "dotnet.trx", format: testreport.TRX, want: []string{
		"passed Shop.Tests.CartTest::Adds", "failed Shop.Tests.CartTest::Sums(a: 1, b: 2)",
		"skipped Shop.Tests.CartTest::Later",
	}},
	{file: "rspec.json", format: testreport.RSpec, want: []string{
		"passed spec/cart_spec.rb::Cart adds", "failed spec/cart_spec.rb::Cart sums", "skipped spec/cart_spec.rb::Cart later",
	}},
	{file: "cargo.txt", format: testreport.Cargo, want: []string{
		"skipped foo src/lib.rs::tests::ign",
		"skipped foo src/lib.rs::tests::ign2",
		"passed foo src/lib.rs::tests::sp",
		"failed foo src/lib.rs::tests::fails",
		"passed foo src/lib.rs::tests::works",
		"passed integ tests/integ.rs::it_works",
		"passed doc foo::src/lib.rs - add",
		"passed doc foo::src/lib.rs - add#2",
	}},
}

// TestFixtures reads files that the runners themselves wrote (pytest, Surefire, Gradle,
// nextest, PHPUnit, RSpec and TRX after their documentation).
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, tt := range fixtures {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := testreport.Detect("", text); got != tt.format {
				t.Errorf("Detect = %q, want %q", got, tt.format)
			}
			r, err := testreport.Parse("", strings.NewReader(string(text)), testreport.Config{Root: "/home/dev/shop"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, rows(r)); diff != "" {
				t.Errorf("tests (-want +got):\n%s", diff)
			}
			if !r.Complete || r.Reason != "" || r.Format != tt.format {
				t.Errorf("complete %v, reason %q, format %q", r.Complete, r.Reason, r.Format)
			}
		})
	}
}

// TestDetails checks the fields that the identities do not show.
func TestDetails(t *testing.T) {
	t.Parallel()
	find := func(file, id string) testreport.Test {
		t.Helper()
		r, err := testreport.ParseFiles("", []string{filepath.Join("testdata", file)},
			testreport.Config{Root: "/home/dev/shop/"})
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range r.Tests {
			if test.ID == id {
				return test
			}
		}
		t.Fatalf("%s: no test %q", file, id)
		return testreport.Test{}
	}
	tests := []struct {
		file, id string
		want     testreport.Test
	}{
		{"pytest.xml", "tests/test_a.py::test_xps", testreport.Test{Suite: "tests/test_a.py", Name: "test_xps",
			File:    "tests/test_a.py",
			Outcome: testreport.Failed, Duration: 1e6, Message: "[XPASS(strict)] known"}},
		{"pytest.xml", "tests/test_a.py::test_double", testreport.Test{Suite: "tests/test_a.py", Name: "test_double",
			File:    "tests/test_a.py",
			Outcome: testreport.Failed, Duration: 2e6, Message: "assert 0\ndef test_double(bad): assert 0"}},
		{"surefire.xml", "com.acme.CartTest::fails",
			testreport.Test{Suite: "com.acme.CartTest", Name: "fails", Outcome: testreport.Failed, Duration: 7e6,
				Message: "expected: <1> but was: <2>\norg.opentest4j.AssertionFailedError: expected: <1> but was: <2>\n" +
					"\tat com.acme.CartTest.fails(CartTest.java:21)"}},
		{"node.tap", "suite > two", testreport.Test{Name: "two", File: "m.test.cjs", Outcome: testreport.Failed,
			Duration: 1168847,
			Message:  "error: '1 == 2'\nname: 'AssertionError'\nexpected: 2\nactual: 1\noperator: '=='"}},
		{"perl.tap", "numbers > two",
			testreport.Test{Name: "two", Outcome: testreport.Failed, Message: "Failed test 'two'\nat t/a.t line 8."}},
		{"perl.tap", "#3", testreport.Test{Name: "#3", Outcome: testreport.Skipped, Message: "no network"}},
		{"dotnet.trx", "Shop.Tests.CartTest::Sums(a: 1, b: 2)",
			testreport.Test{Suite: "Shop.Tests.CartTest", Name: "Sums(a: 1, b: 2)", Outcome: testreport.Failed,
				Duration: 1500e6, Message: "Assert.Equal() Failure: Values differ\nat Shop.Tests.CartTest.Sums(Int32 a, Int32 b)"}},
		{"rspec.json", "spec/cart_spec.rb::Cart sums", testreport.Test{Suite: "spec/cart_spec.rb", Name: "Cart sums",
			File:    "spec/cart_spec.rb",
			Outcome: testreport.Failed, Duration: 10500e3, Message: "RSpec::Expectations::ExpectationNotMetError: expected: " +
				"4\n     got: 3"}},
		{"cargo.txt", "foo src/lib.rs::tests::ign2", testreport.Test{Suite: "foo src/lib.rs", Name: "tests::ign2",
			Outcome: testreport.Skipped, Message: "why"}},
	}
	for _, tt := range tests {
		tt.want.ID = tt.id
		got := find(tt.file, tt.id)
		if got.Duration.Round(1e3) == tt.want.Duration.Round(1e3) {
			got.Duration = tt.want.Duration // read from decimals
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.file, tt.id, diff)
		}
	}
}
