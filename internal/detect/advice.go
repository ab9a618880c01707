package detect

import (
	"cmp"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// Advice returns what to do about a finding of a pattern. Patterns that it does not know, as
// those of users, have the advice for their type.
func Advice(pattern string, t Type) string {
	return cmp.Or(adviceByPattern()[pattern], adviceByType()[t], "undo the change")
}

var adviceByPattern = sync.OnceValue(func() map[string]string {
	return map[string]string{
		caseRemoved:             "restore the removed rows of the table",
		testCommented:           "put the test back in",
		testExplained:           "check that the tested behavior was removed on purpose",
		testsUnreadable:         "make the file readable again: its tests cannot be compared",
		focusAdded:              "remove the focus, so that all tests run",
		assertionTrivial:        "compare the result of the code under test with a value written down in the test",
		assertionCaught:         "let the failed assertion end the test",
		assertionWeaker:         "keep the stricter assertion if the code still fulfills it",
		expectedChanged:         "check that the new value is right, not only what the code returns now",
		expectedComputed:        "write the expected value down in the test",
		subjectMocked:           "test the code itself and mock only what it calls",
		syntax.RunnerAsked:      "remove the condition: code must do the same in tests and outside of them",
		syntax.ExitTrick:        "let the process end with the exit code of the tests",
		syntax.HookForged:       "remove the hook and fix the failing tests",
		equalityForged:          "compare the fields that make two values equal",
		syntax.ExitIgnored:      "let the failure end the script or the job",
		syntax.ChecksOff:        "switch the verification on again",
		specialCases:            "compute the results instead of listing those that tests expect",
		syntax.ErrorSwallowed:   "return, throw or handle the error",
		handlerRemoved:          "restore the handler, or let the caller handle the error",
		throwToReturn:           "return or throw the error, so that the caller can tell it from an empty result",
		broadCatch:              "catch only the expected errors",
		syntax.ComplaintOff:     "fix what the tool reports, or suppress only this rule and write the reason next to it",
		syntax.LooseType:        "write the type",
		symbolRemoved:           "restore the symbol, or name its removal in the changelog and adapt its callers",
		codeUnreadable:          "make the file readable again: valid UTF-8, no conflict markers, not too large",
		syntax.FlagOff:          "switch the setting on again",
		stubBody:                "implement the function",
		codeCommented:           "delete the code or put it back in",
		earlyReturn:             "remove the return, or delete the code after it",
		syntax.OpenEnds:         "finish the work, or move it to issues",
		fixtureChanged:          "restore the fixture, or change the code that makes it in the same commit",
		ResultFailing:           "fix the failure",
		ResultMissing:           "let the test run again",
		syntax.CoverageExcluded: "test the code, or write next to the exclusion why no test can reach it",
	}
})

var adviceByType = sync.OnceValue(func() map[Type]string {
	return map[Type]string{
		TestDeletion:       "restore the test (moved, renamed and merged tests are recognized by their content)",
		TestSkipping:       "enable the test and fix the failure; if the test is wrong, correct it",
		AssertionWeakening: "restore the assertion and fix the code, not the test",
		CoverageRegression: "test the uncovered code instead of excluding it",
		ValidationBypass:   "restore the check, also where no test covers it",
		ErrorSuppression:   "return or handle the error",
		FeatureRemoval:     "restore the feature, or remove it with its tests and callers",
		TestFailure:        "fix the failure",
		RunIncomplete:      "let the test run finish",
		ProtectedChange:    "undo the change, or commit it separately for review",
	}
})
