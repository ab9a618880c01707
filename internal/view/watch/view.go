package watch

import (
	"cmp"
	"fmt"
	"image/color"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/internal/view/turns"
)

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	return v
}

// draw returns as many lines as the screen has, none wider than it.
func (m *model) draw() string {
	var lines []string
	switch m.screen {
	case screenHelp:
		lines = m.helpLines()
	case screenTrees:
		lines = m.treesLines()
	case screenTask:
		lines = m.taskLines()
		lines = append([]string{m.bold("perdure watch") + "  " + m.task.ID.String()},
			lines[min(m.scroll, max(0, len(lines)-1)):]...)
	default:
		lines = m.tasksLines()
	}
	lines = lines[:min(len(lines), m.height-1)]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.footer())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return strings.Join(lines, "\n")
}

// The parts of the screen other than the list of tasks.
const (
	headLines = 3
	footLines = 1
)

// logHeight is how many lines the log has, its rule included.
func (m *model) logHeight() int {
	if m.hideLog || m.height < 14 {
		return 0
	}
	return min(9, m.height/4)
}

// turnsHeight is how many lines the turns have, their rule included.
func (m *model) turnsHeight() int {
	if !m.repl || m.hideLog || m.height < 18 {
		return 0
	}
	return min(1+max(len(m.turns), 1), 9, m.height/4)
}

// bodyHeight is how many rows of tasks are on the screen.
func (m *model) bodyHeight() int {
	return max(1, m.height-headLines-1-m.turnsHeight()-m.logHeight()-footLines)
}

func (m *model) tasksLines() []string {
	lines := m.head()
	lines = append(lines, m.rule(m.filterText()))
	if m.rows() == 0 {
		text := "loading …"
		if m.filter.on() && !m.searching {
			text = "no task matches; Esc shows all"
		}
		lines = append(lines, "  "+m.dim(text))
	}
	height := m.bodyHeight()
	for i := m.top; i < min(m.top+height, m.rows()); i++ {
		lines = append(lines, m.taskLine(i))
	}
	for len(lines) < headLines+1+height {
		lines = append(lines, "")
	}
	if n := m.turnsHeight(); n > 0 {
		lines = append(lines, m.rule("turns"))
		for _, l := range m.turns[max(0, len(m.turns)-(n-1)):] {
			lines = append(lines, m.turnLine(&l, m.width))
		}
		if len(m.turns) == 0 {
			lines = append(lines, "  "+m.dim("no turn yet"))
		}
	}
	if n := m.logHeight(); n > 0 {
		lines = append(lines, m.rule("log"))
		for _, e := range m.events[max(0, len(m.events)-(n-1)):] {
			lines = append(lines, m.eventLine(&e))
		}
	}
	return lines
}

// head is the progress of the tree and what is slow.
func (m *model) head() []string {
	title := m.bold("perdure watch") + "  " + string(m.tree)
	if m.status == nil {
		return []string{title, "", ""}
	}
	s := m.status
	state := status.State(s)
	title += "  " + m.state(s.State, status.Mark(s.State)+" "+state) + "  " + status.Took(&s.Progress)
	if m.name != "" {
		title += "  " + m.dim(human.OneLine(m.name))
	}
	counts := []string{humanize.Comma(s.Completed+s.Failed+s.Cancelled) + " of " + status.Tasks(&s.Progress)}
	for _, c := range []struct {
		n     int64
		state perdure.State
	}{{s.Running, perdure.Running}, {s.Waiting, perdure.Waiting}, {s.Queued, perdure.Queued}, {s.Failed, perdure.Failed},
		{s.Cancelled, perdure.Cancelled}} {
		if c.n > 0 {
			counts = append(counts, m.state(c.state, humanize.Comma(c.n)+" "+string(c.state)))
		}
	}
	switch {
	case s.Interrupted:
		counts = append(counts, status.Interrupted(m.tree))
	case !s.State.Terminal():
		counts = append(counts, "ETA "+human.ETA(s.ETASeconds))
	}
	if cost := status.Cost(s.Usage); cost != status.NoCost {
		counts = append(counts, cost)
	}
	bar := status.Bar(&s.Progress, barWidth) + "  " + strings.Join(counts, ", ")
	return []string{title, bar, m.slow()}
}

