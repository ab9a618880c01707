package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

func ruby() Language {
	return Language{
		Name: "ruby", exts: []string{".rb", ".rake"}, shape: ends, lines: true,
		rules: lex.Rules{Line: []string{"#"}, Block: "=begin", Regex: true, Percent: true, Documents: "<<~", At: true,
			Query: true, Dollar: true,
			Quotes: []lex.Quote{{Open: `"`, Close: `"`, Escape: '\\', Lines: true, Code: "#{"},
				{Open: "'", Close: "'", Escape: '\\', Lines: true}, {Open: "`", Close: "`", Escape: '\\'}}},
		functions: words("def"), containers: words("class module"),
		suites: words("describe context feature xdescribe xcontext fdescribe fcontext shared_examples shared_context " +
			"shared_examples_for"),
		tests:   words("it specify example scenario test should xit xspecify xexample fit fspecify pending its focus"),
		skipped: words("xdescribe xcontext xit xspecify xexample pending"),
		focused: words("fdescribe fcontext fit fspecify focus"),
		skips:   words("skip pending omit"),
		asserts: words("expect assert refute should must_equal must_be wont_be wont_equal must_raise must_include " +
			"is_expected flunk expect_any_instance_of"),
		throws: words("raise abort"), handlers: words("rescue"),
		testSuffixes: []string{"_spec", "_test"}, testPrefixes: []string{"test_"},
		testFolders: []string{"spec", "test", "tests"},
		marks:       rubyMarks(), notes: rubyNotes(),
		declarations: declarations{declare: (*unit).declareEnds},
		testForms: testForms{isTest: (*unit).rubyTest, strictPrefixes: []string{"test_"},
			strictSuffixes: []string{"_spec", "_test"}, inherits: (*unit).rubyInherits, braceLists: true,
			collected: func(u *unit, i int) bool { return !has(u.decls[i].modifiers, "private") && !u.shadowed(i) },
			skipsAt: func(u *unit, _ *decl, i int) (s Skipping, decided bool) {
				return Runs, !u.lang.skips[u.at(i)] || !u.tok[i].First && !rubyBegins()[u.at(i-1)] || u.at(i+1) == "=" ||
					u.at(i-1) == "."
			},
			readSkips: (*unit).metadata},
		functionForms: functionForms{lastValue: true,
			public: func(_ *unit, d *decl) bool {
				return !has(d.modifiers, "private") && !strings.HasPrefix(d.name, "_")
			},
			asks: words("$0 $PROGRAM_NAME caller caller_locations $LOADED_FEATURES ENV $ARGV ARGV loaded_specs " +
				"const_defined? defined?")},
		assertionForms: assertionForms{isAssertion: (*unit).rubyAsserts, isBare: (*unit).rubyBare,
			loses: (*unit).rescuesFailure},
	}
}

func rubyMarks() []markRule {
	return []markRule{
		{ExitTrick, anywhere, 0.9, []string{"exit! 0", "exit ( 0 )", "exit 0"}},
		{ExitTrick, inTests, 0.85, []string{"exit!"}},
		{ExitTrick, inTests, 0.9, []string{"exit ( true )"}},
		{ExitTrick, inTests, 0.7, []string{"at_exit"}},
		{HookForged, inTests, 0.85, []string{"def assert_equal ("}},
		{HookForged, inTests, 0.7, []string{"def assert (", "module Minitest : : Assertions"}},
		{HookForged, inTests, 0.85, []string{"def assert_raises ("}},
		{RunnerAsked, inCode, 0.9, []string{"defined? ( Test :: Unit", "defined? ( :: Minitest )", "defined? Minitest",
			"defined? ( RSpec )", "defined? ( Minitest )", "defined? ( :: RSpec )", "defined? RSpec",
			"const_defined? ( : Minitest )", "const_defined? ( : RSpec )", `const_defined? ( "Minitest" )`,
			`const_defined? ( "RSpec" )`}},
		{RunnerAsked, inCode, 0.85, []string{"Rails . env . test?", `ENV [ "RAILS_ENV" ] == "test"`,
			`ENV [ "RACK_ENV" ] == "test"`, `ENV . fetch ( "RAILS_ENV" ) == "test"`, `ENV . fetch ( "RACK_ENV" ) == "test"`}},
		{ChecksOff, inCode, 0.85, []string{"VERIFY_NONE", "skip_before_action : verify_authenticity_token", ". permit!",
			"save ( validate : false )"}},
	}
}

