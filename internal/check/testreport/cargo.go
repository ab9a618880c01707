package testreport

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

var (
	cargoRunning = lazyregexp.New(`^\s+Running (?:unittests )?(\S+)(?: \((\S+)\))?$`)
	cargoHash    = lazyregexp.New(`-[0-9a-f]{16}(?:\.exe)?$`)
	cargoBegin   = lazyregexp.New(`^running (\d+) tests?$`)
	cargoTest    = lazyregexp.New(`^test (.+?) \.\.\.(?: (.*))?$`)
	cargoResult  = lazyregexp.New(`^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;`)
	cargoStdout  = lazyregexp.New(`^---- (.+?) (?:stdout|stderr) ----$`)
	cargoLine    = lazyregexp.New(` \(line \d+\)`)
	cargoBuild   = lazyregexp.New("^error: could not compile `([^`]+)`")
	cargoFailed  = lazyregexp.New(`^error: \d+ targets? failed:`)
)

type cargoParser struct {
	*builder
	in      *lines
	suite   string
	group   []int // tests of the binary that is running
	planned int
	open    bool           // between "running N tests" and "test result:"
	waiting int            // the test whose outcome follows on a later line, or -1
	byName  map[string]int // tests of the group, for their output
	reading int            // the test whose output is being read, or -1
	errors  message        // compiler errors
	groups  int
	stopped bool // cargo ended after the first binary that failed
}

// cargo reads the combined output of cargo test: the names of the binaries are on standard
// error. The report is complete when every binary that began has a result with the right
// numbers of tests, and cargo continued after failures (--no-fail-fast).
func (b *builder) cargo(r io.Reader) error {
	p := &cargoParser{builder: b, in: newLines(r, b.cfg.MaxLine), waiting: -1, reading: -1}
	err := p.in.each(func(line []byte, long bool) error {
		if long {
			p.report.Ignored++
			return nil
		}
		return p.line(string(line))
	})
	if err != nil {
		return err
	}
	return p.finish()
}

func (p *cargoParser) line(line string) error {
	if m := cargoRunning().FindStringSubmatch(line); m != nil {
		p.binary(m[1], m[2])
		return nil
	}
	if name, ok := strings.CutPrefix(line, "   Doc-tests "); ok {
		p.suite = "doc " + name
		return nil
	}
	if m := cargoBegin().FindStringSubmatch(line); m != nil {
		return p.begin(m[1])
	}
	if m := cargoResult().FindStringSubmatch(line); m != nil && p.open {
		return p.result(m)
	}
	if p.open {
		return p.within(line)
	}
	switch m := cargoBuild().FindStringSubmatch(line); {
	case m != nil:
		return p.broken("", Build, line+"\n"+string(p.errors.text))
	case strings.HasPrefix(line, "error: test failed"), strings.HasPrefix(line, "error: doctest failed"):
		p.stopped = true
	case cargoFailed().MatchString(line):
		p.stopped = false
	case strings.HasPrefix(line, "error"), len(p.errors.text) > 0:
		p.errors.add(line+"\n", p.cfg.MaxMessage)
	default:
		p.report.Ignored++
	}
	return nil
}

// binary returns the name of a test binary: the file without its hash, and its source.
func (p *cargoParser) binary(source, file string) {
	if file == "" { // cargo before 1.60 names only the file
		source, file = "", source
	}
	file = strings.ReplaceAll(file, `\`, "/")
	file = cargoHash().ReplaceAllString(file[strings.LastIndexByte(file, '/')+1:], "")
	p.suite = join(" ", file, strings.ReplaceAll(source, `\`, "/"))
}

func (p *cargoParser) begin(number string) error {
	if p.open {
		if err := p.unfinished(); err != nil {
			return err
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.in.no}
	}
	p.open, p.planned, p.group, p.waiting, p.reading = true, n, p.group[:0], -1, -1
	p.byName = make(map[string]int)
	p.groups++
	return nil
}

// within reads a line between the beginning and the result of a binary.
func (p *cargoParser) within(line string) error {
	if m := cargoTest().FindStringSubmatch(line); m != nil && p.reading < 0 {
		return p.test(m[1], m[2])
	}
	if m := cargoStdout().FindStringSubmatch(line); m != nil {
		p.reading = -1
		if i, ok := p.byName[m[1]]; ok {
			p.reading = i
		}
		return nil
	}
	if line == "failures:" {
		p.reading = -1
		return nil
	}
	if p.waiting >= 0 && p.outcome(p.waiting, line) {
		p.waiting = -1
		return nil
	}
	if p.reading >= 0 {
		t := &p.report.Tests[p.reading]
		if strings.HasPrefix(line, "stack backtrace:") {
			p.reading = -1
		} else if len(t.Message) < p.cfg.MaxMessage {
			t.Message = clipped(join("\n", t.Message, line), p.cfg.MaxMessage)
		}
		return nil
	}
	p.report.Ignored++
	return nil
}

func (p *cargoParser) test(name, outcome string) error {
	name, _, _ = strings.Cut(name, " - should panic")
	name, _, _ = strings.Cut(name, " - compile")
	t := Test{Suite: p.suite, Name: name, Outcome: Unfinished}
	if strings.HasPrefix(p.suite, "doc ") {
		t.File, _, _ = strings.Cut(name, " - ")
		t.Name = cargoLine().ReplaceAllString(name, "")
	}
	t.ID = join("::", t.Suite, t.Name)
	i, err := p.add(t, p.in.no)
	if err != nil {
		return err
	}
	p.group = append(p.group, i)
	p.byName[name] = i
	p.waiting = -1
	if !p.outcome(i, outcome) {
		p.waiting = i // other output came in between
	}
	return nil
}

// outcome parses the outcome after the dots and reports whether it could.
func (p *cargoParser) outcome(i int, text string) bool {
	t := &p.report.Tests[i]
	word, why, _ := strings.Cut(text, ", ")
	switch word {
	case "ok":
		t.Outcome = Passed
	case "FAILED":
		t.Outcome = Failed
	case "ignored":
		t.Outcome, t.Message = Skipped, clipped(why, p.cfg.MaxMessage)
	default:
		if !strings.HasPrefix(text, "bench:") {
			return false
		}
		t.Outcome = Passed
	}
	return true
}

func (p *cargoParser) result(m []string) error {
	p.open = false
	var stated [3]int
	for i := range stated {
		stated[i], _ = strconv.Atoi(m[i+1])
	}
	var have [3]int
	for _, i := range p.group {
		switch p.report.Tests[i].Outcome {
		case Passed:
			have[0]++
		case Skipped:
			have[2]++
		default:
			have[1]++
		}
	}
	if len(p.group) != p.planned || stated != have {
		return p.incomplete(p.suite, fmt.Sprintf("binary %q reports %d tests passed, %d failed, %d ignored, and lists "+
			"%d, %d, %d",
			p.suite, stated[0], stated[1], stated[2], have[0], have[1], have[2]))
	}
	return nil
}

func (p *cargoParser) unfinished() error {
	return p.incomplete(p.suite, fmt.Sprintf("binary %q has no result", p.suite))
}

func (p *cargoParser) finish() error {
	switch {
	case p.open:
		return p.unfinished()
	case p.stopped:
		return p.incomplete("", "cargo stopped after the first failed binary: use --no-fail-fast")
	case p.groups == 0 && len(p.report.Broken) == 0:
		return p.incomplete("", "no test binary started")
	}
	return nil
}