const barWidth = 20

// slow names what holds the tree up.
func (m *model) slow() string {
	var parts []string
	if len(m.status.Pauses) > 0 {
		parts = append(parts, m.state(perdure.Cancelled, human.OneLine(strings.Join(m.status.Pauses, "; "))))
	}
	gate := m.status.Gate
	if gate != nil && gate.Run {
		parts = append(parts, m.state(perdure.Waiting, status.Gate(m.tree, gate.Number, gate.Waiting)))
	}
	if s := m.status.Slowest; s != nil {
		parts = append(parts, status.Slowest(s.Task, s.Prompt, m.now.Sub(s.Since), s.Model))
	} else if !m.status.State.Terminal() && (gate == nil || !gate.Rests) {
		parts = append(parts, m.dim("no tasks are running"))
	}
	return strings.Join(parts, "   ")
}

func (m *model) filterText() string {
	if !m.filter.on() && !m.typing {
		return "tasks"
	}
	text := "tasks"
	if m.filter.state != "" {
		text += " that are " + string(m.filter.state)
	}
	if m.filter.text != "" || m.typing {
		text += " with “" + m.filter.text
		if m.typing {
			text += "▏"
		}
		text += "”"
	}
	switch {
	case !m.filter.on():
	case m.searching:
		text += ": searching …"
	case m.full:
		text += fmt.Sprintf(": %d and more", len(m.matches))
	default:
		text += fmt.Sprintf(": %d", len(m.matches))
	}
	return text
}

func (m *model) rule(title string) string {
	left := "─ " + title + " "
	return m.dim(left + strings.Repeat("─", max(0, m.width-ansi.StringWidth(left))))
}

func (m *model) taskLine(i int) string {
	level, sign := 0, "  "
	row := m.row(i)
	if !m.filter.on() {
		p, depth := m.outline.at(i)
		level = depth
		if n := m.outline.node(p); n != nil && n.open {
			sign = "▾ "
		} else if n != nil && n.row.Children > 0 {
			sign = "▸ "
		}
	}
	head := "  "
	if i == m.at() {
		head = "❯ "
	}
	indent := strings.Repeat("  ", min(level, 20))
	if row == nil {
		return head + indent + m.dim("  …")
	}
	tail := status.Figures(row.ActiveMS, row.Usage, "  ")
	note := ""
	switch {
	case row.Error != nil:
		note = " — " + human.OneLine(row.Error.Kind+": "+row.Error.Message)
	case row.Lost:
		note = " — its process has ended"
	case row.Attempts > 1 && row.State == perdure.Running:
		note = fmt.Sprintf(" — attempt %d", row.Attempts)
	case status.RowNote(row) != "":
		note = " — " + status.RowNote(row)
	}
	front := head + indent + sign
	id := row.Task.String()
	room := m.width - ansi.StringWidth(front) - 2 - len(id) - 2 - ansi.StringWidth(tail) - 1
	label := human.OneLine(row.Label)
	if row.Children > 0 {
		label = "(" + humanize.Comma(row.Children) + ") " + label
	}
	// An error is worth more than the end of a prompt.
	label = ansi.Truncate(label, max(room-min(ansi.StringWidth(note), room*2/3), 8), "…")
	text := ansi.Truncate(label+note, max(room, 8), "…")
	text += strings.Repeat(" ", max(0, room-ansi.StringWidth(text)))
	if i == m.at() {
		id = m.bold(id)
		text = m.bold(text)
	}
	shown := status.OfRow(row)
	return front + m.state(shown, status.Mark(shown)) + " " + id + "  " + text + " " + m.dim(tail)
}