func rubyNotes() []commentRule {
	return sharedNotes(
		comments(CoverageExcluded, 0.6, "", ":nocov:", "nocov"),
		comments(ComplaintOff, 0.6, " ", "rubocop:disable", "rubocop:todo", "brakeman:ignore", "steep:ignore",
			"standard:disable", "reek:ignore"),
		comments(ComplaintOff, 0.6, "", "typed: false", "typed: ignore"),
	)
}

// blocksToEnd notes the end of each Ruby block in match.
func (u *unit) blocksToEnd() {
	var open []int32
	loop := int32(-1) // the line of a while, whose do opens no block
	for i := range u.tok {
		t := &u.tok[i]
		if t.Kind != lex.Word || u.at(i-1) == "." || u.at(i-1) == "&." || u.symbol(i) {
			continue
		}
		switch t.S {
		case "def":
			open = u.leftOpen(open, i)
			if !u.endless(i) {
				open = append(open, small(i))
			}
		case "class", "module", "begin", "case":
			open = append(open, small(i))
		case "do":
			if t.Line != loop {
				open = append(open, small(i))
			}
			loop = -1
		case "if", "unless", "while", "until", "for":
			if u.begins(i) {
				open = append(open, small(i))
				if t.S != "if" && t.S != "unless" {
					loop = t.Line
				}
			}
		case "end":
			open = u.notOfThis(open, i)
			if len(open) > 0 {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				u.match[last], u.match[i] = small(i), last
			}
		}
	}
}

// leftOpen drops open blocks that must have ended before the method at i, by their indentation.
// Something in them was not understood.
func (u *unit) leftOpen(open []int32, i int) []int32 {
	if !u.tok[i].First {
		return open
	}
	for n := len(open) - 1; n >= max(0, len(open)-maxNested); n-- {
		o := int(open[n])
		if u.at(o) == "class" || u.at(o) == "module" || u.margin(o) < u.tok[i].Col {
			return open
		}
		if u.at(o) == "def" {
			for _, left := range open[n:] {
				u.match[left] = small(i - 1)
			}
			return open[:n]
		}
	}
	return open
}

// notOfThis drops open blocks that do not belong to the end at i, by their indentation.
func (u *unit) notOfThis(open []int32, i int) []int32 {
	if !u.tok[i].First {
		return open
	}
	for n := len(open) - 1; n >= max(0, len(open)-maxNested); n-- {
		if o := int(open[n]); u.margin(o) == u.tok[i].Col || u.tok[o].Col == u.tok[i].Col {
			return open[:n+1]
		}
	}
	return open
}

// margin returns the column in which the line of the token at i begins.
func (u *unit) margin(i int) int32 {
	for n := i; n > max(0, i-maxBlock); n-- {
		if u.tok[n].First {
			return u.tok[n].Col
		}
	}
	return u.tok[i].Col
}

// symbol reports whether a word is part of :word or word:.
func (u *unit) symbol(i int) bool {
	t := &u.tok[i]
	end := int(t.Off) + len(t.S)
	before := t.Off > 0 && u.src[t.Off-1] == ':' && (t.Off < 2 || u.src[t.Off-2] != ':')
	return before || end+1 < len(u.src) && u.src[end] == ':' && u.src[end+1] != ':'
}

var blockWords = sync.OnceValue(wordSet("else then do and or return begin ensure"))

// begins reports whether the keyword at i begins a statement, unlike a trailing if.
func (u *unit) begins(i int) bool {
	if u.tok[i].First || i == 0 {
		return true
	}
	before := &u.tok[i-1]
	if before.Kind == lex.Op {
		return before.S != ")" && before.S != "]" && before.S != "}"
	}
	return before.Kind == lex.Word && blockWords()[before.S]
}

// endless reports whether the method at i is of the form def name = value.
func (u *unit) endless(i int) bool {
	j := i + 1
	for u.isWord(j) && u.at(j+1) == "." {
		j += 2
	}
	j++
	if u.at(j) == "(" {
		j = u.closer(j)
	}
	return u.at(j) == "=" && j < len(u.tok) && u.tok[j].Line == u.tok[i].Line && u.src[u.tok[j].Off-1] == ' '
}

