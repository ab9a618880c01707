// Package testreport reads the results that test runners write for programs, and compares
// two such reports test by test.
//
// A [Report] lists the tests of one run by identity: a string that is the same in every
// run for the same test, so that removed, skipped and failing tests are found by name.
// Exit codes and counts do not suffice: a process that ended early has both. A report
// therefore records whether the runner's own end record was seen ([Report.Complete]), and
// which suites could not run ([Report.Broken]), so that their tests do not count as
// deleted.
//
// Identities, by format. Parts are joined by "::" ("a > b" inside a part, as
// the runners write it themselves):
//
//	go test -json   package::Test/Sub. The runner numbers equal names (#01).
//	JUnit XML       class::name, and
//	                  pytest with a file attribute: the node ID,
//	                    tests/test_a.py::TestC::test_m[1-x] (without it:
//	                    tests.test_a.TestC::test_m[1-x])
//	                  JavaScript and TypeScript: file::titles, the file relative
//	                    to the workspace (vitest, mocha; jest-junit names no file)
//	                  node --test: suite > suite::name
//	                  cargo-nextest: binary::module::name
//	jest --json     file::ancestor > ancestor > title (also vitest's json)
//	TAP             parent > description, without the number: tests inserted or
//	                  removed before one would rename it. A missing description
//	                  is replaced by the number: "#3".
//	cargo test      binary source::module::name. Documentation tests lose their
//	                  line number, for the same reason.
//	RSpec's JSON    file::full description
//	.NET's TRX      class::name
//
// Equal identities in one report are numbered in the order they came: x, x#2,
// x#3. Two formats repeat a test on purpose and are merged instead, with the
// worse outcome: go test -count, and pytest (call and teardown of one test).
// Control characters and invalid UTF-8 are written as \xNN.
//
// All formats are streamed: memory grows with the number of tests, not with their output.
// Limits are those of [Config]; exceeding one is a [LimitError].
package testreport