// turnLine is a block of a turn in at most width cells.
func (m *model) turnLine(l *turns.Line, width int) string {
	mark := m.state(l.State, status.Mark(l.State))
	if l.Turn == 0 && l.State == perdure.Completed {
		mark = " "
	}
	head := "  " + mark + " " + m.bold(l.Name()) + "  "
	room := max(8, width-ansi.StringWidth(head)-ansi.StringWidth("  "+l.Cost)-1)
	text := l.Text(room)
	return head + text + strings.Repeat(" ", max(0, room-ansi.StringWidth(text))) + "  " + m.dim(l.Cost)
}

func (m *model) eventLine(e *perdure.Event) string {
	task := ""
	if e.Task != 0 {
		task = e.Task.String()
	}
	data := string(e.Data)
	if data == "{}" || data == "null" {
		data = ""
	}
	return fmt.Sprintf("%s  %-11s %-16s %s", m.dim(e.Time.UTC().Format("15:04:05.000")), task, e.Kind,
		m.dim(human.OneLine(data)))
}

func (m *model) treesLines() []string {
	lines := []string{m.bold("perdure watch") + "  trees", ""}
	if len(m.trees) == 0 {
		return append(lines, m.dim("  no trees yet; start one with `perdure run`"))
	}
	height := max(1, m.height-len(lines)-footLines)
	top := max(0, m.chosen-height+1)
	var cells [][]string
	widest := make([]int, 5)
	for i := top; i < min(top+height, len(m.trees)); i++ {
		p := &m.trees[i].status.Progress
		row := []string{status.Mark(p.State) + " " + status.State(&m.trees[i].status), status.Percent(p),
			"of " + status.Tasks(p),
			status.Time(p), status.Cost(p.Usage)}
		for k, cell := range row {
			widest[k] = max(widest[k], ansi.StringWidth(cell))
		}
		cells = append(cells, row)
	}
	shown := m.columns(widest)
	for k, row := range cells {
		t := &m.trees[top+k]
		row = row[:shown]
		for c := range row {
			row[c] += strings.Repeat(" ", widest[c]-ansi.StringWidth(row[c]))
		}
		head, id := "  ", string(t.tree.ID)
		if top+k == m.chosen {
			head, id = "❯ ", m.bold(id)
		}
		row[0] = m.state(t.status.State, row[0])
		lines = append(lines, head+id+"  "+strings.Join(row, "  ")+"  "+human.OneLine(cmp.Or(t.tree.Name, t.prompt)))
	}
	return lines
}

// leastPrompt is the number of cells that belong to the prompt of a tree before any to its figures.
const leastPrompt = 28

// columns returns how many columns of a list of trees leave room for the prompts: cost, time and tasks
// are left out in this order.
func (m *model) columns(widest []int) int {
	room := m.width - len("  tree-00000000  ")
	for _, w := range widest {
		room -= w + 2
	}
	n := len(widest)
	for ; n > 1 && room < leastPrompt; n-- {
		room += widest[n-1] + 2
	}
	return n
}

func (m *model) helpLines() []string {
	lines := []string{m.bold("perdure watch") + "  keys", ""}
	for _, row := range keyHelp() {
		lines = append(lines, "  "+m.bold(fmt.Sprintf("%-22s", row[0]))+row[1])
	}
	const signs = "✓ completed  ◐ partial  ↷ skipped  ● running  ◌ waiting  ○ queued  ✗ failed  ⊘ cancelled"
	lines = append(lines, "", "  "+m.dim(signs))
	return lines
}

// maxShown bounds how much of a text a task's page shows.
const maxShown = 64 << 10

