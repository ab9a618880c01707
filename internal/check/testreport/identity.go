package testreport

import (
	"path"
	"strings"
)

// place is the identity and suite of a JUnit test case.
type place struct {
	suite, name, file string
	// broken names the suite if the "test" is its failure to load.
	broken string
	// once is set if the runner reports a test twice when two of its phases failed;
	// identities are unique without numbers.
	once bool
}

// identify returns the identity of a test case by the conventions of its writer; see the
// package comment.
func identify(c *junitCase, suites []junitSuite) place {
	at := place{suite: c.class, name: c.name, file: c.file, once: pytestLike(suites)}
	switch {
	case strings.HasSuffix(c.file, ".py"):
		return pytest(c)
	case scriptFile(c.class): // vitest
		at.file = c.class
		if c.name == c.class {
			at.broken = c.class
		}
	case c.class == "test" && nodeLike(suites): // node --test
		at.suite = titles(suites)
		if at.suite == "" {
			at.suite = c.file
		}
	case scriptFile(c.file): // mocha, bun and others with titles as the class
		at.suite = c.file
		if c.class != c.name && c.class != c.file {
			at.name = join(" > ", c.class, c.name)
		}
	case c.class == c.name: // jest-junit names both after the titles
		at.suite = ""
	case c.class == "":
		at.suite = titles(suites)
		if pytestLike(suites) { // its errors of collection have no class
			at.suite, at.broken = "", c.name
		}
	}
	if c.name == "" { // Surefire: a failure before the first test of a class
		at.broken = at.suite
		at.name = "(setup)"
	}
	return at
}

// pytest returns the node ID of a test whose file is known.
func pytest(c *junitCase) place {
	at := place{suite: c.file, name: c.name, file: c.file, once: true}
	module := strings.ReplaceAll(strings.TrimSuffix(c.file, ".py"), "/", ".")
	switch {
	case c.class == "" && c.name == module:
		at.broken = c.file
	case strings.HasPrefix(c.class, module+"."):
		at.name = strings.ReplaceAll(c.class[len(module)+1:], ".", "::") + "::" + c.name
	case c.class != module && c.class != "":
		at.suite = c.class // inherited: the file is that of the base class
	}
	return at
}

// scriptFile reports whether a name is that of a JavaScript or TypeScript file.
func scriptFile(name string) bool {
	switch path.Ext(name) {
	case ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte":
		return true
	}
	return false
}

// nodeLike reports whether a suite was written by node --test: the root has no name.
func nodeLike(suites []junitSuite) bool { return len(suites) > 0 && suites[0].name == "" }

func pytestLike(suites []junitSuite) bool {
	return len(suites) > 0 && suites[len(suites)-1].name == "pytest"
}

func titles(suites []junitSuite) string {
	names := make([]string, len(suites))
	for i := range suites {
		names[i] = suites[i].name
	}
	return join(" > ", names...)
}
