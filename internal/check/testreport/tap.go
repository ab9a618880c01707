package testreport

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

var (
	tapPoint   = lazyregexp.New(`^(not )?ok\b(?:\s+(\d+))?\s*(.*)$`)
	tapPlan    = lazyregexp.New(`^1\.\.(\d+)\s*(?:#\s*(.*))?$`)
	tapDirects = lazyregexp.New(`(?i)^(.*?)(?:^|\s)#\s*(skip|todo)\S*\s*(.*)$`)
)

// tapLevel is the run of the tests at one depth of indentation.
type tapLevel struct {
	planned  int // -1 before the plan
	seen     int
	title    string // of the next subtest, from "# Subtest:"
	children []int  // tests here and below without the name of their parent
	last     int    // index of the last test here, -1 before
}

type tapParser struct {
	*builder
	in     *lines
	levels []*tapLevel
	paths  []string // by index of the test: its identity so far
	yaml   string   // the indentation of the open block
	inYAML bool
	mute   bool // inside a skipped value of the open block
	any    bool // a line of the format was seen
}

// tap reads the Test Anything Protocol, versions 12 to 14, with subtests and YAML blocks.
// The report is complete when a plan was read at every depth and agrees with the number of
// tests, and no line bails out. Several documents may follow each other.
func (b *builder) tap(r io.Reader) error {
	p := &tapParser{builder: b, in: newLines(r, b.cfg.MaxLine)}
	p.level(0)
	if err := p.in.each(p.read); err != nil {
		return err
	}
	return p.finish()
}

func (p *tapParser) read(raw []byte, long bool) error {
	line := strings.ReplaceAll(string(raw), "\t", "    ")
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch {
	case p.inYAML:
		p.block(line, text, indent)
	case text == "---" && indent >= 2 && p.lastTest() != nil:
		p.inYAML, p.mute, p.yaml = true, false, line[:indent]
	default:
		return p.line(text, indent, long)
	}
	return nil
}

// level returns the level of a depth, creating missing ones.
func (p *tapParser) level(depth int) *tapLevel {
	for len(p.levels) <= depth {
		p.levels = append(p.levels, &tapLevel{planned: -1, last: -1})
	}
	return p.levels[depth]
}

// lastTest returns the test that a block or a remark belongs to: the last one at the
// deepest open level.
func (p *tapParser) lastTest() *Test {
	l := p.levels[len(p.levels)-1]
	if l.last < 0 {
		return nil
	}
	return &p.report.Tests[l.last]
}

func (p *tapParser) line(text string, indent int, long bool) error {
	depth := indent / 4
	if indent%4 != 0 || depth > len(p.levels) {
		p.remark(text)
		return nil
	}
	if depth > p.cfg.MaxDepth {
		return &LimitError{Limit: "max depth", Max: p.cfg.MaxDepth, Line: p.in.no}
	}
	switch {
	case strings.HasPrefix(text, "Bail out!"):
		p.any = true
		return p.incomplete("", strings.TrimSpace("the run bailed out: "+strings.TrimPrefix(text, "Bail out!")))
	case strings.HasPrefix(text, "# Subtest: "):
		p.heading(depth, strings.TrimPrefix(text, "# Subtest: "))
	case strings.HasPrefix(text, "TAP version "):
		p.any = true
	case strings.HasPrefix(text, "pragma ") || text == "":
	case strings.HasPrefix(text, "#"):
		p.remark(text)
	default:
		if m := tapPlan().FindStringSubmatch(text); m != nil {
			return p.plan(depth, m)
		}
		m := tapPoint().FindStringSubmatch(text)
		if m == nil {
			p.remark(text)
			return nil
		}
		if long {
			return &LimitError{Limit: "max line", Max: p.cfg.MaxLine, Line: p.in.no}
		}
		return p.point(depth, m)
	}
	return nil
}

// heading reads the title of a subtest. It precedes the subtest at the depth of the
// parent's own result, or, as Perl writes it, of the children.
func (p *tapParser) heading(depth int, title string) {
	title = unescapeTAP(title)
	p.level(depth).title = title
	if depth > 0 && p.levels[depth-1].title == "" {
		p.levels[depth-1].title = title
	}
}

// remark adds a line to the message of the last test, if that failed.
func (p *tapParser) remark(text string) {
	if !strings.HasPrefix(text, "#") {
		p.report.Ignored++
	}
	if t := p.lastTest(); t != nil && t.Outcome == Failed && len(t.Message) < p.cfg.MaxMessage {
		text = strings.TrimSpace(strings.TrimLeft(text, "# "))
		t.Message = clipped(join("\n", t.Message, text), p.cfg.MaxMessage)
	}
}

// block reads a line of YAML. The keys that known runners write are evaluated; the rest
// is the message.
func (p *tapParser) block(line, text string, indent int) {
	if text == "..." && indent == len(p.yaml) {
		p.inYAML = false
		return
	}
	t := p.lastTest()
	if t == nil {
		return
	}
	key, value, _ := strings.Cut(text, ": ")
	value = strings.Trim(strings.TrimSpace(value), `'"`)
	if indent <= len(p.yaml) {
		p.mute = false
		switch strings.TrimSuffix(key, ":") {
		case "duration_ms":
			if ms, err := strconv.ParseFloat(value, 64); err == nil && ms > 0 && ms < 1e12 {
				t.Duration = time.Duration(ms * float64(time.Millisecond))
			}
			return
		case "location":
			t.File = printable(p.cfg.relative(fileOf(value)))
			return
		case "type", "stack", "failureType", "code":
			p.mute = true
		}
	}
	if !p.mute && t.Outcome == Failed && len(t.Message) < p.cfg.MaxMessage {
		rest := strings.TrimPrefix(line, p.yaml)
		t.Message = clipped(join("\n", t.Message, rest), p.cfg.MaxMessage)
	}
}

