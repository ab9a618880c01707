package detect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// TestRemovalExplained compares lost tests for which the change shows a reason with the
// same loss without it: the first warn, the second block.
func TestRemovalExplained(t *testing.T) {
	t.Parallel()
	code := "package p\n\ntype Client struct {\n\tRetries int\n\tSingleFlight bool\n}\n\n" +
		"func (c *Client) Do(n int) int {\n\tif c.SingleFlight {\n\t\treturn once(n)\n\t}\n\treturn n + c.Retries\n}\n"
	without := "package p\n\ntype Client struct {\n\tRetries int\n}\n\nfunc (c *Client) Do(n int) int {\n" +
		"\treturn n + c.Retries\n}\n"
	retries := "package p\n\nimport \"testing\"\n\nfunc TestRetries(t *testing.T) {\n\tc := &Client{Retries: 20}\n" +
		"\tif got := c.Do(22); got != 42 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n"
	single := "\nfunc TestSingle(t *testing.T) {\n\tc := &Client{SingleFlight: true}\n" +
		"\tif got := c.Do(31); got != 31 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n"
	first := "\nfunc TestFirst(t *testing.T) {\n\tc := &Client{Retries: 7}\n\tif got := c.Do(31); got != 38 {\n" +
		"\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n"
	other := "\nfunc TestOtherCount(t *testing.T) {\n\tc := &Client{Retries: 5}\n\tc.Do(1)\n\tc.Do(2)\n" +
		"\tif got := c.Do(4); got != 9 {\n\t\tt.Errorf(\"again %d\", got)\n\t}\n}\n"
	softer := "\nfunc TestOtherCount(t *testing.T) {\n\tc := &Client{Retries: 5}\n\tc.Do(1)\n\tc.Do(2)\n" +
		"\tif got := c.Do(4); got < 9 {\n\t\tt.Errorf(\"again %d\", got)\n\t}\n}\n"
	edit := strings.Replace(code, "once(n)", "once(2 * n)", 1)
	for _, test := range []struct {
		name     string
		old, now map[string]string
		want     string
		found    bool // the removed test counts as found again
	}{
		{"its field went", map[string]string{"p.go": code, "p_test.go": retries + single},
			map[string]string{"p.go": without, "p_test.go": retries},
			"warn test-removal-explained", true},
		{"its field is still there", map[string]string{"p.go": code, "p_test.go": retries + single},
			map[string]string{"p.go": edit, "p_test.go": retries},
			"act test-removed", false},
		{"another test of the same", map[string]string{"p.go": code, "p_test.go": retries + first},
			map[string]string{"p.go": edit, "p_test.go": retries + other},
			"warn test-removal-explained", false},
		{"another test, and the code as before", map[string]string{"p_test.go": retries + first},
			map[string]string{"p_test.go": retries + other},
			"act test-removed", false},
		{"another test that accepts more", map[string]string{"p.go": code, "p_test.go": retries + first},
			map[string]string{"p.go": edit, "p_test.go": retries + softer},
			"act test-removed", false},
		{"it asserted nothing", map[string]string{
			"p_test.go": retries + "\nfunc TestLater(t *testing.T) {\n\tdump(2, 3)\n}\n"},
			map[string]string{"p_test.go": retries},
			"warn test-removal-explained", false},
		{"it handed on what asserts",
			map[string]string{"p_test.go": retries + "\nfunc TestLater(t *testing.T) {\n\tdump(t, 3)\n}\n"},
			map[string]string{"p_test.go": retries},
			"act test-removed", false},
		{"it did nothing", map[string]string{"p_test.go": retries + "\nfunc TestLater(t *testing.T) {\n\t// later\n}\n"},
			map[string]string{"p_test.go": retries}, "", true},
	} {
		wantPatterns(t, test.name, changes(test.old, test.now), test.want)
		gone := "TestSingle"
		for _, name := range []string{"TestFirst", "TestLater"} {
			if strings.Contains(test.old["p_test.go"], name) {
				gone = name
			}
		}
		report := find(t, &detect.Input{Changes: changes(test.old, test.now)})
		found := slices.ContainsFunc(report.Moved, func(m detect.Moved) bool { return m.From.Name == gone })
		if found != test.found {
			t.Errorf("%s: found again %t, want %t", test.name, found, test.found)
		}
	}
}

