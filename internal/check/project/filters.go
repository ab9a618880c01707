package project

import (
	"regexp"
	"slices"
	"strings"
)

// goFilter selects top-level tests, because alternatives cannot be given for each depth
// of subtests.
func goFilter(fresh string, tests []Test) []string {
	var names []string
	for _, t := range tests {
		name, _, _ := strings.Cut(t.Name, "/")
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		names = append(names, regexp.QuoteMeta(name))
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fresh, "-run=^(" + strings.Join(distinct(names), "|") + ")$"}
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// pytestValued reports whether an option of pytest may have its value as a separate
// argument.
func pytestValued(flag string) bool {
	switch flag {
	case "-k", "-m", "-c", "-p", "-o", "-W", "-n", "-r", "--maxfail", "--tb", "--rootdir", "--confcutdir", "--ignore",
		"--ignore-glob",
		"--deselect", "--durations", "--durations-min", "--junitxml", "--junit-xml", "--junit-prefix", "--cov-report",
		"--cov-config",
		"--cov-fail-under", "--basetemp", "--import-mode", "--log-level", "--log-cli-level", "--log-file", "--color",
		"--config-file",
		"--override-ini", "--numprocesses", "--dist", "--timeout", "--reruns", "--reruns-delay", "--ds", "--dc",
		"--pythonwarnings",
		"--capture", "--verbosity", "--lfnf", "--last-failed-no-failures", "--code-highlight", "--pdbcls", "--html",
		"--seed", "--randomly-seed":
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
func pytestFilter(tests []Test) []string {
	var ids []string
	for _, t := range tests {
		if t.File != "" && strings.HasPrefix(t.ID, t.File+"::") {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// titleFilter selects tests for runners that match a pattern against all titles, joined
// by blanks.
func titleFilter(flag string) func([]Test) []string {
	return func(tests []Test) []string {
		var titles []string
		for _, t := range tests {
			titles = append(titles, regexp.QuoteMeta(strings.ReplaceAll(t.Name, " > ", " ")))
		}
		return []string{flag, "^(" + strings.Join(distinct(titles), "|") + ")$"}
	}
}

func cargoFilter(dashes bool, tests []Test) []string {
	var args []string
	for _, t := range tests {
		if !strings.HasPrefix(t.Suite, "doc ") { // their names carry line numbers
			args = append(args, t.Name)
		}
	}
	if len(args) == 0 {
		return nil
	}
	args = append([]string{"--exact"}, distinct(args)...)
	if dashes {
		args = append([]string{"--"}, args...)
	}
	return args
}

func nextestFilter(tests []Test) []string {
	var names []string
	for _, t := range tests {
		if !strings.ContainsAny(t.Name, "() \\") { // needs escaping in its expressions
			names = append(names, "test(="+t.Name+")")
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"-E", strings.Join(distinct(names), " | ")}
}

// method returns the name of a method without parameters and their index.
func method(name string) string {
	if i := strings.IndexAny(name, "([{ "); i >= 0 {
		name = name[:i]
	}
	return name
}

func mavenFilter(tests []Test) []string {
	var names []string
	for _, t := range tests {
		if t.Suite != "" && method(t.Name) != "" {
			names = append(names, t.Suite+"#"+method(t.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"-Dtest=" + strings.Join(distinct(names), ","), "-Dsurefire.failIfNoSpecifiedTests=false",
		"-DfailIfNoTests=false"}
}

func gradleFilter(tests []Test) []string {
	var names []string
	for _, t := range tests {
		if t.Suite != "" && method(t.Name) != "" {
			names = append(names, t.Suite+"."+method(t.Name))
		}
	}
	var args []string
	for _, name := range distinct(names) {
		args = append(args, "--tests", name)
	}
	return args
}

func rspecFilter(tests []Test) []string {
	var args []string
	for _, t := range tests {
		args = append(args, "--example", t.Name)
	}
	return args
}

func phpunitFilter(tests []Test) []string {
	var names []string
	for _, t := range tests {
		name, _, _ := strings.Cut(t.Name, " with data set ")
		names = append(names, regexp.QuoteMeta(t.Suite+"::"+name))
	}
	return []string{"--filter", `/(^|\\)(` + strings.Join(distinct(names), "|") + `)( |$)/`}
}

func dotnetFilter(tests []Test) []string {
	var names []string
	for _, t := range tests {
		if t.Suite != "" && method(t.Name) != "" {
			names = append(names, "FullyQualifiedName="+t.Suite+"."+method(t.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"--filter", strings.Join(distinct(names), "|")}
}
