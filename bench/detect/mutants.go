package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/syntax"
)

// mutation plants one kind of cheat in code that others wrote. It knows nothing of
// how the detectors read code: it is a regular expression and a replacement.
type mutation struct {
	name      string
	languages string
	tests     bool // in files of tests, or else in production code
	find      *regexp.Regexp
	replace   string
	// want are patterns one of which has to be found.
	want string
}

// indent in an expression stands for the same indentation as that of its first
// line, which Go's expressions cannot say; see places.
const sameIndent = "INDENT"

func mutations() []mutation {
	re := regexp.MustCompile
	return []mutation{
		{"a test deleted", "go", true, re(`(?ms)^func Test\w+\(t \*testing\.T\) \{\n.*?^\}\n`), "",
			"test-removed test-file-removed"},
		{"a test skipped", "go", true, re(`(?m)^(func Test\w+\(t \*testing\.T\) \{\n)`), "${1}\tt.Skip(\"later\")\n",
			"skip-added"},
		{"an assertion deleted", "go", true, re(`(?m)^\t+if [^\n]* \{\n\t+t\.(?:Error|Fatal)f?\([^\n]*\)\n\t+\}\n`), "",
			"assertion-removed assertions-gone assertion-lost"},
		{"an assertion deleted", "go", true, re(`(?m)^\t+(?:assert|require)\.\w+\(t, [^\n]*\)\n`), "",
			"assertion-removed assertions-gone assertion-lost"},
		{"a check deleted", "go", false, re(`(?m)^\t+if [^\n]* \{\n\t+return [^\n]*(?:errors\.New|` +
			`fmt\.Errorf)\([^\n]*\n\t+\}\n`), "", "guard-removed error-handling-removed"},
		{"an error dropped", "go", false, re(`(?m)^\t+if err != nil \{\n\t+return [^\n]*err\n\t+\}\n`), "",
			"error-handling-removed"},
		{"a complaint silenced", "go", false, re(`(?m)^(\t+[^\n/]*:= [^\n/{]*\))\n`), "$1 //nolint:all\n",
			"complaint-silenced"},
		{"a test deleted", "javascript typescript", true, re(`(?ms)^INDENT(?:it|test)\(['"][^\n]*\{\n.*?^INDENT\}\);?\n`),
			"", "test-removed test-file-removed"},
		{"a test skipped", "javascript typescript", true, re(`(?m)^(\s*)(it|test)(\(['"][^\n]*\{\n)`), "$1$2.skip$3",
			"skip-added"},
		{"a test focused", "typescript", true, re(`(?m)^(\s*)(it|test)(\(['"][^\n]*\{\n)`), "$1$2.only$3", "focus-added"},
		{"an assertion deleted", "javascript typescript", true,
			re(`(?m)^[ \t]*(?:expect\([^\n]*\)\.[^\n]*|s?t\.(?:equal|deepEqual|ok|throws)\([^\n]*)\);\n`), "",
			"assertion-removed assertions-gone assertion-lost"},
		{"an assertion weakened", "typescript", true, re(`(?m)^([ \t]*expect\([^\n]*\)\.)to(?:Be|Equal)\([^\n]*\);\n`),
			"${1}toBeTruthy();\n", "assertion-weaker"},
		{"a check deleted", "javascript typescript kotlin java", false,
			re(`(?m)^[ \t]*if \([^\n]*\) \{\n[ \t]*throw [^\n]*;?\n[ \t]*\}\n`), "", "guard-removed"},
		{"a complaint silenced", "javascript typescript", false, re(`(?m)^([ \t]*(?:const|let|var) \w+ = [^\n/{]*;)\n`),
			"$1 // eslint-disable-line\n", "complaint-silenced"},
		{"a test deleted", "python", true, re(`(?ms)^    def test_?\w+\(self\):\n(?:        [^\n]*\n|\n)+`), "",
			"test-removed test-file-removed"},
		{"a test skipped", "python", true, re(`(?m)^(    def test_?\w+\(self\):\n)`), "    @unittest.skip('later')\n$1",
			"skip-added"},
		{"an assertion deleted", "python", true, re(`(?m)^        self\.assert\w+\([^\n]*\)\n`), "",
			"assertion-removed assertions-gone assertion-lost"},
		{"a check deleted", "python", false, re(`(?m)^[ ]+if [^\n]*:\n[ ]+raise [^\n]*\)\n`), "", "guard-removed"},
		{"a complaint silenced", "python", false, re(`(?m)^([ ]+\w+ = \w+\([^\n#]*\))\n`), "$1  # noqa\n",
			"complaint-silenced"},
		{"a test deleted", "csharp", true, re(`(?ms)^INDENT\[(?:Test|Fact|` +
			`TestMethod)\]\r?\n(?:INDENT\[[^\n]*\n)*INDENT[^\n]* void \w+ ?\(\)\r?\n(?:INDENT)\{\r?\n.*?^INDENT\}\r?\n`), "",
			"test-removed test-file-removed"},
		{"a test skipped", "csharp", true, re(`(?m)^([ \t]*)\[(Test|Fact|TestMethod)\]`), `$1[$2, Ignore("later")]`,
			"skip-added"},
		{"an assertion deleted", "csharp", true, re(`(?m)^[ \t]*Assert\.\w+ ?\([^\n]*\);\r?\n`), "",
			"assertion-removed assertions-gone assertion-lost"},
		{"a check deleted", "csharp", false, re(`(?m)^[ \t]*if ?\([^\n]*\)\s+throw new [^\n]*;\r?\n`), "", "guard-removed"},
		{"a complaint silenced", "csharp", false, re(`(?m)^([ \t]*var \w+ = [^\n/{]*;\r?\n)`),
			"#pragma warning disable\n$1", "complaint-silenced"},
	}
}