// TestCaseExplained does the same for a row of a table.
func TestCaseExplained(t *testing.T) {
	t.Parallel()
	code := "package p\n\nconst (\n\tModeStrict = 1\n\tModeRelaxed = 2\n)\n\n" +
		"func Limit(mode int) int { return mode * 10 }\n"
	table := "package p\n\nimport \"testing\"\n\nfunc TestLimit(t *testing.T) {\n" +
		"\tfor _, c := range []struct{ mode, want int }{\n\t\t{p.ModeStrict, 10},\n\t\t{p.ModeRelaxed, 20},\n\t} {\n" +
		"\t\tif got := p.Limit(c.mode); got != c.want {\n\t\t\tt.Error(got)\n\t\t}\n\t}\n}\n"
	row, constant := "\t\t{p.ModeRelaxed, 20},\n", "\tModeRelaxed = 2\n"
	for _, test := range []struct{ name, now, want string }{
		{"its constant went", strings.Replace(code, constant, "", 1), "warn test-removal-explained"},
		{"its constant is there", strings.Replace(code, "10 }", "10 + 0 }", 1), "act case-removed"},
	} {
		report := find(t, &detect.Input{Changes: changes(map[string]string{"p.go": code, "p_test.go": table},
			map[string]string{"p.go": test.now, "p_test.go": strings.Replace(table, row, "", 1)})})
		if got := strings.Join(patternsOf(report), ", "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestOrdinaryEdits compares ordinary edits of single files with cheats that look
// similar.
func TestOrdinaryEdits(t *testing.T) {
	t.Parallel()
	const errs = "package p\n\nfunc TestA(t *testing.T) {\n\terr := f(1)\n\trequire.Error(t, err)\n" +
		"\trequire.ErrorIs(t, err, ErrGone)\n\trequire.Equal(t, 20, g(err))\n}\n"
	const noErr = "package p\n\nfunc TestA(t *testing.T) {\n\terr := f(1)\n\trequire.NoError(t, err)\n\terr = g(2)\n" +
		"\trequire.ErrorIs(t, err, ErrGone)\n}\n"
	const long = "test('parses a date', t => {\n  t.plan(2)\n  t.is(parse('2020-01-02').day, 2)\n" +
		"  t.is(parse('2020-01-02').month, 1)\n})\n"
	const renamed = "test('parses a date and ignores the zone', t => {\n  const app = open({ zone: 'CET' })\n" +
		"  t.deepEqual(parse(app, '1999-12-31T00:00Z').parts, [1999, 12, 31])\n" +
		"  t.is(parse(app, '1999-12-31T00:00Z').zone, undefined)\n  app.close()\n})\n"
	const call = "export function day (s) {\n  const d = read(s)\n  if (!d) {\n    return null\n  }\n  return d.day\n}\n"
	const types = "expectType<string>(clean('/a'))\nexpectType<number>(depth('/a'))\n{\n  const r = open({ a: 1 })\n" +
		"  expectType<number>(r.a)\n}\n"
	const made = "// Generated by tablegen for cases 1.2\npackage p\n\nimport \"testing\"\n\n" +
		"func TestOne(t *testing.T) {\n\tcheck(t, 1)\n}\n\nfunc TestTwo(t *testing.T) {\n\tcheck(t, 2)\n}\n"
	const two = "\nfunc TestTwo(t *testing.T) {\n\tcheck(t, 2)\n}\n"
	const helpers = "const a = { level (n) { expect(n).toBe(20) } }\nconst b = { level (n) { expect(n).toBe(30) } }\n" +
		"test('a', () => { run(a); run(b) })\n"
	replace := func(s, old, now string) string { return strings.Replace(s, old, now, 1) }
	for _, test := range []struct{ name, path, old, now, want string }{
		{"implied by the next", "p_test.go", errs, replace(errs, "\trequire.Error(t, err)\n", ""), ""},
		{"the stronger one went", "p_test.go", errs, replace(errs, "\trequire.ErrorIs(t, err, ErrGone)\n", ""),
			"act assertion-removed"},
		{"the opposite is not implied", "p_test.go", noErr, replace(noErr, "\trequire.NoError(t, err)\n", ""),
			"act assertion-removed"},
		{"rewritten under a longer name", "a.test.js", long, renamed, "warn assertion-lost, warn assertion-lost"},
		{"rewritten under another name", "a.test.js", long,
			replace(renamed, "parses a date and ignores the zone", "drops zones"), "act test-removed"},
		{"says what must not happen", "a.test.js", long,
			replace(long, "  t.plan(2)\n", "  t.plan(2)\n  hook(() => t.assert.fail('not called'))\n"), ""},
		{"says that a place was reached", "a.test.js", long,
			replace(long, "  t.plan(2)\n", "  t.plan(3)\n  hook(() => t.assert.ok('called'))\n"), "warn assertion-trivial"},
		{"what cannot fail", "a.test.js", long, replace(long, "  t.plan(2)\n", "  t.plan(3)\n  t.assert.ok(true)\n"),
			"act assertion-trivial"},
		{"left out of coverage with its reason", "a.js", call, replace(call, "  if (!d) {", "  // The caller has looked "+
			"before: this stays for others.\n  /* c8 ignore next 3 */\n  if (!d) {"), "warn coverage-excluded"},
		{"left out of coverage under a comment that was there", "a.js",
			replace(call, "  if (!d) {", "  // Nothing is there before it was read.\n  if (!d) {"),
			replace(call, "  if (!d) {", "  // Nothing is there before it was read.\n  /* c8 ignore next 3 */\n  if (!d) {"),
			"act coverage-excluded"},
		{"left out of coverage", "a.js", call, replace(call, "  if (!d) {", "  /* c8 ignore next 3 */\n  if (!d) {"),
			"act coverage-excluded"},
		{"new code left out of coverage", "a.js", call, replace(call, "  return d.day\n", "  if (d.bad) {\n"+
			"    /* c8 ignore next */\n    return null\n  }\n  return d.day\n"), "act coverage-excluded"},
		{"new code that nobody reaches left out of coverage", "a.js", call,
			replace(call, "  return d.day\n", "  /* c8 ignore next */\n  if (d.bad) throw new Error('unreachable')\n"+
				"  return d.day\n"), "warn coverage-excluded"},
		{"silenced in a test", "a.test.ts", long,
			replace(long, "  t.is(parse('2020-01-02').day, 2)\n", "  // eslint-disable-next-line no-undef\n"+
				"  t.is(parse('2020-01-02').day, 2)\n"), "warn complaint-silenced"},
		{"silenced for good", "p.go", "package p\n\nvar h = h2c.New()\n",
			"package p\n\n//lint:ignore SA1019 needed until the old protocol goes\nvar h = h2c.New()\n",
			"warn complaint-silenced"},
		{"errors of new code dropped", "a.js", call,
			replace(call, "  return d.day\n", "  try {\n    flushAll(d.handle)\n  } catch {}\n  return d.day\n"),
			"warn error-swallowed"},
		{"errors of old code dropped", "a.js", call,
			replace(call, "  const d = read(s)\n", "  let d\n  try {\n    d = read(s)\n  } catch {}\n"), "act error-swallowed"},
		{"a process that tests start", "test/worker.js", "listen(8080)\n",
			"listen(8080)\nprocess.on('SIGTERM', () => process.exit(0))\n", "warn exit-trick"},
		{"what the runner loads", "test/setup.js", "listen(8080)\n", "listen(8080)\nprocess.exit(0)\n", "act exit-trick"},
		{"two helpers of one name", "t.test.js", helpers,
			replace(helpers, "level (n) { expect(n).toBe(20) }", "level (n) {}"), ""},
		{"an assertion of another library", "a.test.js", long,
			replace(long, "t.is(parse('2020-01-02').day, 2)", "t.strictSame(parse('2020-01-02').day, 2)"), ""},
		{"the other style of Pest", "tests/SorterTest.php", "<?php\nit('refuses', function () {\n" +
			"    expect(fn () => sorted('nothing'))->toThrow(BadLetter::class);\n});\n",
			"<?php\nit('refuses', function () {\n    sorted('nothing');\n})->throws(BadLetter::class, 'No letter');\n",
			"warn assertion-lost"},
		{"a public function went", "a.js", call + "export function month (s) {\n  return read(s).month\n}\n",
			replace(call, "d.day", "d.days[0]"), "act symbol-removed"},
		{"two things that a change is not about", "a.go", "package a\n\nfunc Month(s string) int { return read(s).month + " +
			"base }\n\nfunc Day(s string) int { return read(s).day }\n",
			"package a\n\nfunc Day(s string) int { return read(s).day }\n", "act symbol-removed"},
		{"another one came for it", "a.js", call + "export function month (s) {\n  return read(s).month\n}\n",
			replace(call, "d.day", "d.days[0]") + "export function monthOf (s, first) {\n" +
				"  const { year, ordinal } = count(s)\n  return Math.ceil((ordinal + first) / 7) + year\n}\n",
			"warn symbol-removed"},
		{"one of the project's own", "lib/internal/a.js", call + "export function month (s) {\n  return read(s).month\n}\n",
			replace(call, "d.day", "d.days[0]"), "warn symbol-removed"},
		{"one that nobody was promised", "a.js", call + "export function unstable_month (s) {\n  return read(s).month\n}\n",
			replace(call, "d.day", "d.days[0]"), "warn symbol-removed"},
		{"a function of its own", "a.js", call + "function month (s) {\n  return read(s).month\n}\n",
			replace(call, "d.day", "d.days[0]"), ""},
		{"a block after a call", "r.test-d.ts", types, replace(types, "{ a: 1 }", "{ a: 1, b: 2 }"), ""},
		{"a file that a program writes", "gen_test.go", made, replace(made, two, ""), ""},
		{"the same by hand", "gen_test.go", replace(made, "Generated by", "Like"),
			replace(replace(made, "Generated by", "Like"), two, ""), "act test-removed"},
	} {
		wantPatterns(t, test.name, edited(test.path, test.old, test.now), test.want)
	}
}

// TestHelperOfHelpers compares a function that asserts only through another one.
func TestHelperOfHelpers(t *testing.T) {
	t.Parallel()
	old := "function level (n) { expect(n).toBe(20) }\nfunction both (a, b) { const check = level; check(a) }\n" +
		"test('a', () => { both(1, 2) })\n"
	find(t, &detect.Input{Changes: edited("t.test.js", old, strings.Replace(old, "check(a)", "", 1))})
}
