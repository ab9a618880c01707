package loop

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/loop/record"
)

// Bounds of the views on a terminal.
const (
	defaultWidth = 100
	leastWidth   = 40
	maxFailing   = 10 // names of tests that fail
	maxQuestion  = 15 // lines of a question
	maxDiff      = 60 // lines of its diff
	maxSpark     = 30 // iterations in a line of blocks
)

// OverviewIterations is how many of the last iterations are enough for
// [Summary.Overview], besides number 0.
const OverviewIterations = maxSpark

// Style is how a terminal shows things. The zero value is plain text. What
// others wrote is always made harmless: control characters are shown as signs.
type Style struct {
	// Bold and Dim style a text; nil leaves it.
	Bold, Dim func(text string) string
	// Diff styles a line of a diff, which it is given without control characters;
	// nil leaves it.
	Diff func(line string) string
	// Width is how many characters a line should have; 0 is 100.
	Width int
	// All shows all that was given of a long loop, instead of the last part of it.
	All bool
}

func (y Style) withDefaults() Style {
	plain := func(text string) string { return text }
	if y.Bold == nil {
		y.Bold = plain
	}
	if y.Dim == nil {
		y.Dim = plain
	}
	if y.Diff == nil {
		y.Diff = plain
	}
	if y.Width == 0 {
		y.Width = defaultWidth
	}
	y.Width = max(y.Width, leastWidth)
	return y
}

// supervisionOff is the value of the field Supervision for --plain.
const supervisionOff = "off (--plain): no comparison, no recovery, no best iteration"

// screen is the text of a view that is being written.
type screen struct {
	Style
	b strings.Builder
}