// declareEnds finds the declarations of Ruby.
func (u *unit) declareEnds() {
	u.blocksToEnd()
	private := false
	for i := range u.tok {
		t := &u.tok[i]
		if t.Kind != lex.Word || u.at(i-1) == "." || u.symbol(i) {
			continue
		}
		switch t.S {
		case "define_method":
			u.definedMethod(i)
		case "def", "class", "module":
			if t.S != "def" {
				private = false
			}
			u.declareRuby(i, private || u.at(i-1) == "private" && t.S == "def")
		case "private", "protected", "public":
			if t.First && (i+1 >= len(u.tok) || u.tok[i+1].First) {
				private = t.S != "public"
			}
			if t.S != "public" {
				u.hide(i)
			}
		}
	}
}

// definedMethod reads the method with a literal name that the call at i defines.
func (u *unit) definedMethod(i int) {
	name := i + 1
	for u.at(name) == "(" || u.at(name) == ":" {
		name++
	}
	title := strings.TrimPrefix(lex.Unquote(strings.TrimPrefix(u.at(name), ":")), ":")
	if !strings.HasPrefix(title, "test_") {
		return
	}
	for j := name + 1; j < len(u.tok) && u.tok[j].Line == u.tok[i].Line; j++ {
		if (u.at(j) == "do" || u.at(j) == "{") && u.match[j] > small(j) {
			u.decls = append(u.decls, decl{kind: declFunction, name: strings.Clone(title), at: name, start: i, body: j + 1,
				end: int(u.match[j]) + 1})
			return
		}
	}
}

// hide makes the methods private whose names follow the word at i.
func (u *unit) hide(i int) {
	end := u.lineEnd(i)
	for j := i + 1; j < end; j++ {
		if !u.symbol(j) {
			continue
		}
		for k := range u.decls {
			if d := &u.decls[k]; d.name == strings.TrimPrefix(u.at(j), ":") && d.kind == declFunction {
				d.modifiers = append(d.modifiers, "private")
			}
		}
	}
}

func (u *unit) declareRuby(i int, private bool) {
	at := i + 1
	for u.isWord(at) && (u.at(at+1) == "." || u.at(at+1) == "::") {
		at += 2
	}
	name := u.at(at)
	if u.kindAt(at) == lex.Op && u.at(i) != "def" || name == "" {
		return
	}
	d := decl{kind: declFunction, name: name, at: at, start: i, body: min(at+1, len(u.tok)), end: u.lineEnd(at)}
	if m := u.match[i]; m > int32(i) {
		d.end = int(m) + 1
	}
	if u.at(at+1) == "(" && u.at(i) == "def" {
		d.body = u.closer(at + 1)
	}
	if u.at(i) != "def" {
		d.kind = DeclContainer
	}
	if private {
		d.modifiers = []string{"private"}
	}
	u.decls = append(u.decls, d)
}

// rubyCall reads the title and the block of a call whose words end before j.
func (u *unit) rubyCall(d *decl, j int) {
	line := u.tok[d.at].Line
	if d.at > 0 && !u.tok[d.at].First && u.at(d.at-1) != "." && u.at(d.at-1) != "focus" {
		return
	}
	if u.at(j) == "(" {
		j++
	}
	from := j
	for j < len(u.tok) && (u.tok[j].Line == line || u.at(j-1) == "," || u.kindAt(j) == lex.Text) {
		if u.match[j] <= small(j) || u.at(j) != "do" && (u.at(j) != "{" || j <= d.at || u.at(j-1) == ",") {
			j++
			continue
		}
		d.body, d.end = j+1, int(u.match[j])+1
		if u.kindAt(from) == lex.Text {
			d.name = strings.Clone(lex.Unquote(u.at(from)))
		} else {
			d.name = u.text(from, j)
		}
		if d.name == "" { // it { is_expected.to ... }
			d.name = u.text(d.body, d.end-1)
		}
		u.decls = append(u.decls, *d)
		if d.kind == declTest {
			u.inside = max(u.inside, d.end)
		}
		return
	}
	if d.kind == declTest && u.kindAt(from) == lex.Text && d.at >= u.inside { // no block: pending
		d.name, d.body, d.end = strings.Clone(lex.Unquote(u.at(from))), from+1, max(u.lineEnd(d.at), from+1)
		d.calls = append(d.calls, "pending")
		u.decls = append(u.decls, *d)
	}
}

