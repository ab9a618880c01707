package syntax

import "github.com/perdure/perdure/internal/detect/syntax/lex"

func rust() Language {
	return Language{
		Name: "rust", exts: []string{".rs"}, lines: false,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Nested: true, Char: true, Hashes: true, Prefixes: "brc",
			Quotes: []lex.Quote{{Open: `"`, Close: `"`, Escape: '\\', Lines: true}}},
		functions: words("fn"), containers: words("mod impl trait struct enum"),
		annotations: words("test rstest test_case quickcheck proptest wasm_bindgen_test case apply test_log"),
		skips:       words("ignore"),
		asserts: words("assert assert_eq assert_ne assert_matches panic prop_assert prop_assert_eq assert_snapshot " +
			"assert_debug_snapshot assert_ok assert_err unreachable assert_relative_eq assert_abs_diff_eq"),
		throws:       words("panic bail ensure Err unreachable"),
		testSuffixes: []string{"_test", "_tests"}, testPrefixes: []string{"test_"}, testFolders: []string{"tests"},
		marks: rustMarks(), notes: sharedNotes(), ruleWords: true,
		declarations: declarations{blockBodies: true},
		testForms: testForms{strictFolder: "tests", readRows: (*unit).rustRows, over: "in", testModules: true,
			skipsFile: (*unit).rustSkip, annotated: (*unit).rustAnnotated,
			skipsAt: func(*unit, *decl, int) (s Skipping, decided bool) { return Runs, true }},
		functionForms: functionForms{
			public: func(u *unit, d *decl) bool {
				return has(d.modifiers, "pub") || u.at(d.start) == "pub" || u.at(d.at-2) == "pub"
			},
			readOffers: (*unit).usedPublicly, readStatement: (*unit).rustAssert, countTries: (*unit).countTries,
			asks:        words("current current_exe args args_os var var_os vars option_env Backtrace"),
			freeMembers: true, bareHeads: true, lastValue: true,
		},
		assertionForms: assertionForms{
			isAssertion: func(u *unit, i int, _ set) (asserts, decided bool) {
				next := u.at(i + 1)
				return false, next != "!" && (next != "(" || u.lang.asserts[u.at(i)])
			},
			isBare: (*unit).bareCall, macros: true,
			loses: func(u *unit, i, _ int) bool {
				return u.at(i) == "catch_unwind" && u.at(i+1) == "(" && u.discarded(i) && u.assertsWithin(i+1, u.closer(i+1), nil)
			},
		},
	}
}

func rustMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false {", "if false &&"}},
		{HookForged, inTests, 0.85, []string{"macro_rules ! assert_eq {", "macro_rules ! assert {",
			"macro_rules ! assert_ne {"}},
		{ExitTrick, anywhere, 0.9, []string{"process :: exit ( 0 )"}},
		{RunnerAsked, inCode, 0.9, []string{"cfg ! ( test )", `var ( "RUST_TEST_*"`, `var_os ( "RUST_TEST_*"`,
			"cfg ! ( not ( test ) )"}},
		{RunnerAsked, inCode, 0.85, []string{`var ( "CARGO_MANIFEST_DIR" )`, `var_os ( "CARGO_MANIFEST_DIR" )`,
			`var ( "CARGO_PKG_NAME" )`, `var_os ( "CARGO_PKG_NAME" )`, `option_env ! ( "CARGO_TARGET_TMPDIR" )`,
			`var_os ( "CARGO" )`, `var ( "CARGO" )`}},
		{RunnerAsked, inCode, 0.9, []string{`var ( "NEXTEST*"`, `var_os ( "NEXTEST*"`}},
		{RunnerAsked, inCode, 0.7, []string{"cfg ( not ( test ) )"}},
		{ComplaintOff, anywhere, 0.8, []string{"# ! [ allow ("}},
		{ComplaintOff, anywhere, 0.6, []string{"# [ allow ("}},
		{ComplaintOff, anywhere, 0.8, []string{"# ! [ expect ("}},
		{ComplaintOff, anywhere, 0.6, []string{"# [ expect ("}},
		{CoverageExcluded, inCode, 0.7, []string{"# [ coverage ( off ) ]"}},
		{CoverageExcluded, inCode, 0.6, []string{"# [ cfg_attr ( coverage_nightly"}},
		{CoverageExcluded, inCode, 0.7, []string{"# [ cfg ( not ( tarpaulin_include ) ) ]"}},
		{ChecksOff, inCode, 0.9, []string{"danger_accept_invalid_certs ( true )",
			"danger_accept_invalid_hostnames ( true )"}},
	}
}

// rustSkip returns the condition on a whole file: #![cfg(feature = "disk")].
func (u *unit) rustSkip() (Skipping, int) {
	for i := 0; i+4 < min(len(u.tok), 60); i++ {
		if u.at(i) == "#" && u.at(i+1) == "!" && u.at(i+2) == "[" && u.at(i+3) == "cfg" && u.at(i+4) == "(" {
			return u.builtSometimes(i+4, u.closer(i+4)), i
		}
	}
	return Runs, 0
}

// builtSometimes returns whether a Rust condition is more than cfg(test).
func (u *unit) builtSometimes(open, to int) Skipping {
	if u.at(open+1) == "test" && u.at(open+2) == ")" {
		return Runs
	}
	if anyOf(open, to, func(j int) bool { return u.at(j) == "any" && u.at(j+2) == ")" }) {
		return Always
	}
	return Sometimes
}

