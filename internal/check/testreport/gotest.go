package testreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// goEvent is a line of go test -json; see go doc test2json.
type goEvent struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

type goParser struct {
	*builder
	in       *lines
	packages map[string]*goPackage
	order    []string
	builds   map[string]*message // compiler errors, by import path
}

type goPackage struct {
	ended    bool
	bad      bool              // ended with fail
	build    string            // the failed build, as the runner names it
	broken   Kind              // the kind of its output
	failing  int               // tests that failed
	running  map[string]*goRun // tests without an end
	doubtful []int             // tests that passed without the line that confirms it
	output   message
}

// goRun is a test between its beginning and its end.
type goRun struct {
	index   int
	output  message
	verdict bool // the framework printed its line about the end
	crash   Kind // Crash or Timeout, if the process ended in it
}

// goTest reads the events of go test -json, with other lines between them. The report is
// complete when every package that started has an end, and every test of it too. A test
// that "passes" because the process ended within it is reported as unfinished.
func (b *builder) goTest(r io.Reader) error {
	p := &goParser{builder: b, in: newLines(r, b.cfg.MaxLine), packages: make(map[string]*goPackage),
		builds: make(map[string]*message)}
	if err := p.in.each(p.read); err != nil {
		return err
	}
	return p.finish()
}

func (p *goParser) read(line []byte, long bool) error {
	object := bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{"))
	if object && long {
		return &LimitError{Limit: "max line", Max: p.cfg.MaxLine, Line: p.in.no}
	}
	var e goEvent
	if object && json.Unmarshal(line, &e) == nil && e.Action != "" {
		return p.event(&e)
	}
	p.report.Ignored++
	p.plain(string(line))
	if object && p.in.open && bytes.Contains(line, []byte(`"Action"`)) {
		return p.incomplete("", fmt.Sprintf("the last event, in line %d, is cut off", p.in.no))
	}
	return nil
}

// plain reads the lines that older versions print between the events.
func (p *goParser) plain(line string) {
	rest, ok := strings.CutPrefix(line, "FAIL\t")
	if !ok {
		return
	}
	name, why, _ := strings.Cut(rest, " ")
	if why != "[build failed]" && why != "[setup failed]" {
		return
	}
	if known, err := p.pkg(name); err == nil {
		known.ended, known.bad, known.broken = true, true, Build
	}
}

func (p *goParser) pkg(name string) (*goPackage, error) {
	if known := p.packages[name]; known != nil {
		return known, nil
	}
	if len(p.packages) >= p.cfg.MaxTests {
		return nil, &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.in.no}
	}
	if len(name) > p.cfg.MaxIdentity {
		return nil, &LimitError{Limit: "max identity", Max: p.cfg.MaxIdentity, Line: p.in.no}
	}
	made := &goPackage{running: make(map[string]*goRun)}
	p.packages[name] = made
	p.order = append(p.order, name)
	return made, nil
}

func (p *goParser) event(e *goEvent) error {
	if e.Action == "build-output" || e.Action == "build-fail" {
		return p.build(e)
	}
	if e.Package == "" {
		p.report.Ignored++
		return nil
	}
	pkg, err := p.pkg(e.Package)
	if err != nil {
		return err
	}
	if e.Test != "" {
		return p.test(pkg, e)
	}
	switch e.Action {
	case "output":
		pkg.read(e.Output, p.cfg.MaxMessage)
	case "pass", "skip", "fail":
		pkg.ended, pkg.bad, pkg.build = true, e.Action == "fail", e.FailedBuild
	}
	return nil
}

func (p *goParser) build(e *goEvent) error {
	m := p.builds[e.ImportPath]
	if m == nil {
		if len(p.builds) >= p.cfg.MaxTests {
			return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.in.no}
		}
		m = &message{}
		p.builds[e.ImportPath] = m
	}
	if !strings.HasPrefix(e.Output, "# ") {
		m.add(e.Output, p.cfg.MaxMessage)
	}
	return nil
}

// read reads the output of the package itself.
func (k *goPackage) read(text string, limit int) {
	if crash := crashOf(text); crash != "" {
		k.broken = crash
	} else if strings.HasSuffix(text, " [build failed]\n") || strings.HasSuffix(text, " [setup failed]\n") {
		k.broken = Build
	}
	k.output.add(text, limit)
}

// crashOf returns the kind of end of the process that an output reports; empty if none.
func crashOf(text string) Kind {
	switch {
	case strings.HasPrefix(text, "panic: test timed out"):
		return Timeout
	case strings.HasPrefix(text, "panic: "), strings.HasPrefix(text, "fatal error: "):
		return Crash
	}
	return ""
}