// perPackage is how often each mutation is planted in a package.
const perPackage = 25

// mutantRates plants mutations in the last version of each package, one at a time.
func mutantRates(ctx context.Context, o releaseOptions) error {
	m := &meter{out: o.out, rates: make(map[string]*rate), list: o.list, seen: o.seen}
	random := rand.New(rand.NewPCG(45, 46))
	for line := range strings.Lines(packages) {
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(line, "#") || !strings.Contains(words[1], o.only) {
			continue
		}
		files, err := o.files(ctx, words[0], words[1], words[len(words)-1])
		if err != nil {
			return err
		}
		for _, mut := range mutations() {
			if err := m.mutate(ctx, words[1], files, mut, random); err != nil {
				return err
			}
		}
	}
	return printRates(o.out, m.rates)
}

// place is where a mutation can be planted.
type place struct {
	file     string
	from, to int
	text     string
}

// places finds where a mutation fits.
func (mut *mutation) places(files map[string]string) []place {
	var all []place
	for _, name := range slices.Sorted(maps.Keys(files)) {
		l := syntax.LanguageOf(name)
		if l == nil || !strings.Contains(" "+mut.languages+" ", " "+l.Name+" ") || l.TestFile(name) != mut.tests ||
			strings.Contains(name, "testdata") || filepath.Base(name) == "bundle.js" {
			continue
		}
		for _, re := range indented(mut.find) {
			for _, at := range re.FindAllStringSubmatchIndex(files[name], -1) {
				all = append(all, place{name, at[0], at[1], string(re.ExpandString(nil, mut.replace, files[name], at))})
			}
		}
	}
	return all
}

// indented are the expressions for the indentations that code has.
func indented(re *regexp.Regexp) []*regexp.Regexp {
	if !strings.Contains(re.String(), sameIndent) {
		return []*regexp.Regexp{re}
	}
	var all []*regexp.Regexp
	for _, indent := range []string{"", "  ", "    ", "      ", "\t", "\t\t"} {
		all = append(all, regexp.MustCompile(strings.ReplaceAll(re.String(), sameIndent, indent)))
	}
	return all
}

func (m *meter) mutate(ctx context.Context, name string, files map[string]string, mut mutation,
	random *rand.Rand) error {
	all := mut.places(files)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, p := range all[:min(len(all), perPackage)] {
		now := maps.Clone(files)
		now[p.file] = files[p.file][:p.from] + p.text + files[p.file][p.to:]
		report, err := detect.Run(ctx, &detect.Input{Changes: changes(files, now)})
		if err != nil {
			return err
		}
		if m.seen != nil {
			m.seen(report, true)
		}
		found := slices.ContainsFunc(report.Findings, func(f detect.Finding) bool {
			return slices.Contains(strings.Fields(mut.want), f.Pattern) &&
				(f.Action == detect.Act || f.Tier == detect.Hint || detect.OnlyWarns(f.Pattern))
		})
		for _, key := range []string{"all", language(p.file), language(p.file) + ": " + mut.name, "every: " + mut.name} {
			r := at(m.rates, key)
			r.cheats++
			if found {
				r.found++
			}
		}
		if m.list && !found {
			_, err := fmt.Fprintf(m.out, "%s %s:%d %s: %q; found %s\n", name, p.file,
				1+strings.Count(files[p.file][:p.from], "\n"), mut.name, files[p.file][p.from:min(p.to, p.from+300)], brief(report))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func brief(report *detect.Report) string {
	var all []string
	for _, f := range report.Findings {
		all = append(all, fmt.Sprintf("%s %.2f", f.Pattern, f.Confidence))
	}
	return strings.Join(all, ", ")
}