// rubyBegins are tokens after which a statement begins.
var rubyBegins = sync.OnceValue(wordSet("{ do | ; = then"))

var rubyMatchers = sync.OnceValue(wordSet("to not_to to_not"))

// metadata reads the options between the title of an RSpec group or example and its block.
func (u *unit) metadata(t *Test, d *decl, note onSkip) {
	if d.kind != declTest && d.kind != declSuite {
		return
	}
	for j := d.at + 1; j < d.body-1; j++ {
		if !u.isWord(j) || !u.symbol(j) || u.at(j+1) == "false" || u.at(j+2) == "false" {
			continue
		}
		switch u.at(j) {
		case "if", "unless":
			if u.at(j+1) != "true" {
				u.noteDeclared(j, d.body-1, note)
			}
		case "skip", "pending":
			note(Always, d.at, d.body)
		case "focus":
			t.Focus = true
		}
	}
}

// blockAround returns the Ruby if or unless after from around a declaration; 0 for none.
func (u *unit) blockAround(d *decl, from int) int {
	for j := d.start - 1; j > max(from, d.start-maxSteps); j-- {
		if s := u.at(j); (s == "if" || s == "unless") && u.tok[j].First && int(u.match[j]) >= d.end-1 {
			return j
		}
	}
	return 0
}

// rescueEnd returns the end of a Ruby handler whose body begins at from.
func (u *unit) rescueEnd(from int) int {
	to := from
	for to < min(len(u.tok), from+maxBlock) {
		switch s := u.at(to); {
		case u.tok[to].First && (s == "end" || s == "ensure" || s == "rescue" || s == "else"):
			return to
		case u.match[to] > small(to):
			to = int(u.match[to]) + 1
		default:
			to++
		}
	}
	return min(to, len(u.tok))
}

// rubyAsserts reports whether the word at i is an assertion.
func (u *unit) rubyAsserts(i int, helpers set) (asserts, decided bool) {
	s, begins := u.at(i), u.tok[i].First || rubyBegins()[u.at(i-1)]
	switch {
	case u.lang.asserts[s] && (begins || u.at(i-1) == ".") && u.at(i+1) != "=" && !u.symbol(i):
		return true, true
	case strings.HasPrefix(s, "must_") || strings.HasPrefix(s, "wont_"):
		return true, true
	}
	return begins && (strings.HasPrefix(s, "assert_") || strings.HasPrefix(s, "refute_") || helpers[s]), true
}

// rubyBare reports whether the assertion at i has no matcher.
func (u *unit) rubyBare(i, end int, alone bool) bool {
	if u.at(end) == "." && rubyMatchers()[u.at(end+1)] {
		end += 2
		alone = false
	}
	s := u.at(i)
	return (s == "expect" && !alone || s == "is_expected" || s == "should" && u.at(i-1) == ".") && u.endsStatement(end)
}

// rescuesFailure reports whether the rescue at i, after an assertion on its line, drops its failure.
func (u *unit) rescuesFailure(i, _ int) bool {
	if u.at(i) != "rescue" || u.tok[i].First {
		return false
	}
	h := u.handlerAt(i)
	return h != nil && h.Dropped && u.assertsWithin(u.chainBegin(i), i, nil)
}

// rubyTest reports whether a function is a test by its name and class.
func (u *unit) rubyTest(d *decl) bool {
	return strings.HasPrefix(d.name, "test_") && d.parent >= 0 && (u.inTests || strings.Contains(u.parentName(d), "Test"))
}

// rubyInherits reports whether a class has a base class, or is a module, which is mixed into classes.
func (u *unit) rubyInherits(class *decl) bool {
	return u.at(class.at-1) != "class" || u.at(class.at+1) == "<" ||
		anyOf(class.body, min(class.end, class.body+20), func(j int) bool { return u.at(j) == "include" })
}