// taskLines returns the details of a task in lines that fit the screen.
func (m *model) taskLines() []string {
	t := m.task
	shown := status.OfTask(t.State, t.Partial, t.Skipped)
	lines := []string{"", m.state(shown, status.Mark(shown)+" "+status.TaskState(shown, t.Attempts, t.Pending > 0)) +
		fmt.Sprintf("  attempt %d of %d, ran %s, %s", t.Attempts, t.MaxAttempts, human.Duration(t.Active),
			status.Usage(t.Usage))}
	section := func(title, text string) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if len(text) > maxShown {
			text = strings.ToValidUTF8(text[:maxShown], "") + "\n… `perdure show` has the rest"
		}
		lines = append(lines, "", m.bold(title))
		for _, one := range strings.Split(ansi.Hardwrap(human.Visible(strings.ReplaceAll(text, "\t", "    ")),
			max(20, m.width-2), true), "\n") {
			lines = append(lines, "  "+one)
		}
	}
	section("Prompt", t.Prompt)
	if t.Error != nil {
		section("Error", t.Error.Kind+": "+t.Error.Message)
	}
	section("Result", t.Result)
	if t.State != perdure.Completed {
		section("Output so far", t.Output)
	}
	if list := turns.Parse(t.Turns); len(list) > 0 {
		lines = append(lines, "", m.bold("Turns"))
		for i := range list {
			for _, l := range turns.Lines(&list[i]) {
				lines = append(lines, m.turnLine(&l, m.width))
			}
		}
	}
	var calls []string
	for i := range t.Calls {
		calls = append(calls, callLine(&t.Calls[i], m.now))
	}
	section("Calls", strings.Join(calls, "\n"))
	return lines
}

func callLine(c *perdure.Call, now time.Time) string {
	end := now
	if c.EndedAt != nil {
		end = *c.EndedAt
	}
	text := fmt.Sprintf("%s  %-9s  %s  %s  %d tokens in, %d out", c.ID, c.State, human.OneLine(c.Model),
		human.Duration(end.Sub(c.StartedAt)), c.InputTokens, c.OutputTokens)
	if c.Error != nil {
		text += "\n  " + human.OneLine(c.Error.Kind+": "+c.Error.Message)
	}
	return text
}

// footer is a question, what was done, or what keys do.
func (m *model) footer() string {
	switch {
	case m.asked != nil:
		return m.state(perdure.Cancelled, m.asked.text+" y n")
	case m.note != "":
		return m.bold(human.OneLine(m.note))
	case m.failed != nil:
		return m.state(perdure.Failed, "cannot read: "+human.OneLine(message(m.failed)))
	case m.typing:
		return m.dim("Enter keeps the filter, Esc drops its text")
	}
	switch m.screen {
	case screenTrees:
		return m.dim("↑↓ move  Enter open  ? keys  q leave")
	case screenTask:
		return m.dim("↑↓ scroll  Esc back  q leave")
	case screenHelp:
		return m.dim("any key goes back")
	case screenTasks:
	}
	return m.dim("↑↓ move  →← fold  Enter show  / text  s state  c cancel  r retry  t trees  ? keys  q leave")
}

func (m *model) paint(text string, style lipgloss.Style) string {
	if !m.cfg.Color || text == "" {
		return text
	}
	return style.Render(text)
}

func (m *model) bold(text string) string { return m.paint(text, lipgloss.NewStyle().Bold(true)) }
func (m *model) dim(text string) string  { return m.paint(text, lipgloss.NewStyle().Faint(true)) }

// state paints a text in the colour of a state: one of the terminal's own, which
// fit its background.
func (m *model) state(s perdure.State, text string) string {
	if s == perdure.Queued {
		return m.dim(text)
	}
	colors := map[perdure.State]color.Color{perdure.Completed: lipgloss.Green, perdure.Failed: lipgloss.Red,
		perdure.Running: lipgloss.Cyan, perdure.Waiting: lipgloss.Blue, perdure.Cancelled: lipgloss.Yellow,
		perdure.Partial: lipgloss.Yellow}
	return m.paint(text, lipgloss.NewStyle().Foreground(colors[s]))
}
