package detect

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// Pattern is an entry of the published table: what is looked for, and what it
// counts for.
type Pattern struct {
	// ID is stable; it names the pattern in findings, switches and waivers.
	ID       string   `json:"id"`
	Type     Type     `json:"type"`
	Tier     Tier     `json:"tier"`
	Severity Severity `json:"severity"`
	// Title says in words what was found.
	Title string `json:"title"`
	// Aliases are the families of the two public catalogues that it covers, named
	// by their own numbers: "003", "T002".
	Aliases []string `json:"aliases,omitempty"`
}

// Catalog is the table of all patterns that are built in, by type, tier and
// severity. The caller owns it.
func Catalog() []Pattern { return slices.Clone(patterns()) }

var patterns = sync.OnceValue(func() []Pattern {
	return slices.Concat(testPatterns(), codePatterns(), otherPatterns())
})

var patternIndex = sync.OnceValue(func() map[string]Pattern {
	index := make(map[string]Pattern)
	for _, p := range patterns() {
		index[p.ID] = p
	}
	return index
})

// patternOf finds a pattern by its ID.
func patternOf(id string) (Pattern, bool) {
	p, ok := patternIndex()[id]
	return p, ok
}

// Patterns that code names in more than one place.
const (
	testRemoved      = "test-removed"
	testFileRemoved  = "test-file-removed"
	caseRemoved      = "case-removed"
	testCommented    = "test-commented-out"
	testExplained    = "test-removal-explained"
	testsUnreadable  = "tests-unreadable"
	skipAdded        = "skip-added"
	skipConditional  = "skip-conditional"
	skipNew          = "skip-new-test"
	focusAdded       = "focus-added"
	failureExpected  = "failure-expected"
	assertionsGone   = "assertions-gone"
	assertionRemoved = "assertion-removed"
	assertionLost    = "assertion-lost"
	assertionWeaker  = "assertion-weaker"
	assertionTrivial = "assertion-trivial"
	assertionCaught  = "assertion-swallowed"
	expectedChanged  = "expected-changed"
	expectedComputed = "expected-computed"
	subjectMocked    = "subject-mocked"
	guardRemoved     = "guard-removed"
	equalityForged   = "equality-forged"
	specialCases     = "special-cases"
	handlerRemoved   = "error-handling-removed"
	throwToReturn    = "throw-became-return"
	broadCatch       = "broad-catch"
	symbolRemoved    = "symbol-removed"
	stubBody         = "stub-body"
	codeCommented    = "code-commented-out"
	earlyReturn      = "early-return"
	protectedFile    = "protected-file"
	fixtureChanged   = "fixture-changed"
	resultMissing    = "test-missing"
	resultSkipped    = "test-newly-skipped"
	resultFailing    = "test-newly-failing"
	runUnfinished    = "run-unfinished"
	coverageLost     = "coverage-lost"
)

func testPatterns() []Pattern {
	return []Pattern{
		{testRemoved, TestDeletion, Fact, Critical, "a test of the baseline is gone", []string{"001", "T001"}},
		{testFileRemoved, TestDeletion, Fact, Critical, "all tests of a file are gone", []string{"001", "T001"}},
		{testCommented, TestDeletion, Fact, Critical, "a test of the baseline became a comment", []string{"004"}},
		{caseRemoved, TestDeletion, Fact, High, "a case of a test's table is gone", []string{"001", "T001"}},
		{testExplained, TestDeletion, Sign, Medium, "a test is gone, and the change shows why", []string{"001", "T001"}},
		{testsUnreadable, TestDeletion, Sign, High, "a file with tests cannot be analysed any more", []string{"001"}},
		{skipAdded, TestSkipping, Fact, High, "a test of the baseline is skipped", []string{"002", "003", "T002"}},
		{failureExpected, TestSkipping, Fact, High, "a test of the baseline is expected to fail", []string{"003", "T002"}},
		{focusAdded, TestSkipping, Sign, High, "only chosen tests run", []string{"T002"}},
		{skipConditional, TestSkipping, Sign, Medium, "a test of the baseline is skipped under a condition",
			[]string{"003", "T002"}},
		{skipNew, TestSkipping, Hint, Low, "a new test is skipped", []string{"T002"}},
		{assertionsGone, AssertionWeakening, Fact, Critical, "a test of the baseline asserts nothing any more",
			[]string{"013", "022"}},
		{assertionRemoved, AssertionWeakening, Fact, High, "an assertion was taken out of a test", []string{"013"}},
		{assertionLost, AssertionWeakening, Sign, High, "what a test asserted is not asserted any more",
			[]string{"013", "022"}},
		{assertionTrivial, AssertionWeakening, Sign, Critical, "an assertion that cannot fail", []string{"012", "P002"}},
		{assertionCaught, AssertionWeakening, Sign, Critical, "failures of assertions are caught", []string{"016"}},
		{assertionWeaker, AssertionWeakening, Hint, Medium, "an assertion accepts more than before", []string{"T003"}},
		{expectedChanged, AssertionWeakening, Hint, Low, "an expected value was changed", []string{"024"}},
		{expectedComputed, AssertionWeakening, Hint, Medium, "an expected value is computed by what is tested",
			[]string{"023"}},
		{subjectMocked, AssertionWeakening, Hint, Medium, "what is tested is replaced by a mock", []string{"014", "T005"}},
		{syntax.CoverageExcluded, CoverageRegression, Sign, Medium, "code is excluded from coverage",
			[]string{"T004", "011"}},
	}
}

