package syntax

// declarations are the forms of declarations of some languages.
type declarations struct {
	// declare finds the declarations; nil for those with braces only.
	declare func(u *unit)
	// block reads a declaration of the language's own whose block opens at an index, and reports
	// whether it was one; arrow reads the member or function with the => at an index.
	block func(u *unit, open int) bool
	arrow func(u *unit, i int)
	// names are words that may name a function, unlike in other languages.
	names set
	// patterns are words that begin blocks which are patterns or values.
	patterns set
	// InitBlocks is set when a block named init belongs to the constructor.
	InitBlocks bool
	// explicit is set when methods may have the name of an interface before theirs.
	explicit bool
	// brackets is set when attributes are in brackets without a # before them.
	brackets bool
	// blockBodies is set when a function has a block as its body, not a value.
	blockBodies bool
	// afterTitle reads the rest of a call after its title and reports whether it may be a test; nil
	// for a comma. chained reads the calls on the result of such a call.
	afterTitle func(u *unit, d *decl) bool
	chained    func(u *unit, d *decl)
}

// testForms are the forms of tests, of their rows and of skips of some languages.
type testForms struct {
	// isTest reports whether a function without an annotation is a test.
	isTest func(u *unit, d *decl) bool
	// collected reports whether the runner finds the test at an index; nil for all of them. inherits
	// reports whether a class has a base class, by which the runner finds its tests; nil for any class.
	collected func(u *unit, i int) bool
	inherits  func(u *unit, class *decl) bool
	// strictPrefixes and strictSuffixes are those of file names that runners require, strictFolder is
	// the folder in which each file counts.
	strictPrefixes, strictSuffixes []string
	strictFolder                   string
	// readRows adds rows of the language's own to a test.
	readRows func(u *unit, t *Test, d *decl)
	// over is the word between the variables and the list of a loop, besides of and in.
	over string
	// braceLists is set when lists are in braces, typedLists when a type is before them.
	braceLists, typedLists bool
	// namedArguments is set when = passes an argument by its name, arrowMembers when => declares a
	// member with a value.
	namedArguments, arrowMembers bool

	// skipsFile returns how all tests of a file are skipped, and where.
	skipsFile func(u *unit) (Skipping, int)
	// skipsAt returns how the word at an index skips its test, if that is decided; nil for calls.
	skipsAt func(u *unit, d *decl, i int) (s Skipping, decided bool)
	// annotated returns how an annotation with the arguments at open skips a test, if that is decided.
	annotated func(u *unit, a *annotation, open int) (s Skipping, decided bool)
	// restricts reports whether the annotation named at an index lists where a test runs.
	restricts func(u *unit, i, to int) bool
	// chainSkips notes the skip by a call on the result of a test, and reports whether it is one.
	chainSkips func(u *unit, d *decl, call string, note onSkip) bool
	// readSkips notes skips in the title, the options or the comment of a test or suite.
	readSkips func(u *unit, t *Test, d *decl, note onSkip)
	// subtests is set when tests are calls inside other tests, receivers when a method names its
	// receiver, testModules when tests are in modules of production files.
	subtests, receivers, testModules bool
}

// onSkip notes a skip by the tokens [at, to).
type onSkip func(s Skipping, at, to int)

// assertionForms are the forms of assertions of some languages.
type assertionForms struct {
	// isAssertion reports whether the word at an index is an assertion; decided is false when its name
	// and the parentheses behind it decide.
	isAssertion func(u *unit, i int, helpers set) (asserts, decided bool)
	// isBare reports whether the assertion at an index has no matcher; its call ends at end, which is
	// the next token when it is alone.
	isBare func(u *unit, i, end int, alone bool) bool
	// loses reports whether the word at an index makes failures of assertions disappear.
	loses func(u *unit, i, from int) bool
	// failing are the calls that report the failure of a condition before them, ofTypes those that
	// the compiler checks, also in code that never runs.
	failing, ofTypes set
	// handle is the parameter by which a test fails.
	handle string
	// closing are assertions after the test that they are about.
	closing set
	// assertWord is set when assert is a statement, infix when a matcher may be between its operands.
	assertWord, infix bool
	// macros is set when a call may have a ! before its arguments, trailing when a block may be one.
	macros, trailing bool
	// listFirst is set when a loop names its list first: foreach ($rows as $row).
	listFirst bool
}

// functionForms are the forms of functions, conditions and handlers of some languages.
type functionForms struct {
	// public reports whether other packages may use a declaration.
	public func(u *unit, d *decl) bool
	// readOffers notes the names that a file re-exports.
	readOffers func(u *unit, m *Model)
	// readStatement notes a guard of the language's own at an index, and reports whether it is one.
	readStatement func(u *unit, f *Function, i int, d *decl) bool
	// literalEnd returns the end of the function literal at an index, whose returns are not those of
	// the function around it; the index for none.
	literalEnd func(u *unit, i, end int) int
	// replaces returns the handler that drops an error by a call at an index; nil for none.
	replaces func(u *unit, i int) *handler
	// countTries counts where a function propagates errors and where it does not.
	countTries func(u *unit, f *Function, d *decl)
	// asks are the words by which code queries its environment.
	asks set
	// freeMembers is set when members may be public in a type that is not.
	freeMembers bool
	// bareHeads is set when conditions need no parentheses, initialisers when a statement may be before
	// them: if a := b(); a.
	bareHeads, initialisers bool
	// ErrorValues is set when functions return errors as values.
	ErrorValues bool
	// catches reads the method catch at an index, which handles the error of a promise.
	catches func(u *unit, h *handler, i int)
	// lastValue is set when the last expression of a block is its result.
	lastValue bool
}