// fileOf removes line and column from the end of a place.
func fileOf(place string) string {
	for range 2 {
		i := strings.LastIndexByte(place, ':')
		if i < 0 {
			return place
		}
		if _, err := strconv.Atoi(place[i+1:]); err != nil {
			return place
		}
		place = place[:i]
	}
	return place
}

func (p *tapParser) plan(depth int, m []string) error {
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.in.no}
	}
	p.any = true
	l := p.level(depth)
	if depth == 0 && l.planned >= 0 { // another document
		if err := p.close(0, ""); err != nil {
			return err
		}
		l = p.level(0)
	}
	l.planned = n
	return nil
}

func (p *tapParser) point(depth int, m []string) error {
	p.any = true
	name, outcome, why := directive(m[1] != "", m[3])
	l := p.level(depth)
	if depth == 0 && m[2] == "1" && l.planned >= 0 && l.seen >= l.planned { // another document
		if err := p.close(0, ""); err != nil {
			return err
		}
		l = p.level(0)
	}
	l.seen++
	if name == "" {
		name = fmt.Sprintf("#%d", l.seen)
	}
	if len(p.levels) > depth+1 {
		if err := p.close(depth+1, name); err != nil {
			return err
		}
	}
	if len(p.report.Tests) >= p.cfg.MaxTests {
		return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.in.no}
	}
	if len(name) > p.cfg.MaxIdentity {
		return &LimitError{Limit: "max identity", Max: p.cfg.MaxIdentity, Line: p.in.no}
	}
	// Identities are complete only when the parents' names are known.
	l.last = len(p.report.Tests)
	l.children = append(l.children, l.last)
	p.report.Tests = append(p.report.Tests,
		Test{Name: printable(name), Outcome: outcome, Message: clipped(why, p.cfg.MaxMessage)})
	p.paths = append(p.paths, name)
	l.title = ""
	return nil
}

// directive splits a description from its directive.
func directive(failed bool, text string) (name string, outcome Outcome, why string) {
	outcome = Passed
	if failed {
		outcome = Failed
	}
	if m := tapDirects().FindStringSubmatch(text); m != nil && !strings.HasSuffix(m[1], `\`) {
		text, why = m[1], m[3]
		switch {
		case strings.EqualFold(m[2], "skip"):
			outcome = Skipped
		case failed:
			outcome = Todo
		default:
			outcome = XPass
		}
	}
	text = strings.TrimSpace(text)
	if text == "-" {
		text = ""
	}
	return unescapeTAP(strings.TrimPrefix(text, "- ")), outcome, why
}

func unescapeTAP(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\#`, "#").Replace(strings.TrimSpace(s))
}

// close ends the levels from a depth on. Their tests get the name of their parent.
func (p *tapParser) close(depth int, parent string) error {
	for i := len(p.levels) - 1; i >= depth; i-- {
		l := p.levels[i]
		name := parent
		if i > depth {
			name = p.levels[i-1].title
		}
		if err := p.checkPlan(l, name, i == 0); err != nil {
			return err
		}
		if i == 0 {
			break
		}
		for _, t := range l.children {
			if p.paths[t] = join(" > ", name, p.paths[t]); len(p.paths[t]) > p.cfg.MaxIdentity {
				return &LimitError{Limit: "max identity", Max: p.cfg.MaxIdentity, Line: p.in.no}
			}
		}
		p.levels[i-1].children = append(p.levels[i-1].children, l.children...)
	}
	p.levels = p.levels[:depth]
	if depth == 0 {
		p.level(0)
	}
	return nil
}

func (p *tapParser) checkPlan(l *tapLevel, name string, top bool) error {
	subject := "the run"
	if !top {
		subject = fmt.Sprintf("subtest %q", printable(name))
	}
	switch {
	case l.planned < 0:
		if l.seen == 0 && !top {
			return nil
		}
		return p.incomplete("", subject+" has no plan")
	case l.planned != l.seen:
		return p.incomplete("", fmt.Sprintf("%s planned %d tests and has %d", subject, l.planned, l.seen))
	}
	return nil
}

func (p *tapParser) finish() error {
	switch {
	case !p.any && p.in.no > 1:
		return &SyntaxError{Line: 1, Column: 1, Msg: "no line of TAP found"}
	case !p.any:
		return p.incomplete("", "the input is empty")
	}
	if p.inYAML {
		if err := p.incomplete("", "the input ends inside a YAML block"); err != nil {
			return err
		}
	}
	if err := p.close(1, p.levels[0].title); err != nil {
		return err
	}
	if err := p.checkPlan(p.levels[0], "", true); err != nil {
		return err
	}
	tests := p.report.Tests
	p.report.Tests = make([]Test, 0, len(tests))
	for i, t := range tests {
		t.ID = p.paths[i]
		if _, err := p.add(t, p.in.no); err != nil {
			return err
		}
	}
	return nil
}