func codePatterns() []Pattern {
	return []Pattern{
		{guardRemoved, ValidationBypass, Sign, Critical, "a check of input or state was removed", []string{"006"}},
		{syntax.RunnerAsked, ValidationBypass, Sign, Critical, "code asks whether it is being tested", []string{"015"}},
		{syntax.ExitTrick, ValidationBypass, Sign, Critical, "the process of the tests ends early with success",
			[]string{"022"}},
		{syntax.HookForged, ValidationBypass, Sign, Critical, "a hook changes what the runner reports", []string{"022"}},
		{equalityForged, ValidationBypass, Sign, Critical, "equality is always true", []string{"012", "022"}},
		{syntax.ExitIgnored, ValidationBypass, Sign, High, "the failure of a command is ignored", []string{"022"}},
		{syntax.ChecksOff, ValidationBypass, Sign, High, "verification is switched off", []string{"006", "C003"}},
		{specialCases, ValidationBypass, Hint, Medium, "special cases return fixed results", []string{"017"}},
		{syntax.ErrorSwallowed, ErrorSuppression, Sign, High, "errors are caught and dropped", []string{"016", "F004"}},
		{handlerRemoved, ErrorSuppression, Sign, High, "error handling was removed", []string{"007"}},
		{throwToReturn, ErrorSuppression, Sign, High, "an error became an empty result", []string{"018"}},
		{syntax.ComplaintOff, ErrorSuppression, Sign, Medium, "a complaint of a tool is silenced", []string{"C001"}},
		{broadCatch, ErrorSuppression, Hint, Medium, "a handler catches everything", []string{"016"}},
		{syntax.LooseType, ErrorSuppression, Hint, Low, "a type became any", []string{"C002"}},
		{symbolRemoved, FeatureRemoval, Sign, High, "a public symbol was removed", []string{"F001", "F002"}},
		{syntax.FlagOff, FeatureRemoval, Sign, High, "a switch was turned off", []string{"008"}},
		{stubBody, FeatureRemoval, Hint, High, "a body was replaced by a stub", []string{"021", "D001"}},
		{codeCommented, FeatureRemoval, Hint, Medium, "code became a comment", []string{"005"}},
		{earlyReturn, FeatureRemoval, Hint, Medium, "a function returns before its work", []string{"F003"}},
		{syntax.OpenEnds, FeatureRemoval, Hint, Low, "many open ends were added", []string{"019", "A001"}},
	}
}

func otherPatterns() []Pattern {
	return []Pattern{
		{protectedFile, ProtectedChange, Fact, High, "a file that checks hang on was changed", []string{"022"}},
		{fixtureChanged, ProtectedChange, Sign, High, "fixtures were changed and the source was not", []string{"024"}},
		{resultMissing, TestDeletion, Fact, Critical, "a test of the baseline was not executed", []string{"001", "T001"}},
		{resultSkipped, TestSkipping, Fact, High, "a test of the baseline was skipped by the runner",
			[]string{"002", "003", "T002"}},
		{resultFailing, TestFailure, Fact, Critical, "a test that passed fails", nil},
		{runUnfinished, RunIncomplete, Fact, High, "the run has no end record", []string{"022"}},
		{coverageLost, CoverageRegression, Fact, High, "lines that were covered and still exist are not covered",
			[]string{"009", "010", "011"}},
	}
}
