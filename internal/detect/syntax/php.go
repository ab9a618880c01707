package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

func php() Language {
	return Language{
		Name: "php", exts: []string{".php", ".phpt"},
		rules: lex.Rules{Line: []string{"//", "#"}, Block: "/*", Dollar: true, Documents: "<<<", Tag: "<?",
			Quotes: []lex.Quote{{Open: `"`, Close: `"`, Escape: '\\', Lines: true},
				{Open: "'", Close: "'", Escape: '\\', Lines: true}, {Open: "`", Close: "`", Escape: '\\', Lines: true}}},
		functions: words("function fn"), containers: words("class interface trait enum"),
		suites: words("describe"), tests: words("it test"),
		annotations: words("Test"),
		skips: words("markTestSkipped markTestIncomplete skip todo Skip RequiresPhp RequiresPhpExtension RequiresPhpunit " +
			"RequiresFunction RequiresMethod RequiresSetting RequiresOperatingSystem RequiresOperatingSystemFamily"),
		asserts: words("expect expectException expectExceptionMessage assert shouldReceive fail expectExceptionCode " +
			"addToAssertionCount"),
		throws: words("throw abort die"), handlers: words("catch"),
		testSuffixes: []string{"Test", "TestCase", "_test"}, testFolders: []string{"test", "tests"},
		marks: phpMarks(), notes: phpNotes(),
		declarations: declarations{chained: (*unit).pestChain},
		testForms: testForms{strictSuffixes: []string{"Test"}, isTest: (*unit).phpTest, inherits: (*unit).phpInherits,
			collected: func(u *unit, i int) bool {
				return !has(u.decls[i].modifiers, "private") && !has(u.decls[i].modifiers, "protected")
			},
			chainSkips: (*unit).pestSkips,
			readSkips:  func(u *unit, t *Test, d *decl, _ onSkip) { u.docRequires(t, d) }},
		functionForms: functionForms{freeMembers: true,
			public: func(_ *unit, d *decl) bool { // magic methods have no explicit callers
				return !strings.HasPrefix(d.name, "__") && (d.parent < 0 || has(d.modifiers, "public"))
			},
			asks: words("argv debug_backtrace getenv _ENV _SERVER $_ENV $_SERVER getTrace getTraceAsString class_exists " +
				"interface_exists function_exists defined get_included_files get_declared_classes get_required_files $argv")},
		assertionForms: assertionForms{isAssertion: (*unit).phpAsserts, isBare: (*unit).phpBare,
			closing: words("throws throwsIf throwsUnless"), listFirst: true},
	}
}

func phpMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false ) {", "if ( false &&"}},
		{ExitTrick, anywhere, 0.9, []string{"exit ( 0 )"}},
		{ExitTrick, inTests, 0.9, []string{"exit ( )"}},
		{ExitTrick, inTests, 0.85, []string{"exit ;", "die ( )"}},
		{ExitTrick, inTests, 0.8, []string{"register_shutdown_function ("}},
		{RunnerAsked, inCode, 0.95, []string{`defined ( "PHPUNIT_COMPOSER_INSTALL" )`,
			`class_exists ( "PHPUnit\Framework\TestCase"`}},
		{RunnerAsked, inCode, 0.8, []string{`class_exists ( TestCase :: class`}},
		{RunnerAsked, inCode, 0.85, []string{"runningUnitTests ( )", `"APP_ENV" ) === "test*"`, `"APP_ENV" ) ) === "test*"`,
			`"APP_ENV" ) == "test*"`, `"APP_ENV" ] === "test*"`, `"APP_ENV" ] == "test*"`, `environment ( "testing" )`,
			`"APP_ENV" ] ?? * ) === "test*"`, `"APP_ENV" ] ?? * ) !== "test*"`, `"APP_ENV" ) !== "test*"`,
			`"APP_ENV" ] !== "test*"`}},
		{RunnerAsked, inCode, 0.95, []string{`class_exists ( \ PHPUnit \ Framework \ TestCase`,
			`defined ( "__PHPUNIT_PHAR__" )`, `function_exists ( "it" )`, `function_exists ( "test" )`,
			`function_exists ( "expect" )`, `function_exists ( "describe" )`, `function_exists ( "beforeEach" )`}},
		{ChecksOff, inCode, 0.85, []string{"CURLOPT_SSL_VERIFYPEER , false", "CURLOPT_SSL_VERIFYPEER => false",
			`"verify_peer" => false`}},
		{ComplaintOff, inCode, 0.9, []string{"error_reporting ( 0 )"}},
		{CoverageExcluded, inCode, 0.7, []string{"CodeCoverageIgnore"}},
	}
}

func phpNotes() []commentRule {
	return sharedNotes(
		comments(CoverageExcluded, 0.6, "", "@codeCoverageIgnore"),
		comments(ComplaintOff, 0.85, "", "phpcs:ignoreFile"),
		comments(ComplaintOff, 0.6, " ", "phpcs:ignore"),
		comments(ComplaintOff, 0.7, " ", "phpcs:disable"),
		comments(ComplaintOff, 0.6, "", "@codingStandardsIgnore"),
		comments(ComplaintOff, 0.6, " ", "@phpstan-ignore", "@psalm-suppress", "@phan-suppress"),
		comments(ComplaintOff, 0.85, " ", "@phan-file-suppress"),
		comments(ComplaintOff, 0.6, "(", "@SuppressWarnings"),
		comments(ComplaintOff, 0.6, " ", "@noinspection"),
		comments(ComplaintOff, 0.6, "", "@infection-ignore-all"),
		comments(ComplaintOff, 0.6, " ", "@mago-ignore", "@mago-expect"),
	)
}

