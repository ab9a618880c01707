package syntax

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// The patterns of marks.
const (
	CoverageExcluded = "coverage-excluded"
	RunnerAsked      = "test-runner-asked"
	ChecksOff        = "checks-off"
	ExitTrick        = "exit-trick"
	HookForged       = "runner-hook-forged"
	ExitIgnored      = "exit-ignored"
	ErrorSwallowed   = "error-swallowed"
	ComplaintOff     = "complaint-silenced"
	LooseType        = "type-loosened"
	FlagOff          = "flag-off"
	OpenEnds         = "open-ends"
	GuardVoid        = "guard-removed" // its condition never holds, or always
)

// markPlace is the code in which a mark counts.
type markPlace uint8

// The places.
const (
	anywhere markPlace = iota
	inCode
	inTests
)

// markRule matches sequences of tokens, which blanks separate. A quoted word is a string, or a prefix
// of one if it ends in a star; * is any token.
type markRule struct {
	Pattern    string
	Where      markPlace
	Confidence float64
	Sequences  []string
}

// commentRule is a part of a comment.
type commentRule struct {
	Pattern, S string
	Confidence float64
	// Named are the characters before the names of the rules that the comment suppresses; empty
	// when it cannot name one.
	Named string
	// Off is set when it counts only with a 0 or an off after the name of a rule.
	Off bool
}

// The tables of marks. A confidence of 0.6 warns in standard mode; marks about a line of the
// baseline are raised to certainty when findings are made.

// sharedNotes returns the rules of a language and those of all languages.
func sharedNotes(more ...[]commentRule) []commentRule {
	return slices.Concat(append(more,
		comments(CoverageExcluded, 0.6, "", "LCOV_EXCL"),
		comments(ComplaintOff, 0.6, "", "NOSONAR"),
		comments(ComplaintOff, 0.6, ":", "nosemgrep"),
		comments(ComplaintOff, 0.6, "[", "codeql[", "lgtm["),
		comments(ComplaintOff, 0.6, " ", "DevSkim: ignore"))...)
}

// comments returns a rule for each text.
func comments(pattern string, confidence float64, named string, texts ...string) []commentRule {
	var all []commentRule
	for _, s := range texts {
		all = append(all, commentRule{Pattern: pattern, S: s, Confidence: confidence, Named: named})
	}
	return all
}

// compiledMark is a rule with its tokens split.
type compiledMark struct {
	*markRule
	parts []string
}

// markTable has the rules of a language by the hash of the first token.
type markTable struct {
	first   sieve
	byFirst map[uint32][]compiledMark
}

// compileMarks makes the table of some rules.
func compileMarks(rules []markRule) func() *markTable {
	return sync.OnceValue(func() *markTable {
		t := &markTable{byFirst: make(map[uint32][]compiledMark)}
		for n := range rules {
			for _, sequence := range rules[n].Sequences {
				parts := strings.Fields(sequence)
				h := Hash(parts[0])
				if parts[0][0] == '"' {
					h = lex.TextHash(strings.Trim(parts[0], `"`))
				}
				t.first.add(h)
				t.byFirst[h] = append(t.byFirst[h], compiledMark{&rules[n], parts})
			}
		}
		return t
	})
}

// readMarks finds the marks of the language's tables.
func (u *unit) readMarks(m *Model) {
	rules := u.lang.compiled()
	tests := u.testLines()
	for i := range u.tok {
		t := &u.tok[i]
		first := t.Meaning()
		if !rules.first.may(first) {
			continue
		}
		for _, rule := range rules.byFirst[first] {
			if !u.follows(i, rule.parts) || rule.Where == inCode && tests(i) || rule.Where == inTests &&
				!tests(i) {
				continue
			}
			h := uint64(1)
			for j := i; j >= 0 && u.tok[j].Line == t.Line; j-- {
				h = mixHash(h, u.tok[j].Hash)
			}
			mark := Mark{Pattern: rule.Pattern, Line: u.line(i), S: u.lineText(i), Key: h,
				Target: u.target(i, len(rule.parts)), Confidence: rule.Confidence, Why: u.why(u.line(i))}
			if rule.Pattern == ComplaintOff || rule.Pattern == CoverageExcluded {
				mark.Silence, mark.About = u.silenceAt(i), u.lineText(u.targetAt(i, len(rule.parts)))
				mark.Silence.Words = max(mark.Silence.Words, u.trailingWords(mark.Line))
			}
			switch {
			case rule.Pattern != ExitTrick:
			case tests(i) && (u.handsOn() || u.startedByTests(m)):
				mark.Confidence = min(mark.Confidence, 0.7)
			case !tests(i) && u.endsProgram(i):
				continue
			}
			if d := u.around(i); rule.Pattern == RunnerAsked && d >= 0 && u.decls[d].kind == declFunction &&
				i > u.decls[d].body {
				mark.Confidence = max(mark.Confidence, 0.85) // a statement that exists for tests
			}
			m.Marks = append(m.Marks, mark)
		}
	}
	if !u.inTests {
		u.readAsked(m, tests)
	}
	u.readNotes(m)
	u.readOpenEnds(m)
}