// discarded reports whether the call at i is a statement, or assigned to _, as in let _ =
// std::panic::catch_unwind(...).
func (u *unit) discarded(i int) bool {
	for i > 1 && u.at(i-1) == "::" {
		i -= 2
	}
	return u.discards(i - 1)
}

// usedPublicly reads pub use a::{B, C as D}; of Rust.
func (u *unit) usedPublicly(m *Model) {
	for i := range u.tok {
		if u.at(i) != "pub" || u.at(i+1) != "use" {
			continue
		}
		end := u.statementEnd(i)
		for j := i + 2; j < end; j++ {
			if u.at(j) == "{" {
				u.offer(m, j+1, u.closer(j)-1)
				break
			}
			if u.at(j+1) == ";" && u.isWord(j) {
				m.Offers = append(m.Offers, u.at(j))
			}
		}
	}
}

// countTries counts where a Rust or Go function propagates errors and where it does not.
func (u *unit) countTries(f *Function, d *decl) {
	for j := d.body; j < d.end; j++ {
		switch s := u.at(j); {
		case s == "?" && (u.at(j-1) == ")" || u.isWord(j-1)):
			f.Tries++
		case s == "map_err" && u.at(j+1) == "(" && u.at(u.closer(j+1)) != "?":
			f.Tries++ // it is returned
		case s == "Ok" && u.at(j+1) == "(" && u.at(u.closer(j+1)) != "=>" && u.at(u.closer(j+1)) != "=":
		case s == "unwrap_or_default", s == "unwrap_or_else" && u.replacesError(j+1), s == "ok" && u.at(j-1) == "." &&
			u.at(j+3) == ";",
			s == "_" && u.at(j-1) == "let" && u.at(j+1) == "=", s == "let" && u.at(j+1) == "Ok" && u.at(j+2) == "(" &&
				u.skipsFailure(j), s == "Err" && u.at(j+2) == "_" && (u.at(j+4) == "=>" || u.at(j+4) == "if" && u.armGoesOn(j+4)):
			f.Swallows++
		}
	}
}

// armGoesOn reports whether the arm of a match whose condition begins at i only continues.
func (u *unit) armGoesOn(i int) bool {
	for j := i; j < min(i+maxTypes, len(u.tok)); j++ {
		if u.at(j) == "=>" {
			s, next := u.at(j+1), u.at(j+2)
			return s == "continue" || s == "{" && (next == "}" || next == "continue") || s == "(" && next == ")" ||
				s == "None" || s == "Ok"
		}
	}
	return false
}

// skipsFailure reports whether the let Ok(..) of Rust at i ignores a failure: an if without an
// else, or an else that continues.
func (u *unit) skipsFailure(i int) bool {
	for j := i + 2; j < min(i+80, len(u.tok)); j++ {
		switch s := u.at(j); {
		case u.kindAt(j) == lex.Op && (s == "(" || s == "["):
			j = u.closer(j) - 1
		case s == "else" && u.at(j+1) == "{":
			return u.goesOnElse(j)
		case s == "{" && u.at(i-1) == "if":
			end := u.closer(j)
			return u.at(end) != "else" || u.at(end+1) == "{" && u.goesOnElse(end)
		case s == ";":
			return false
		}
	}
	return false
}

// goesOnElse reports whether the short block of the else at i never fails.
func (u *unit) goesOnElse(i int) bool {
	end := u.closer(i + 1)
	return !u.fails(i+2, end) && end-i <= 6
}

// replacesError reports whether the Rust closure in the parentheses at open replaces an error by a
// value, and does not end the process.
func (u *unit) replacesError(open int) bool {
	if u.at(open) != "(" || u.at(open+1) != "|" {
		return false
	}
	return !anyOf(open+2, u.closer(open), func(j int) bool {
		return oneOf(u.at(j), "panic", "exit", "return", "unreachable", "abort")
	})
}

// rustRows adds the rows of the parameters of a test of rstest: #[values(1, 2)].
func (u *unit) rustRows(t *Test, d *decl) {
	for j := d.at; j < d.body; j++ {
		if u.at(j) == "values" && u.at(j-1) == "[" && u.at(j+1) == "(" {
			u.addRows(t, u.elements(j+1))
		}
	}
}

// rustAnnotated returns how cfg and cfg_attr skip a test.
func (u *unit) rustAnnotated(a *annotation, open int) (s Skipping, decided bool) {
	switch a.name {
	case "cfg":
		return u.builtSometimes(open, a.to), true
	case "cfg_attr":
		if anyOf(open, a.to, func(j int) bool { return u.at(j) == "ignore" }) {
			return Sometimes, true
		}
		return Runs, true
	}
	return Runs, false
}

// rustAssert notes the assertion of production code at i.
func (u *unit) rustAssert(f *Function, i int, _ *decl) bool {
	if u.at(i+1) != "!" || !oneOf(u.at(i), "assert", "assert_eq", "assert_ne") {
		return false
	}
	to := u.closer(i + 2)
	f.Guards = append(f.Guards, Guard{Line: u.line(i), Key: u.mixed(1, i, to),
		Words: u.once(appendTelling, u.tok[i:to]), S: u.text(i, to)})
	return true
}