// docTest reports whether @test is in the comment before a method.
func (u *unit) docTest(d *decl) bool {
	line := u.line(d.start)
	for _, n := range u.notesBefore(line) {
		if last := int(n.Line) + strings.Count(n.S, "\n"); last < line && last >= line-2 && strings.HasPrefix(n.S, "/**") &&
			strings.Contains(n.S, "@test") {
			return true
		}
	}
	return false
}

// docRequires reads requirements in the comment before a test, such as @requires extension gd.
func (u *unit) docRequires(t *Test, d *decl) {
	line := u.line(d.start)
	for _, n := range u.notesBefore(line) {
		if last := int(n.Line) + strings.Count(n.S, "\n"); last >= line || last < line-2 ||
			!strings.Contains(n.S, "@requires") {
			continue
		}
		for _, m := range requirement().FindAllStringSubmatch(n.S, 8) {
			what, name := strings.ToLower(m[1]), strings.TrimSpace(m[2])
			w := whenReader{unit: u}
			c := platform.Condition{Language: u.lang.Name, RunsWhen: true, Text: "Requires" + what + "('" + name + "')",
				Used: w.uses(name, strings.ToLower(name), false)}
			switch what {
			case "extension":
				c.Text = "RequiresPhpExtension('" + name + "')"
			case "php":
				c.Text = "RequiresPhp('" + name + "')"
			case "os", "osfamily":
				c.Text = "RequiresOperatingSystem('" + name + "')"
			}
			s := strings.Clone(strings.TrimSpace(m[0]))
			t.Whens = append(t.Whens, When{Condition: c, Line: int(n.Line), S: s})
			if t.Skip == Runs {
				t.Skip, t.SkipLine, t.SkipText = Sometimes, int(n.Line), s
			}
		}
	}
}

var requirement = lazyregexp.New(`@requires\s+(PHP|extension|OSFAMILY|OS|function|setting)\s+([^\n*]+)`)

var docProvider = lazyregexp.New(`@dataProvider\s+(?:\w+::)?(\w+)`)

// pestSkip notes the condition in it(...)->skip(condition), if any.
func (u *unit) pestSkip(d *decl, note onSkip) bool {
	for j := d.end - 1; j > d.body; j-- {
		if u.at(j) == ")" && u.opener(j) > d.at {
			j = u.opener(j)
			if u.at(j-1) == "skip" && u.at(j-2) == "->" && u.at(j+1) != ")" && u.kindAt(j+1) != lex.Text && !u.constant(j+1) {
				note(Sometimes, j-1, u.closer(j))
				return true
			}
		}
	}
	return false
}

// pestSystems are the methods by which Pest skips tests on some systems.
var pestSystems = sync.OnceValue(wordSet("skipOnWindows skipOnMac skipOnLinux onlyOnWindows onlyOnMac onlyOnLinux " +
	"skipOnCi skipLocally"))

// pestSystem notes it(...)->skipOnLinux().
func (u *unit) pestSystem(d *decl, call string, note onSkip) {
	for j := d.end - 1; j > d.at; j-- {
		if u.at(j) == call && u.at(j-1) == "->" {
			note(Sometimes, j, j+1)
			return
		}
	}
}

// pestChain reads the calls on the result of a test of Pest: it(...)->skip().
func (u *unit) pestChain(d *decl) {
	for u.at(d.end) == "->" && u.isWord(d.end+1) {
		d.calls = append(d.calls, u.at(d.end+1))
		if u.at(d.end+1) == "with" && u.at(d.end+2) == "(" {
			d.cases = append(d.cases, u.rows(d.end+2)...)
		}
		d.end += 2
		if u.at(d.end) == "(" {
			d.end = u.closer(d.end)
		}
	}
}

// phpAsserts reports whether the word at i is an assertion about a mock or after a test of Pest.
func (u *unit) phpAsserts(i int, _ set) (asserts, decided bool) {
	if next := u.at(i + 1); u.at(i-1) != "->" || next != "(" && next != "!" && next != "<" {
		return false, false
	}
	if u.at(i) == "expects" {
		return !slices.ContainsFunc(u.tok[i:u.closer(i+1)], func(t lex.Token) bool { return t.S == "any" }), true
	}
	return true, u.lang.closing[u.at(i)] && u.at(i-2) == ")"
}

// phpBare reports whether the expectation of Pest at i has no matcher.
func (u *unit) phpBare(i, end int, alone bool) bool {
	for u.at(end) == "->" && u.isWord(end+1) && u.at(end+2) != "(" {
		end += 2
	}
	return u.at(i) == "expect" && !alone && u.at(i-1) != "->" && u.at(end) == ";"
}

// phpTest reports whether a method is a test by its name and class, or by the comment before it.
func (u *unit) phpTest(d *decl) bool {
	return d.parent >= 0 && (strings.HasPrefix(d.name, "test") && len(d.name) > 4 &&
		(u.inTests || strings.HasSuffix(u.parentName(d), "Test")) || u.docTest(d))
}

// pestSkips notes the skip of a test of Pest by a call on it, and reports whether it is one.
func (u *unit) pestSkips(d *decl, call string, note onSkip) bool {
	if pestSystems()[call] {
		u.pestSystem(d, call, note)
		return true
	}
	return call == "skip" && u.pestSkip(d, note)
}

// phpInherits reports whether a class extends another one, or is a trait, which is mixed into classes.
func (u *unit) phpInherits(class *decl) bool {
	return u.at(class.start) == "trait" || u.at(class.at-1) == "trait" ||
		anyOf(class.at, class.body, func(j int) bool { return u.at(j) == "extends" })
}
