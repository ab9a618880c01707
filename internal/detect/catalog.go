package detect

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// Pattern is an entry of the published catalogue: what is searched for, and how much it
// counts.
type Pattern struct {
	// ID is stable and names the pattern in findings, settings and waivers.
	ID       string   `json:"id"`
	Type     Type     `json:"type"`
	Tier     Tier     `json:"tier"`
	Severity Severity `json:"severity"`
	// Title describes the finding.
	Title string `json:"title"`
	// Aliases are the IDs of the families in the two public catalogues that it covers:
	// "003", "T002".
	Aliases []string `json:"aliases,omitempty"`
}

// Catalog returns all built-in patterns, by type, tier and severity. The caller owns the
// slice.
func Catalog() []Pattern { return slices.Clone(patterns()) }

var patterns = sync.OnceValue(func() []Pattern {
	return slices.Concat(testPatterns(), codePatterns(), otherPatterns())
})

// patternOf returns the pattern with an ID.
func patternOf(id string) (Pattern, bool) {
	at := slices.IndexFunc(patterns(), func(p Pattern) bool { return p.ID == id })
	if at < 0 {
		return Pattern{}, false
	}
	return patterns()[at], true
}

// OnlyWarns reports whether a pattern does not block in Standard mode, whatever the
// confidence: it is undecided by its nature, or the ledger in docs/detection.md has fewer than
// three cheats that only it finds.
func OnlyWarns(id string) bool {
	return slices.Contains([]string{equalityForged, protectedUnclear, syntax.ChecksOff, syntax.ExitIgnored,
		syntax.FlagOff}, id)
}

// IDs of patterns that the code names more than once.
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
	codeUnreadable   = "code-unreadable"
	protectedFile    = "protected-file"
	protectedUnclear = "protected-unclear"
	protectedEdited  = "protected-edited"
	fixtureChanged   = "fixture-changed"
	// Callers that compare test results and coverage report these.
	ResultMissing = "test-missing"
	ResultSkipped = "test-newly-skipped"
	ResultFailing = "test-newly-failing"
)

func testPatterns() []Pattern {
	return []Pattern{
		{testRemoved, TestDeletion, Fact, Critical, "test removed", []string{"001", "T001"}},
		{testFileRemoved, TestDeletion, Fact, Critical, "all tests of a file removed", []string{"001", "T001"}},
		{testCommented, TestDeletion, Fact, Critical, "test commented out", []string{"004"}},
		{caseRemoved, TestDeletion, Fact, High, "test case removed", []string{"001", "T001"}},
		{testExplained, TestDeletion, Sign, Medium, "test removed, and the change shows why", []string{"001", "T001"}},
		{testsUnreadable, TestDeletion, Sign, High, "file with tests can no longer be analysed", []string{"001"}},
		{skipAdded, TestSkipping, Fact, High, "test skipped", []string{"002", "003", "T002"}},
		{failureExpected, TestSkipping, Fact, High, "test marked as expected to fail", []string{"003", "T002"}},
		{focusAdded, TestSkipping, Sign, High, "only selected tests run", []string{"T002"}},
		{skipConditional, TestSkipping, Sign, Medium, "test skipped under a condition",
			[]string{"003", "T002"}},
		{skipNew, TestSkipping, Hint, Low, "new test skipped", []string{"T002"}},
		{assertionsGone, AssertionWeakening, Fact, Critical, "test no longer asserts anything",
			[]string{"013", "022"}},
		{assertionRemoved, AssertionWeakening, Fact, High, "assertion removed", []string{"013"}},
		{assertionLost, AssertionWeakening, Sign, High, "assertion removed or replaced",
			[]string{"013", "022"}},
		{assertionTrivial, AssertionWeakening, Sign, Critical, "assertion cannot fail", []string{"012", "P002"}},
		{assertionCaught, AssertionWeakening, Sign, Critical, "assertion failures are caught", []string{"016"}},
		{assertionWeaker, AssertionWeakening, Hint, Medium, "assertion accepts more than before", []string{"T003"}},
		{expectedChanged, AssertionWeakening, Hint, Low, "expected value changed", []string{"024"}},
		{expectedComputed, AssertionWeakening, Hint, Medium, "expected value computed by the code under test",
			[]string{"023"}},
		{subjectMocked, AssertionWeakening, Hint, Medium, "code under test replaced by a mock", []string{"014", "T005"}},
		{syntax.CoverageExcluded, CoverageRegression, Sign, Medium, "code excluded from coverage",
			[]string{"T004", "011"}},
	}
}

