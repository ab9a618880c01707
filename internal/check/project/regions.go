package project

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// checkingLine is a line of a manifest about checking, and the target, task or plugin
// that contains it; empty for none.
type checkingLine struct {
	text, region string
}

func regionsOf(lines []checkingLine) map[string]bool {
	all := make(map[string]bool)
	for _, l := range lines {
		all[l.region] = true
	}
	return all
}

// regionForm describes how a kind of manifest groups lines into regions.
type regionForm struct {
	// opens matches the begin of a region that checks. It ends at the next line with the
	// same indentation, or with the line that closes it.
	opens *regexp.Regexp
	// braces, or closes, end it, and not the indentation.
	braces bool
	closes string
	// targets are named by the text before the colon.
	targets bool
}

// regionForms are the forms of manifests by their name; see formOf.
var regionForms = sync.OnceValue(func() map[string]regionForm {
	target := regexp.MustCompile(
		`(?i)^\s*@?["']?([a-z0-9_./%-]*[^a-z])?(tests?|check|lint|cover(age)?|ci|verify|validate|specs?|e2e|` +
			`unit)([^a-z=][^=:]*)?["']?:([^=]|$)`)
	return map[string]regionForm{
		"make": {opens: target, targets: true},
		"task": {opens: target, targets: true},
		"rake": {opens: regexp.MustCompile(`(?i)(TestTask|RakeTask|task\b.*(test|spec|check|lint|cop)).*\bdo\b`)},
		"gradle": {opens: regexp.MustCompile(
			`(?i)(^|[^a-z])(test[a-z]*|[a-z]+Test|jacoco[a-z]*|kover[a-z]*|detekt|checkstyle|lint[a-z]*|pitest|` +
				`useJUnit[a-z]*)([^a-z].*)?\{\s*$`), braces: true},
		"script": {opens: regexp.MustCompile(`(?i)(^|[^a-z])["']?test["']?\s*:\s*\{`), braces: true},
		"pom":    {opens: regexp.MustCompile(`<plugin>\s*$`), closes: "</plugin>"},
	}
})

// formOf returns the form of a manifest by its name; the zero form for those without
// regions.
func formOf(name string) (kind string, form regionForm) {
	base := strings.ToLower(path.Base(name))
	switch {
	case base == "makefile" || base == "gnumakefile" || base == "justfile":
		kind = "make"
	case base == "taskfile.yml":
		kind = "task"
	case base == "rakefile":
		kind = "rake"
	case strings.Contains(base, ".gradle"):
		kind = "gradle"
	case strings.HasPrefix(base, "vite.config"):
		kind = "script"
	case base == "pom.xml":
		kind = "pom"
	}
	return kind, regionForms()[kind]
}

var (
	// checkingPlugin matches Maven plugins that check.
	checkingPlugin = lazyregexp.New(`<artifactId>[^<]*(surefire|failsafe|jacoco|checkstyle|spotbugs|pmd|pitest|detekt|` +
		`enforcer|test)[^<]*</artifactId>`)
	// dependencyLine matches lines that name a dependency with a version.
	dependencyLine = lazyregexp.New(`(?i)^(<(groupId|version|artifactId|scope|classifier|type|optional)>|` +
		`[a-z]*(implementation|api|compileOnly|runtimeOnly|annotationProcessor|kapt|ksp|classpath|debugImplementation)[ ` +
		`(]["'a-z(]|id[ (]["']|alias\(|mavenBom|\.PHONY|[#*]|//|<!--)`)
	// harmlessLine matches settings of output and memory.
	harmlessLine = lazyregexp.New(`(?i)^[\]})(\s;,]*$|^(end|</?\w+>|testLogging\b.*|events?[ (].*|exceptionFormat.*|` +
		`show\w+ *=.*|(max|min)HeapSize.*|maxParallelForks.*|forkEvery.*|jvmArgs.*|t\.(verbose|warning) *=.*|desc .*|` +
		`@?echo .*)$`)
	// packageVersion matches the version of a package that a project refers to.
	packageVersion = lazyregexp.New(`\s+Version="[^"]*"`)
)

// checkingLines returns the lines of a manifest about checking.
func checkingLines(name string, text []byte) []checkingLine {
	kind, form := formOf(name)
	lines := strings.Split(string(text), "\n")
	var all []checkingLine
	end, region, foreign := 0, "", 0
	for i, line := range lines {
		if form.opens != nil && i >= end {
			region = ""
			if form.opens.MatchString(line) {
				if to := regionEnd(form, lines, i); kind != "pom" || checkingPlugin().MatchString(strings.Join(lines[i:to], "\n")) {
					end, region = to, regionName(kind, lines[i:to])
				}
			}
		}
		line = strings.TrimSpace(line)
		foreign += opened(line)
		if line == "" || foreign > 0 || harmlessLine().MatchString(line) || dependencyLine().MatchString(line) {
			continue
		}
		if region != "" || checkingWord().MatchString(line) || kind == "rake" && strings.HasPrefix(line, "task ") &&
			strings.Contains(line, "default") {
			all = append(all, checkingLine{packageVersion().ReplaceAllString(line, ""), targetOf(form, region)})
		}
	}
	return all
}

// opened counts the dependency lists of Maven that a line opens and closes; they are no
// configuration.
func opened(line string) int {
	switch {
	case strings.HasPrefix(line, "<dependency>"):
		return 1 - strings.Count(line, "</dependency>")
	case strings.HasPrefix(line, "</dependency>"):
		return -1
	}
	return 0
}

// targetOf returns the region if a new one of its kind removes nothing from the others.
func targetOf(form regionForm, region string) string {
	if form.targets {
		return region
	}
	return ""
}

// regionName returns the name of a region.
func regionName(kind string, lines []string) string {
	if kind == "pom" {
		return checkingPlugin().FindString(strings.Join(lines, "\n"))
	}
	name, _, _ := strings.Cut(strings.TrimSpace(lines[0]), ":")
	return strings.TrimLeft(name, "@") + ":"
}

// regionEnd returns the line after the region that begins at line i.
func regionEnd(form regionForm, lines []string, i int) int {
	margin, deep := indent(lines[i]), 0
	for j := i; j < len(lines); j++ {
		if form.braces {
			deep += strings.Count(lines[j], "{") - strings.Count(lines[j], "}")
			if deep <= 0 {
				return j + 1
			}
			continue
		}
		if form.closes != "" {
			if strings.Contains(lines[j], form.closes) {
				return j + 1
			}
			continue
		}
		if j > i && strings.TrimSpace(lines[j]) != "" && indent(lines[j]) <= margin {
			return j
		}
	}
	return len(lines)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// addsOnly reports whether a new line cannot remove a check: an additional project or
// package.
func addsOnly(name, line string) bool {
	switch base := strings.ToLower(path.Base(name)); {
	case strings.HasSuffix(base, ".sln"), strings.HasPrefix(base, "settings.gradle"):
		return true
	}
	return strings.HasPrefix(line, "<PackageReference") || strings.HasPrefix(line, "<ProjectReference")
}