// silenceAt returns the rules that an attribute or call suppresses.
func (u *unit) silenceAt(i int) Silence {
	open := i
	for open < len(u.tok) && u.at(open) != "(" && u.tok[open].Line == u.tok[i].Line {
		open++
	}
	if u.at(open) != "(" {
		return Silence{}
	}
	if u.at(open-1) == "SuppressMessage" || u.at(open-1) == "SuppressFBWarnings" {
		return Silence{Named: true, Words: u.reasonIn(open)}
	}
	found := Silence{Words: u.reasonIn(open)}
	from := open + 1
	for j := from; j < u.closer(open); j++ {
		if u.at(j) == "reason" || u.at(j) == "justification" {
			return found
		}
		s := u.at(j)
		switch {
		case u.kindAt(j) == lex.Text:
			s = lex.Unquote(s)
		case u.lang.ruleWords && (u.at(j+1) == "," || u.at(j+1) == ")"):
			if j-2 > open && u.at(j-1) == "::" {
				s = u.at(j-2) + "::" + s
			}
		default:
			continue
		}
		if isRuleGroup(s) {
			return Silence{}
		}
		found.Named = true
	}
	return found
}

// reasonIn counts the words of a reason in the parentheses at open: reason = "...".
func (u *unit) reasonIn(open int) int {
	for j := open + 1; j < u.closer(open); j++ {
		if s := strings.ToLower(u.at(j)); (s == "reason" || s == "justification") && u.kindAt(j+2) == lex.Text {
			return len(strings.Fields(lex.Unquote(u.at(j + 2))))
		}
	}
	return 0
}

// trailingWords counts the words of the comment after the code of a line.
func (u *unit) trailingWords(line int) int {
	for i := range u.notes {
		if n := &u.notes[i]; int(n.Line) == line && !n.Alone {
			return len(strings.Fields(strings.Trim(n.S, "/*# ")))
		}
	}
	return 0
}

// testLines returns a function that reports whether a token belongs to test code.
func (u *unit) testLines() func(i int) bool {
	if u.inTests || !u.lang.testModules {
		return func(int) bool { return u.inTests }
	}
	var spans [][2]int
	for i := range u.decls {
		if u.inTestCode(i) {
			spans = append(spans, [2]int{u.decls[i].start, u.decls[i].end})
		}
	}
	return func(i int) bool {
		return slices.ContainsFunc(spans, func(s [2]int) bool { return i >= s[0] && i < s[1] })
	}
}

func (u *unit) follows(i int, parts []string) bool {
	if i+len(parts) > len(u.tok) {
		return false
	}
	for n, p := range parts {
		t := &u.tok[i+n]
		switch {
		case p == "*":
		case p[0] == '"' && t.Kind == lex.Text:
			want, begins := strings.CutSuffix(strings.Trim(p, `"`), "*")
			if s := lex.Unquote(t.S); s != want && !(begins && strings.HasPrefix(s, want)) {
				return false
			}
		case t.Kind == lex.Text || t.S != p:
			return false
		}
	}
	return true
}

// startedByTests reports whether the file is a script in a test folder that has no tests and that
// the runner does not load: tests start it as a process.
func (u *unit) startedByTests(m *Model) bool {
	if u.lang.subtests || len(m.Tests)+len(m.Suites) > 0 || loadedByRunner().MatchString(path.Base(u.path)) {
		return false
	}
	return !anyOf(0, len(u.decls), func(i int) bool {
		return u.decls[i].annotatedBy(calledByRunner().MatchString)
	})
}

// endsProgram reports whether the word at i may end a program: by the name of the file or function,
// or because it handles a signal or prints help.
func (u *unit) endsProgram(i int) bool {
	if strings.HasPrefix(u.src, "#!") || ofProgram().MatchString(u.path) {
		return true
	}
	d := u.around(i)
	if d < 0 || ofProgram().MatchString(u.decls[d].name) {
		return true
	}
	if anyOf(0, len(u.decls), func(n int) bool { return u.decls[n].name == "main" || u.decls[n].name == "Main" }) {
		return true
	}
	return anyOf(max(0, i-60), min(len(u.tok), i+10), func(j int) bool {
		return u.kindAt(j) != lex.Op && endsWell().MatchString(u.at(j))
	})
}

var (
	// ofProgram matches names of programs and of functions that end them.
	ofProgram = lazyregexp.New(`(?i)main|cli|cmd|command|bin/|app|server|script|tool|daemon|entry|manage|setup|` +
		`build|worker|exit|quit|signal|shutdown|stop|close|terminate|example|help|usage|version|args|option|launch|boot|` +
		`start|run|console|task|plugin|loader|process|test|bench|gui|window|menu|electron|plugin`)
	// endsWell matches signals and the output before a program ends.
	endsWell = lazyregexp.New(`SIG[A-Z]{3}|(?i)help|usage|version|print|println|log|stdout|fork|child|argv|` +
		`args|quit|shutdown|signal|interrupt|uncaught|disconnect|destroy`)
)