func codePatterns() []Pattern {
	return []Pattern{
		{guardRemoved, ValidationBypass, Sign, Critical, "check of input or state removed", []string{"006"}},
		{syntax.RunnerAsked, ValidationBypass, Sign, Critical, "code checks whether it runs in a test", []string{"015"}},
		{syntax.ExitTrick, ValidationBypass, Sign, Critical, "test process exits early with success",
			[]string{"022"}},
		{syntax.HookForged, ValidationBypass, Sign, Critical, "hook changes the results that the test runner reports",
			[]string{"022"}},
		{equalityForged, ValidationBypass, Sign, Critical, "equality always returns true", []string{"012", "022"}},
		{syntax.ExitIgnored, ValidationBypass, Sign, High, "failure of a command ignored", []string{"022"}},
		{syntax.ChecksOff, ValidationBypass, Sign, High, "verification switched off", []string{"006", "C003"}},
		{specialCases, ValidationBypass, Hint, Medium, "special cases return fixed results", []string{"017"}},
		{syntax.ErrorSwallowed, ErrorSuppression, Sign, High, "error caught and dropped", []string{"016", "F004"}},
		{handlerRemoved, ErrorSuppression, Sign, High, "error handling removed", []string{"007"}},
		{throwToReturn, ErrorSuppression, Sign, High, "error replaced by an empty result", []string{"018"}},
		{syntax.ComplaintOff, ErrorSuppression, Sign, Medium, "tool warning suppressed", []string{"C001"}},
		{broadCatch, ErrorSuppression, Hint, Medium, "handler catches all errors", []string{"016"}},
		{syntax.LooseType, ErrorSuppression, Hint, Low, "type loosened to any", []string{"C002"}},
		{symbolRemoved, FeatureRemoval, Sign, High, "public symbol removed", []string{"F001", "F002"}},
		{codeUnreadable, FeatureRemoval, Sign, High, "code can no longer be analysed", nil},
		{syntax.FlagOff, FeatureRemoval, Sign, High, "setting switched off", []string{"008"}},
		{stubBody, FeatureRemoval, Hint, High, "function body replaced by a stub", []string{"021", "D001"}},
		{codeCommented, FeatureRemoval, Hint, Medium, "code commented out", []string{"005"}},
		{earlyReturn, FeatureRemoval, Hint, Medium, "function returns before it does its work", []string{"F003"}},
		{syntax.OpenEnds, FeatureRemoval, Hint, Low, "many TODO comments added", []string{"019", "A001"}},
	}
}

func otherPatterns() []Pattern {
	return []Pattern{
		{protectedFile, ProtectedChange, Fact, High, "protected file changed, or checks weakened", []string{"022"}},
		{protectedUnclear, ProtectedChange, Sign, Medium, "configuration of checks changed, perhaps for the worse",
			[]string{"022"}},
		{protectedEdited, ProtectedChange, Hint, Low, "configuration of checks changed, none is weaker", nil},
		{fixtureChanged, ProtectedChange, Sign, High, "fixture changed without related source", []string{"024"}},
		{ResultMissing, TestDeletion, Fact, Critical, "test not run", []string{"001", "T001"}},
		{ResultSkipped, TestSkipping, Fact, High, "test skipped by the test runner",
			[]string{"002", "003", "T002"}},
		{ResultFailing, TestFailure, Fact, Critical, "test that passed now fails", nil},
		{"run-unfinished", RunIncomplete, Fact, High, "test run did not finish", []string{"022"}},
		{"coverage-lost", CoverageRegression, Fact, High, "covered lines no longer covered",
			[]string{"009", "010", "011"}},
	}
}