func (p *goParser) test(pkg *goPackage, e *goEvent) error {
	run := pkg.running[e.Test]
	if run == nil {
		if e.Action == "output" {
			return nil // after the end: a goroutine left behind
		}
		index, err := p.begin(e)
		if err != nil {
			return err
		}
		run = &goRun{index: index}
		pkg.running[e.Test] = run
	}
	switch e.Action {
	case "output":
		run.read(e.Output, p.cfg.MaxMessage)
	case "pass", "bench":
		if !run.verdict && e.Action == "pass" {
			pkg.doubtful = append(pkg.doubtful, run.index)
		}
		p.end(pkg, run, e, Passed)
	case "skip":
		p.end(pkg, run, e, Skipped)
	case "fail":
		p.end(pkg, run, e, Failed)
	}
	return nil
}

// begin returns or creates the test in the report. The runner repeats tests with -count.
func (p *goParser) begin(e *goEvent) (int, error) {
	id := e.Package + "::" + e.Test
	if i, known := p.at[printable(id)]; known {
		return i, nil
	}
	return p.add(Test{ID: id, Suite: e.Package, Name: e.Test}, p.in.no)
}

func (r *goRun) read(text string, limit int) {
	begins := func(prefix string) bool { return strings.HasPrefix(strings.TrimLeft(text, " "), prefix) }
	switch {
	case slices.ContainsFunc([]string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ", "=== ATTR "},
		func(frame string) bool { return strings.HasPrefix(text, frame) }):
		return
	case slices.ContainsFunc([]string{"--- PASS: ", "--- FAIL: ", "--- SKIP: ", "--- BENCH: "}, begins):
		r.verdict = true
		return
	}
	if crash := crashOf(text); crash != "" {
		r.crash = crash
		r.output.text = r.output.text[:0] // earlier output is not the reason
	}
	r.output.add(text, limit)
}

func (p *goParser) end(pkg *goPackage, run *goRun, e *goEvent, outcome Outcome) {
	t := &p.report.Tests[run.index]
	if t.Outcome != "" && t.Outcome != outcome && (t.Outcome == Failed || outcome == Failed) {
		t.Flaky = true
	}
	if weight(outcome) > weight(t.Outcome) {
		t.Outcome = outcome
		if outcome != Passed {
			t.Message = clipped(string(run.output.text), p.cfg.MaxMessage)
		}
	}
	t.Duration += time.Duration(e.Elapsed * float64(time.Second))
	if outcome == Failed {
		pkg.failing++
	}
	if run.crash != "" && outcome == Failed {
		pkg.broken = run.crash
	}
	delete(pkg.running, e.Test)
}

func (p *goParser) finish() error {
	if len(p.order) == 0 && len(p.builds) == 0 {
		if err := p.incomplete("", "no package started"); err != nil {
			return err
		}
	}
	for _, name := range p.order {
		if err := p.finishPackage(name, p.packages[name]); err != nil {
			return err
		}
	}
	return nil
}

func (p *goParser) finishPackage(name string, pkg *goPackage) error {
	var open string
	for _, name := range slices.Sorted(maps.Keys(pkg.running)) {
		run := pkg.running[name]
		t := &p.report.Tests[run.index]
		if pkg.ended && pkg.broken == "" && run.crash == "" && strings.HasPrefix(name, "Benchmark") {
			t.Outcome = Passed // they have no end of their own
			continue
		}
		t.Outcome = Unfinished
		if run.crash != "" {
			t.Outcome, pkg.broken = Failed, run.crash
			pkg.failing++
		}
		t.Message = clipped(string(run.output.text), p.cfg.MaxMessage)
		open = t.ID
	}
	if !pkg.ended {
		for _, i := range pkg.doubtful {
			p.report.Tests[i].Outcome = Unfinished
		}
	}
	if err := p.breakage(name, pkg); err != nil {
		return err
	}
	switch {
	case !pkg.ended:
		return p.incomplete(name, fmt.Sprintf("package %q has no end", name))
	case open != "":
		return p.incomplete(name, fmt.Sprintf("test %q has no end", open))
	}
	return nil
}

// breakage records why a failed package could not run all its tests.
func (p *goParser) breakage(name string, pkg *goPackage) error {
	if !pkg.bad {
		return nil
	}
	kind, msg := pkg.broken, string(pkg.output.text)
	if pkg.build != "" {
		kind = Build
	}
	if kind == "" && pkg.failing == 0 {
		kind = Exit
	}
	if kind == "" {
		return nil
	}
	if m := p.builds[pkg.build]; m != nil && len(m.text) > 0 {
		msg = string(m.text)
	}
	return p.broken(name, kind, msg)
}
