package platform

import (
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// inUse are the oldest and the newest version of each language in use, as 100*major + minor.
var inUse = sync.OnceValue(func() map[string][2]int {
	return map[string][2]int{
		"python":     {308, 316},
		"ruby":       {300, 410},
		"php":        {800, 806},
		"java":       {800, 2700},
		"kotlin":     {800, 2700},
		"javascript": {1800, 2700},
		"typescript": {1800, 2700},
		"csharp":     {600, 1200},
		"go":         {121, 128},
		"rust":       {160, 200},
	}
})

// comparison is a comparison with the language's version.
type comparison struct {
	how            string // <, <=, >, >=, ==, !=, or begins
	version        int
	whole          bool // only the major version is given
	text           string
	oldest, newest int
}

// versionName matches the version variable before an operator and a number.
const versionName = `(?i)(?:version_info|python_version(?:_tuple)?\(\)|RUBY_VERSION|PHP_VERSION(?:_ID)?|RequiresPhp|` +
	`process\.versions?|Environment\.Version|runtime\.Version\(\)|java\.version|java_version|Runtime\.version\(\)|` +
	`node_?version|nodemajor|rustversion)`

var (
	compared = lazyregexp.New(versionName +
		`(?:\[[^\]]*\]|[\w.]|\(["'/.,v)\d]*\)|\(["']|["'])*?\)*(?:,["'])?(>=|<=|>|<|={2,3}|!==?|\bgte?\b|` +
		`\blte?\b)=?(?:Gem::Version\.new)?[("'\[]*v?(?:go)?(\d+)(?:(?:[.,]\s*|0)(\d+))?`)
	// afterwards matches comparisons such as version_compare(PHP_VERSION, "8.0", ">=").
	afterwards = lazyregexp.New(`(?i)version_compare\(PHP_VERSION,["'](\d+)(?:\.(\d+))?[^"']*["'],["'](>=|<=|>|` +
		`<|==|!=|gt|ge|lt|le|eq)["']`)
	semver  = lazyregexp.New(`(?i)\b(gte|lte|gt|lt)\(process\.versions?(?:\.node)?,["']v?(\d+)(?:\.(\d+))?`)
	atLeast = lazyregexp.New(`(?i)version(?:is)?_?at_?least\(["']?(\d+)`)
	begins  = lazyregexp.New(versionName +
		`[\w.]*\.?(?:startsWith|start_with\?|StartsWith|startswith)\(["']([^"']*)["']|HasPrefix\(runtime\.Version\(\),` +
		`"([^"]*)"`)
	jre = lazyregexp.New(`(Enabled|Disabled)(?:On|For)Jre(Range)?\((?:value=)?\{?(min=|` +
		`max=)?(?:JRE\.)?(?:JAVA_)?(\d+)`)
)

// version returns the comparison with the language's version; nil for none.
func (c *Condition) version() *comparison {
	span, ok := inUse()[c.Language]
	if !ok {
		return nil
	}
	v := &comparison{oldest: span[0], newest: span[1]}
	switch text := strings.ReplaceAll(c.Text, " ", ""); {
	case jre().MatchString(text):
		m := jre().FindStringSubmatch(text)
		v.how = map[string]string{"min=": ">=", "max=": "<="}[m[3]]
		if v.how == "" {
			v.how = "=="
		}
		return v.of(m[4], "")
	case afterwards().MatchString(text):
		m := afterwards().FindStringSubmatch(text)
		v.how = operator(m[3])
		return v.of(m[1], m[2])
	case semver().MatchString(text):
		m := semver().FindStringSubmatch(text)
		v.how = operator(m[1])
		return v.of(m[2], m[3])
	case atLeast().MatchString(text):
		v.how = ">="
		return v.of(atLeast().FindStringSubmatch(text)[1], "")
	case begins().MatchString(text):
		m := begins().FindStringSubmatch(text)
		v.how, v.text = "begins", m[1]+m[2]
		return v
	case compared().MatchString(text):
		m := compared().FindStringSubmatch(text)
		v.how = operator(m[1])
		return v.of(m[2], m[3])
	}
	return nil
}

// operator returns the operator for a sign or its name.
func operator(s string) string {
	switch strings.ToLower(s) {
	case "gte", "ge":
		return ">="
	case "lte", "le":
		return "<="
	case "gt":
		return ">"
	case "lt":
		return "<"
	case "===", "eq":
		return "=="
	case "!==":
		return "!="
	}
	return s
}

// of sets the numbers of a version: 3 and 8, 80000, 21 and nothing.
func (v *comparison) of(first, second string) *comparison {
	major, _ := strconv.Atoi(first)
	minor, _ := strconv.Atoi(second)
	v.whole = second == ""
	if len(first) >= 5 { // PHP_VERSION_ID
		major, minor, v.whole = major/10000, major/100%100, false
	}
	v.version = 100*major + minor
	return v
}

// ever reports whether it holds for all versions in use.
func (v *comparison) ever() bool {
	switch v.how {
	case ">=":
		return v.version <= v.oldest
	case ">":
		return v.version < v.oldest && !(v.whole && v.version/100 == v.oldest/100)
	case "<":
		return v.version > v.newest
	case "<=":
		return v.version >= v.newest
	case "==":
		return v.whole && v.version/100 == v.oldest/100 && v.oldest/100 == v.newest/100
	case "!=":
		return v.version < v.oldest/100*100 || v.version > v.newest
	}
	return v.text == "" || v.text == "v" || v.text == "go" || v.text == "go1" || v.text == "go1." ||
		v.oldest/100 == v.newest/100 && strings.TrimSuffix(v.text, ".") == strconv.Itoa(v.oldest/100)
}

// never reports whether it holds for no version in use.
func (v *comparison) never() bool {
	switch v.how {
	case ">=":
		return v.version > v.newest
	case ">":
		return v.version >= v.newest
	case "<":
		return v.version <= v.oldest
	case "<=":
		return v.version < v.oldest && !(v.whole && v.version/100 == v.oldest/100)
	case "==":
		return v.version+99 < v.oldest || v.version > v.newest
	case "!=":
		return v.whole && v.version/100 == v.oldest/100 && v.oldest/100 == v.newest/100
	}
	first, _, _ := strings.Cut(strings.TrimLeft(v.text, "vgo"), ".")
	n, err := strconv.Atoi(first)
	return err == nil && (n < v.oldest/100 || n > v.newest/100)
}
