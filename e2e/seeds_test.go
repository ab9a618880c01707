package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// seedStates are the states of a point in docs/seeds.md, in the order of the columns of its counts.
var seedStates = []string{"works", "in part", "differs on purpose", "missing", "not applicable"}

// TestDocsSeeds: the points are numbered without gaps, each has a known state and a proof or a
// reason, the tests and scripts that are named exist, and the counts at the top are those of the
// rows.
func TestDocsSeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range seedFaults(string(text), testFolders(t)) {
		t.Error(fault)
	}
}

// TestDocsSeedsRule: the faults of a page are found.
func TestDocsSeedsRule(t *testing.T) {
	t.Parallel()
	folders := map[string][]string{"TestOne": {"loop"}, "TestTwo": {"loop", "rlm"}}
	page := func(counts, row string) string {
		return "| All | " + counts + " |\n\n## Part\n\n| 1 | first | works | `x` | `TestOne` |\n" + row + "\n"
	}
	fine := page("2 | 2 | 0 | 0 | 0 | 0", "| 2 | second | works | `x` | `loop/TestTwo` |")
	if faults := seedFaults(fine, folders); len(faults) > 0 {
		t.Errorf("faults of a page without any: %q", faults)
	}
	for row, want := range map[string]string{
		"| 3 | second | works | `x` | `TestOne` |":                  "point 3 is in place 2",
		"| 2 | second | maybe | `x` | `TestOne` |":                  `state "maybe"`,
		"| 2 | second | works | `x` | it does |":                    "no test",
		"| 2 | second | works | `x` | `TestNone` |":                 "no TestNone",
		"| 2 | second | works | `x` | `rlm/TestOne` |":              "no rlm/TestOne",
		"| 2 | second | works | `x` | `TestTwo` |":                  "TestTwo is in loop and rlm",
		"| 2 | second | works | `x` | `none.txtar` |":               "no none.txtar",
		"| 2 | second | missing | `x` |  |":                         "no reason",
		"| 2 | second | missing | `x` | tried: nothing of it |":     "count",
		"| 2 | second | works | `x` | `TestOne` | one too many |\n": "cannot be read",
	} {
		faults := strings.Join(seedFaults(page("2 | 2 | 0 | 0 | 0 | 0", row), folders), "\n")
		if !strings.Contains(faults, want) {
			t.Errorf("%s: faults %q, want %q", row, faults, want)
		}
	}
}

// seedFaults returns what is wrong with the page; folders maps the name of each test to the
// packages that have one.
func seedFaults(text string, folders map[string][]string) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|$`)
	named := regexp.MustCompile("`((?:[a-z0-9/]+/|\\./)?Test[A-Za-z]+|[a-z_]+\\.txtar)`")
	rows := row.FindAllStringSubmatch(text, -1)
	counts := make(map[string]int)
	for i, r := range rows {
		number, state, proof := r[1], r[3], r[5]
		if number != fmt.Sprint(i+1) {
			fault("point %s is in place %d", number, i+1)
		}
		counts[state]++
		proofs := named.FindAllStringSubmatch(proof, -1)
		for _, p := range proofs {
			if why := missingProof(p[1], folders); why != "" {
				fault("point %s: %s", number, why)
			}
		}
		tried := strings.HasPrefix(proof, "tried: ") || strings.HasPrefix(proof, "measured: ")
		if state == "works" && len(proofs) == 0 && !tried {
			fault("point %s has no test", number)
		}
		if state != "works" && strings.TrimSpace(proof) == "" {
			fault("point %s has no reason", number)
		}
	}
	if lines := len(regexp.MustCompile(`(?m)^\| \d`).FindAllString(text, -1)); lines != len(rows) {
		fault("%d of %d rows cannot be read", lines-len(rows), lines)
	}
	total := fmt.Sprintf("| All | %d |", len(rows))
	for _, state := range seedStates {
		total += fmt.Sprintf(" %d |", counts[state])
		delete(counts, state)
	}
	for state := range counts {
		fault("there is no state %q", state)
	}
	if !strings.Contains(text, total+"\n") {
		fault("the count at the top is not %q", total)
	}
	return faults
}

// missingProof returns what is wrong with the name of a test or a script.
func missingProof(name string, folders map[string][]string) string {
	if strings.HasSuffix(name, ".txtar") {
		if !isScript(name) {
			return "there is no " + name
		}
		return ""
	}
	place, test := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		place, test = name[:i], name[i+1:]
	}
	found := 0
	for _, folder := range folders[test] {
		if place == "" || place == folder {
			found++
		}
	}
	switch {
	case found == 0:
		return "there is no " + name
	case found > 1:
		return name + " is in " + strings.Join(folders[test], " and ") + ": write the package before it"
	}
	return ""
}
