package project

import (
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/testreport"
)

// goFilter selects top-level tests, because alternatives cannot be given for each depth
// of subtests.
func goFilter(tests []testreport.Test) []string {
	names := distinct(tests, func(t *testreport.Test) string {
		name, _, _ := strings.Cut(t.Name, "/")
		if strings.HasPrefix(name, "Benchmark") {
			return ""
		}
		return regexp.QuoteMeta(name)
	})
	if len(names) == 0 {
		return nil
	}
	return []string{"-count=1", "-run=^(" + strings.Join(names, "|") + ")$"}
}

// distinct returns the results of a function for the tests, sorted, without empty ones and
// repetitions.
func distinct(tests []testreport.Test, of func(t *testreport.Test) string) []string {
	var names []string
	for i := range tests {
		if name := of(&tests[i]); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pytestValued reports whether an option of pytest may have its value as a separate
// argument.
func pytestValued(flag string) bool {
	switch flag {
	case "-k", "-m", "-c", "-p", "-o", "-W", "-n", "-r", "--maxfail", "--tb", "--rootdir", "--confcutdir", "--ignore",
		"--ignore-glob", "--deselect", "--durations", "--durations-min", "--junitxml", "--junit-xml", "--junit-prefix",
		"--cov-report", "--cov-config", "--cov-fail-under", "--basetemp", "--import-mode", "--log-level",
		"--log-cli-level", "--log-file", "--color", "--config-file", "--override-ini", "--numprocesses", "--dist",
		"--timeout", "--reruns", "--reruns-delay", "--ds", "--dc", "--pythonwarnings", "--capture", "--verbosity",
		"--lfnf", "--last-failed-no-failures", "--code-highlight", "--pdbcls", "--html", "--seed", "--randomly-seed":
		return true
	}
	return false
}

// pytestPositional returns the arguments that select files and tests.
func pytestPositional(c *call) []word {
	var all []word
	for i := 1; i < len(c.words); i++ {
		switch w := c.words[i]; {
		case w.text == "--":
		case pytestValued(w.text):
			i++
		case !strings.HasPrefix(w.text, "-"):
			all = append(all, w)
		}
	}
	return all
}

// pytestFilter selects tests by node ID; a test without a known file has none.
func pytestFilter(tests []testreport.Test) []string {
	return distinct(tests, func(t *testreport.Test) string {
		if t.File == "" || !strings.HasPrefix(t.ID, t.File+"::") {
			return ""
		}
		return t.ID
	})
}

// titleFilter selects tests for runners that match a pattern against all titles, joined
// by blanks.
func titleFilter(flag string) func([]testreport.Test) []string {
	return func(tests []testreport.Test) []string {
		titles := distinct(tests, func(t *testreport.Test) string {
			return regexp.QuoteMeta(strings.ReplaceAll(t.Name, " > ", " "))
		})
		return []string{flag, "^(" + strings.Join(titles, "|") + ")$"}
	}
}

func cargoFilter(dashes bool, tests []testreport.Test) []string {
	args := distinct(tests, func(t *testreport.Test) string {
		if strings.HasPrefix(t.Suite, "doc ") {
			return "" // the names carry line numbers
		}
		return t.Name
	})
	switch {
	case len(args) == 0:
		return nil
	case dashes:
		return append([]string{"--", "--exact"}, args...)
	}
	return append([]string{"--exact"}, args...)
}

func nextestFilter(tests []testreport.Test) []string {
	names := distinct(tests, func(t *testreport.Test) string {
		if strings.ContainsAny(t.Name, "() \\") {
			return "" // the expressions would need escaping
		}
		return "test(=" + t.Name + ")"
	})
	if len(names) == 0 {
		return nil
	}
	return []string{"-E", strings.Join(names, " | ")}
}

// methods returns the suites and methods of the tests, joined by sep, without the
// parameters of the methods and their index.
func methods(tests []testreport.Test, sep string) []string {
	return distinct(tests, func(t *testreport.Test) string {
		method := t.Name
		if i := strings.IndexAny(method, "([{ "); i >= 0 {
			method = method[:i]
		}
		if t.Suite == "" || method == "" {
			return ""
		}
		return t.Suite + sep + method
	})
}

func mavenFilter(tests []testreport.Test) []string {
	names := methods(tests, "#")
	if len(names) == 0 {
		return nil
	}
	return []string{"-Dtest=" + strings.Join(names, ","), "-Dsurefire.failIfNoSpecifiedTests=false",
		"-DfailIfNoTests=false"}
}

func gradleFilter(tests []testreport.Test) []string {
	var args []string
	for _, name := range methods(tests, ".") {
		args = append(args, "--tests", name)
	}
	return args
}

func rspecFilter(tests []testreport.Test) []string {
	var args []string
	for i := range tests {
		args = append(args, "--example", tests[i].Name)
	}
	return args
}

func phpunitFilter(tests []testreport.Test) []string {
	names := distinct(tests, func(t *testreport.Test) string {
		name, _, _ := strings.Cut(t.Name, " with data set ")
		return regexp.QuoteMeta(t.Suite + "::" + name)
	})
	return []string{"--filter", `/(^|\\)(` + strings.Join(names, "|") + `)( |$)/`}
}

func dotnetFilter(tests []testreport.Test) []string {
	names := methods(tests, ".")
	if len(names) == 0 {
		return nil
	}
	const property = "FullyQualifiedName="
	return []string{"--filter", property + strings.Join(names, "|"+property)}
}