func (c *screen) line(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// field writes a line with a name, unless there is nothing to say.
func (c *screen) field(name, value string) {
	if value != "" {
		c.line("  %s %s", c.Dim(fmt.Sprintf("%-11s", name)), value)
	}
}

// indented writes a line that belongs to the field above.
func (c *screen) indented(text string) { c.line("              %s", text) }

func (c *screen) to(w io.Writer) error {
	_, err := io.WriteString(w, c.b.String())
	return err
}

// mark returns the sign of a status; each has another shape.
func mark(s string) string {
	alike := map[string]perdure.State{statusCrashed: perdure.Failed, string(record.Completing): perdure.Running,
		string(record.Paused): perdure.Waiting, string(record.Aborted): perdure.Cancelled}
	return status.Mark(cmp.Or(alike[s], perdure.State(s)))
}

// Overview writes what the loop does now, how its last check ended, how good it
// was, what it asks, and what can be done. The baseline and the last
// [OverviewIterations] iterations are enough for it.
func (s *Summary) Overview(w io.Writer, style Style) error {
	c := &screen{Style: style.withDefaults()}
	sign := mark(s.Status())
	if s.gates.waiting() != nil && !s.in.Loop.Status.Ended() {
		sign = mark(string(record.Paused))
	}
	c.line("%s  %s %s", c.Bold(s.ID()), sign, s.shown())
	c.line("%s", oneLine(s.cfg.Task, 2*c.Width))
	c.line("")
	s.now(c)
	s.lastCheck(c)
	s.heldOut(c)
	if p := s.judged(); p != nil {
		c.field("Metrics", s.comparedText(p.metrics))
	} else if s.baseline != nil {
		c.field("Metrics", s.numbersText(s.baseline.metrics))
	}
	s.trajectory(c)
	c.field("Branch", s.branch())
	if len(s.sum.Regressions) > 0 {
		text := counted(&s.sum)
		if !s.Whole() {
			text += fmt.Sprintf(" in the last %d iterations", len(s.points))
		}
		c.field("Regressions", text)
	}
	if s.cfg.Plain {
		c.field("Supervision", supervisionOff)
	}
	for _, text := range s.warnings {
		c.field("Warning", text)
	}
	c.field("Cost", s.money())
	c.field("Time", fmt.Sprintf("%s since %s", human.Duration(s.elapsed()), human.Stamp(s.in.Tree.CreatedAt)))
	s.chosen(c)
	c.field("Files", s.changedFiles())
	if g := s.gates.waiting(); g != nil && !s.in.Loop.Status.Ended() && !s.endedByOthers() {
		s.question(c, g)
	}
	s.commands(c)
	return c.to(w)
}

// now writes what the loop does now.
func (s *Summary) now(c *screen) {
	at := "before the first iteration"
	if n := s.in.Loop.Iteration; n > 0 {
		at = fmt.Sprintf("iteration %d", n)
		if s.cfg.MaxIterations > 0 {
			at += fmt.Sprintf(" of %d", s.cfg.MaxIterations)
		}
	}
	switch doing := s.doing(); {
	case s.endedByOthers():
		c.field("Now", fmt.Sprintf("%s: its tree is %s although the loop has not ended; its files were not checked", at,
			s.in.Tree.State))
	case s.Status() == statusCrashed:
		c.field("Now", at+": no process executes it any more")
		c.field("Last step", doing)
	case s.in.Loop.Status.Ended():
		c.field("Ended", at)
	default:
		c.field("Now", fmt.Sprintf("%s: %s, for %s", at, doing, human.Duration(s.in.Now.Sub(s.in.Loop.UpdatedAt))))
		if s.interrupted() {
			c.indented("no process runs it; `perdure loop resume " + s.ID() + "` continues, also after the answer")
		}
	}
	c.field("Why", oneLine(s.standing.Reason, maxText))
	c.field("Asked", s.asked())
	agent := oneLine(s.agent(), maxName)
	if s.standing.Agent > 0 {
		agent += fmt.Sprintf(", fallback for %s", oneLine(s.cfg.AgentAt(0), maxName))
	}
	c.field("Agent", agent)
	if s.standing.Run.Failure != "" && !s.in.Loop.Status.Ended() {
		c.field("Failure", oneLine(s.standing.Run.Failure, maxText))
	}
}

func (s *Summary) lastCheck(c *screen) {
	check, number := s.standing.Run.Check, s.in.Loop.Iteration
	if check == nil && s.last != nil {
		check, number = &s.last.Check, s.last.Iteration
	}
	where := fmt.Sprintf("iteration %d", number)
	if check == nil && s.baseline != nil && s.baseline.judged {
		check, where = &s.baseline.check, "baseline"
	}
	command := oneLine(s.cfg.Until, c.Width-20)
	if check == nil {
		c.field("Check", command+c.Dim(" (not run yet)"))
		return
	}
	c.field("Check", command)
	c.indented(fmt.Sprintf("%s %s", outcome(check), c.Dim("("+where+", took "+milliseconds(check.TookMS)+")")))
	c.indented(tests(check))
	for i, name := range check.Failing {
		if i == maxFailing {
			c.indented(c.Dim(fmt.Sprintf("and %d more", max(check.Counts.Failed, len(check.Failing))-maxFailing)))
			break
		}
		c.indented("✗ " + oneLine(name, c.Width-16))
	}
	if check.Incomplete != "" {
		c.indented(oneLine(check.Incomplete, c.Width))
	}
}

// trajectory draws the quality of the last iterations in one line.
func (s *Summary) trajectory(c *screen) {
	var line strings.Builder
	var last *point
	for i := max(0, len(s.points)-maxSpark); i < len(s.points); i++ {
		p := &s.points[i]
		line.WriteString(block(p.quality))
		if p.quality != unmeasured {
			last = p
		}
	}
	if last == nil {
		return
	}
	text := line.String() + "  last " + quality(last)
	if s.best != nil {
		of := ""
		if !s.Whole() {
			of = fmt.Sprintf(" of the last %d", len(s.points))
		}
		text += fmt.Sprintf(", best%s %d%% at iteration %d", of, *s.best.Quality, s.best.Iteration)
	}
	c.field("Quality", text)
}

// block draws a quality as a block of eight heights.
func block(quality int) string {
	if quality == unmeasured {
		return "·"
	}
	return string([]rune("▁▂▃▄▅▆▇█")[min(max(quality, 0)*8/100, 7)])
}

// chosen writes which iteration is left in the workspace.
func (s *Summary) chosen(c *screen) {
	if s.standing.SelectedReason == "" {
		return
	}
	c.field("Left", oneLine(s.standing.SelectedReason, maxText))
	for _, id := range s.standing.WayBack {
		c.indented(c.Dim("the files from before the loop are snapshot " + oneLine(string(id), maxName)))
	}
}

// question shows what a gate asks, and how it is answered.
func (s *Summary) question(c *screen, g *gate) {
	c.line("")
	c.line("%s", c.Bold(fmt.Sprintf("Gate %d (%s) waits for an answer, for %s", g.Number,
		oneLine(string(g.Kind), maxName), human.Duration(s.in.Now.Sub(g.OpenedAt)))))
	c.line("  %s", oneLine(g.asked.Title, 3*c.Width))
	c.part(strings.TrimRight(g.asked.Text, "\n \t"), maxQuestion, func(line string) string {
		return indented(strings.TrimRight(line, " \t"), 2*c.Width)
	})
	c.part(g.asked.Diff, maxDiff, func(line string) string { return c.Diff(spaced(line, 2*c.Width)) })
	c.line("")
	if g.ExpiresAt != nil {
		c.line("  Without an answer the loop is aborted in %s.", human.Duration(g.ExpiresAt.Sub(s.in.Now)))
	}
	for _, o := range g.asked.Options {
		c.line("  %s", c.Bold("perdure loop answer "+word(o.Answer)+" --loop "+s.ID()))
		c.line("      %s", oneLine(o.Effect, 2*c.Width))
	}
	if who := status.Approver(g.Approver); who != "" {
		c.line("")
		c.line("  %s", who)
	}
}

// part writes the first lines of a text, each as show returns it, after an empty line.
func (c *screen) part(text string, most int, show func(line string) string) {
	n := 0
	for line := range strings.Lines(text) {
		if n++; n == 1 {
			c.line("")
		}
		if n <= most {
			c.line("  %s", show(strings.TrimRight(line, "\r\n")))
		}
	}
	if n > most {
		c.line("  %s", c.Dim(fmt.Sprintf("and %s more", human.Count(int64(n-most), "line"))))
	}
}

// word is an answer as a command line takes it.
func word(answer string) string {
	answer = oneLine(answer, maxName)
	if answer != "" && strings.Trim(answer, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return answer
	}
	return "'" + strings.ReplaceAll(answer, "'", `'\''`) + "'"
}

// commands says what can be done with the loop.
func (s *Summary) commands(c *screen) {
	type can struct{ what, command string }
	var list []can
	id := s.ID()
	switch {
	case s.in.Loop.Status.Ended():
		list = []can{{"read its report", "report " + id}}
	case s.endedByOthers():
		list = []can{{"end the loop", "abort " + id}}
	case s.in.Crashed, s.in.Loop.Status == record.Paused:
		list = []can{{"continue", "resume " + id}, {"end the loop", "abort " + id},
			{"end the loop and restore its first files", "abort --revert " + id}}
	case s.interrupted():
		list = []can{{"continue", "resume " + id}, {"end the loop", "abort " + id}}
	case s.gates.waiting() != nil:
		list = []can{{"end the loop", "abort " + id}}
	default:
		list = []can{{"pause", "pause " + id}, {"end the loop", "abort " + id}}
	}
	c.line("")
	for _, one := range list {
		c.line("%s", c.Dim(fmt.Sprintf("%s: perdure loop %s", one.what, one.command)))
	}
}

// Persistence writes the results of the supervision: the metrics of the baseline and
// of now, regressions, recoveries, the best iteration. All iterations have to be
// given.
func (s *Summary) Persistence(w io.Writer, style Style) error {
	c := &screen{Style: style.withDefaults()}
	field := func(name, value string) {
		c.line("  %s %s", c.Dim(fmt.Sprintf("%-22s", name+":")), value)
	}
	c.line("%s", c.Bold("Persistence Metrics of "+s.ID()+":"))
	if s.cfg.Plain {
		field("Supervision", supervisionOff)
	}
	field("Baseline Metrics", s.measured(s.baseline))
	field("Current Metrics", s.measured(s.judged()))
	_, missed := s.metricRows()
	for _, m := range missed {
		field("Not Measured", fmt.Sprintf("%s: %s", m.Name, m.Value))
	}
	field("Regression Events", counted(&s.sum))
	if level := s.level(); level != "" {
		field("Reinforcement Level", oneLine(level, maxName))
	}
	attempts := fmt.Sprint(s.sum.Recoveries)
	if v := s.standing.Recovery; v != nil && !s.in.Loop.Status.Ended() {
		attempts = fmt.Sprintf("%d, and one is under way in iteration %d", s.sum.Recoveries, v.Iteration)
	}
	field("Recovery Attempts", attempts)
	if m := s.measures(); m.FalseAlarmRate != nil {
		field("False Positive Rate", fmt.Sprintf("%.1f %% (false_positive_rate %.3f)", 100**m.FalseAlarmRate,
			*m.FalseAlarmRate))
	}
	if n := len(s.gates.all); n > 0 {
		field("Human Gates", s.decided())
	}
	if n := s.sum.AgentErrors; n > 0 {
		field("Agent Errors", fmt.Sprint(n))
	}
	if s.best != nil {
		field("Best Iteration", fmt.Sprintf("%d (quality: %d%%)%s", s.best.Iteration, *s.best.Quality, s.whyBest()))
	} else {
		field("Best Iteration", "none yet")
	}
	if p := s.judged(); p != nil {
		field("Current Iteration", fmt.Sprintf("%d (quality: %s)", p.number, quality(p)))
	}
	if s.in.Loop.Status.Ended() && s.standing.Selected > 0 {
		field("Selected Iteration", fmt.Sprintf("%d, %s", s.standing.Selected, oneLine(s.standing.SelectedReason, maxText)))
	}
	if percent, ok := overheadOf(s.sum.AddedMS, s.sum.WorkMS); ok {
		field("Overhead", fmt.Sprintf("%.1f %% of the time of agent and check", percent))
	}
	if s.sealed != "" {
		field("Clean-copy check", s.sealed)
	}
	for _, text := range s.deciders {
		field("Decides the check", text)
	}
	if text := s.lastWarning(); text != "" {
		field("Warnings", text)
	}
	s.incomplete(c)
	return c.to(w)
}

// whyBest says why the best iteration is that, where the quality does not.
func (s *Summary) whyBest() string {
	why := oneLine(s.bestReason(), maxText)
	if why == fmt.Sprintf("Highest quality (%d %%)", *s.best.Quality) {
		return ""
	}
	return ", " + why
}

func (s *Summary) incomplete(c *screen) {
	if !s.Whole() {
		c.line("%s", c.Dim(fmt.Sprintf("Not all iterations were looked at: %d of %d.", len(s.points), s.in.Loop.Iteration)))
	}
}

// decided counts the gates by what was answered.
func (s *Summary) decided() string {
	var order []string
	counts := make(map[string]int)
	for i := range s.gates.all {
		answer := oneLine(s.gates.all[i].Answer, maxName)
		if s.gates.all[i].open() {
			answer = "open"
		}
		if counts[answer]++; counts[answer] == 1 {
			order = append(order, answer)
		}
	}
	for i, answer := range order {
		order[i] = fmt.Sprintf("%d %s", counts[answer], answer)
	}
	return strings.Join(order, ", ")
}

// measured describes the metrics of an iteration.
func (s *Summary) measured(p *point) string {
	if p == nil || !p.judged {
		return "not measured yet"
	}
	text := tests(&p.check)
	if p.check.Weak {
		text = "the check " + outcome(&p.check) + "; " + text
	}
	if more := s.numbersText(p.metrics); more != "" {
		text += ", " + more
	}
	if p.quality != unmeasured {
		text += ", quality " + quality(p)
	}
	return text
}

// Quality writes the quality of each iteration as a bar. Of more than maxSpark
// these are the last ones; those before share bars of their means, with the lowest
// and the highest.
func (s *Summary) Quality(w io.Writer, style Style) error {
	c := &screen{Style: style.withDefaults()}
	c.line("%s", c.Bold("Quality Trajectory of "+s.ID()+":"))
	if len(s.points) == 0 {
		c.line("  no iteration yet")
		return c.to(w)
	}
	from := max(0, len(s.points)-maxSpark)
	if c.All {
		from = 0
	}
	s.before(c, s.points[:from])
	for i := range s.points[from:] {
		p := &s.points[from+i]
		c.line("  Iteration %*d: %4s %s", len(fmt.Sprint(s.number())), p.number, bareQuality(p),
			strings.TrimRight(bar(p.quality)+s.marks(p, c.Bold), " "))
	}
	s.incomplete(c)
	return c.to(w)
}

// cellQuality returns what quality does, shorter where nothing was measured.
func cellQuality(p *point) string {
	if p.quality == unmeasured {
		return "-"
	}
	return quality(p)
}

func bareQuality(p *point) string {
	if p.quality == unmeasured {
		return "-"
	}
	return percent(p.quality)
}

// quality returns the quality of an iteration, and whether it is void.
func quality(p *point) string {
	if p.void && p.quality != unmeasured {
		return percent(p.quality) + " void"
	}
	return percent(p.quality)
}

// bar draws a quality in cells of five percent.
func bar(quality int) string {
	if quality == unmeasured {
		return ""
	}
	return strings.Repeat("░", min(max(quality, 0), 100)/5)
}

// marks are the words behind an iteration.
func (s *Summary) marks(p *point, bold func(string) string) string {
	var words []string
	if s.best != nil && s.best.Iteration == p.number && s.Whole() {
		words = append(words, "BEST")
	}
	if p.number == s.standing.Selected && s.in.Loop.Status.Ended() {
		words = append(words, "SELECTED")
	}
	if p.facts > 0 {
		words = append(words, "REGRESSION")
	}
	if p.void {
		words = append(words, "VOID")
	}
	if p.status != record.IterationKept {
		words = append(words, p.word())
	}
	if len(words) == 0 {
		return ""
	}
	return " " + bold("⬅ "+strings.Join(words, ", "))
}

// before draws the iterations that are not shown one by one.
func (s *Summary) before(c *screen, points []point) {
	below := len(points)
	if s.in.History != nil && len(s.points) > 0 {
		below = s.points[0].number - 1
	}
	list := s.columnsBelow(points, share(below))
	if len(list) == 0 || c.All {
		return
	}
	c.line("  %s%s", rangeText(together(list)), c.Dim("; --full shows each"))
	if len(list) == 1 || below <= maxSpark {
		return
	}
	width := len("Iteration :") + len(fmt.Sprint(s.number()))
	for i := range list {
		k := &list[i]
		name := fmt.Sprintf("%-*s", width, fmt.Sprintf("%d-%d", k.From, k.To))
		if k.Measured == 0 {
			c.line("  %s    -", name)
			continue
		}
		mean := int(k.Sum / int64(k.Measured))
		text := fmt.Sprintf("  %s %4s %-20s %s", name, percent(mean), bar(mean),
			c.Dim(fmt.Sprintf("%d%% to %d%%", k.Lowest, k.Highest)))
		if marks := s.columnMarks(k); marks != "" {
			text += " " + c.Bold("⬅ "+marks)
		}
		c.line("%s", text)
	}
}

// columnMarks are the words behind a column.
func (s *Summary) columnMarks(k *record.Column) string {
	var words []string
	if s.best != nil && s.best.Iteration >= k.From && s.best.Iteration <= k.To && s.Whole() {
		words = append(words, fmt.Sprintf("BEST %d%% at iteration %d", *s.best.Quality, s.best.Iteration))
	}
	if k.Regressed > 0 {
		words = append(words, fmt.Sprintf("%d with regressions", k.Regressed))
	}
	if k.Reverted > 0 {
		words = append(words, fmt.Sprintf("%d reverted", k.Reverted))
	}
	return strings.Join(words, ", ")
}

func milliseconds(ms int64) string { return human.Seconds(float64(ms) / 1000) }

// timesText lists what an iteration took.
func timesText(t state.Times) string {
	metrics := ""
	if t.Metrics > 0 {
		metrics = ", metrics " + milliseconds(t.Metrics)
	}
	if t.CleanCopy > 0 {
		metrics += ", clean copies " + milliseconds(t.CleanCopy)
	}
	if t.Mutations > 0 {
		metrics += ", mutations " + milliseconds(t.Mutations)
	}
	return fmt.Sprintf("agent %s, check %s%s, snapshots %s, hooks %s, engine %s", milliseconds(t.Agent),
		milliseconds(t.Check), metrics, milliseconds(t.Snapshot),
		milliseconds(t.Hooks), milliseconds(t.Engine))
}