// calledByRunner matches annotations of functions called before and after the tests.
var calledByRunner = lazyregexp.New(`^(?:OneTime)?(?:SetUp|TearDown)|^(?:Before|After)|` +
	`(?:Assembly|Class|Test)(?:Initialize|Cleanup)$|^fixture$`)

// loadedByRunner matches names of files that a runner reads before the tests.
var loadedByRunner = lazyregexp.New(`(?i)conftest|set_?up|tear|global|config|helper|bootstrap|` +
	`support|init|hook|runner|spec|test`)

// lineText returns the line of a token.
func (u *unit) lineText(i int) string {
	if i < 0 || i >= len(u.tok) {
		return ""
	}
	return u.text(u.lineSpan(i))
}

// lineSpan returns the tokens of the line that the token at i is on.
func (u *unit) lineSpan(i int) (from, to int) {
	for from = i; from > 0 && u.tok[from-1].Line == u.tok[i].Line; {
		from--
	}
	for to = i; to < len(u.tok) && u.tok[to].Line == u.tok[i].Line; {
		to++
	}
	return from, to
}

// target returns the hash of the line of code that an attribute precedes.
func (u *unit) target(i, n int) uint64 { return u.lineHash(u.targetAt(i, n)) }

// targetAt returns the first token of the line of code that an attribute precedes.
func (u *unit) targetAt(i, n int) int {
	line := u.tok[i].Line
	for i += n; i < len(u.tok) && (u.tok[i].Line == line || u.at(i) == "#" || u.at(i) == "@"); i++ {
		line = u.tok[i].Line
	}
	return i
}

// lineHash returns the hash of the line of the token at i.
func (u *unit) lineHash(i int) uint64 {
	if i < 0 || i >= len(u.tok) {
		return 0
	}
	from, to := u.lineSpan(i)
	return mixAll(firstHash, u.tok[from:to])
}

// readNotes finds comments that instruct tools.
func (u *unit) readNotes(m *Model) {
	next := 0
	for i := range u.notes {
		n := &u.notes[i]
		for next < len(u.tok) && u.tok[next].Off < n.Off {
			next++
		}
		for r := range u.lang.notes {
			rule := &u.lang.notes[r]
			if !strings.Contains(n.S, rule.S) || !directive(n.S, rule.S) || rule.Off && !switchesOff(n.S) {
				continue
			}
			about := next - 1
			if n.Alone {
				about = next
			}
			target := u.lineHash(about)
			m.Marks = append(m.Marks, Mark{
				Pattern: rule.Pattern, Line: int(n.Line), S: strings.Clone(Clip(n.S)), Key: target, Target: target,
				About:      u.lineText(about),
				Confidence: rule.Confidence, Why: u.why(int(n.Line)), Silence: readSilence(rule, n.S),
			})
			break
		}
	}
}

// why returns the explanatory comment that ends on the line before.
func (u *unit) why(line int) string {
	for _, n := range u.notesBefore(line - 1) {
		documents := strings.HasPrefix(n.S, "/**") || strings.HasPrefix(n.S, "///") // the code, not the suppression
		if !documents && int(n.Line)+strings.Count(n.S, "\n") == line-1 && n.Alone && inWords().MatchString(n.S) {
			return strings.Clone(n.S)
		}
	}
	return ""
}

// inWords matches a comment for readers: at least four words, not only separators or directives.
var inWords = lazyregexp.New(`^[/*#\s]*(?:[A-Za-z"'\x60(][\w'"\x60().,/-]*[\s*]+){3}\S`)

// directive reports whether a comment is read by a tool: the needle is near its beginning or after
// another comment mark.
func directive(s, needle string) bool {
	i := strings.Index(s, needle)
	head := s[:i]
	if n := strings.LastIndexAny(head, "#*/"); n >= 0 {
		head = head[n+1:]
	}
	return strings.Trim(head, " \t:@-!\n") == ""
}

var openEnd = lazyregexp.New(`\b(TO` +
	`DO|FIX` +
	`ME|HA` +
	`CK|XX` +
	`X)\b`)

// readOpenEnds notes comments that leave work for later.
func (u *unit) readOpenEnds(m *Model) {
	for i := range u.notes {
		n := &u.notes[i]
		if !strings.Contains(n.S, "TO"+"DO") && !strings.Contains(n.S, "FIX"+"ME") && !strings.Contains(n.S, "HA"+"CK") &&
			!strings.Contains(n.S, "XX"+"X") {
			continue // fast path: the expression is slow
		}
		if at := openEnd().FindStringIndex(n.S); at != nil {
			line := int(n.Line) + strings.Count(n.S[:at[0]], "\n")
			m.Marks = append(m.Marks, Mark{Pattern: OpenEnds, Line: line, S: strings.Clone(Clip(n.S)), Key: mix(3, n.S)})
		}
	}
}

// Clip returns a text as one line of at most 200 bytes.
func Clip(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}
