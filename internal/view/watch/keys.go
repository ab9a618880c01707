package watch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/human"
)

func keyHelp() [][2]string {
	return [][2]string{
		{"↑ ↓  k j", "move"},
		{"PgUp PgDn  Home End", "move by a page, to the first, to the last"},
		{"→ ←  l h  space", "unfold and fold; ← on a folded task goes to its parent"},
		{"Enter", "details of a task: prompt, error, result, turns, calls"},
		{"/", "filter tasks by text in the prompt or ID"},
		{"s", "filter tasks by state: failed, running, queued, …"},
		{"Esc", "clear the filter; without a filter, go to the list of trees"},
		{"c", "cancel the task and everything below it"},
		{"C", "cancel the tree"},
		{"r", "retry a failed task"},
		{"e", "show or hide the log of events, and the turns of a REPL"},
		{"t", "the list of trees"},
		{"?", "this help"},
		{"q  Ctrl-C", "quit; running trees continue"},
	}
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.asked != nil:
		return m.answer(name)
	case m.typing:
		return m.write(k)
	case name == "q":
		return tea.Quit
	case name == "?" && m.screen != screenHelp:
		m.under, m.screen = m.screen, screenHelp
		return nil
	}
	m.note = ""
	switch m.screen {
	case screenHelp:
		m.screen = m.under
	case screenTrees:
		return m.treesKey(name)
	case screenTask:
		m.taskKey(name)
	case screenTasks:
		if to, ok := moved(name, m.at(), max(1, m.bodyHeight()-1)); ok {
			m.moveTo(to)
			return tea.Batch(m.load(), m.searchOn())
		}
		return m.tasksKey(name)
	}
	return nil
}

func (m *model) answer(name string) tea.Cmd {
	q := m.asked
	m.asked = nil
	if name == "y" || name == "Y" {
		return q.yes()
	}
	m.note = "nothing was done"
	return nil
}

func (m *model) treesKey(name string) tea.Cmd {
	if to, ok := moved(name, m.chosen, max(1, m.height-3)); ok {
		m.chosen = max(0, min(to, len(m.trees)-1))
	}
	if id := m.chosenTree(); id != "" && (name == "enter" || name == "right" || name == "l") {
		m.choose(id)
		return m.look()
	}
	return nil
}

// moved returns where a key moves to from a line; false for other keys. The result can be
// before the first and behind the last line.
func moved(name string, from, page int) (to int, ok bool) {
	switch name {
	case "up", "k":
		return from - 1, true
	case "down", "j":
		return from + 1, true
	case "pgup", "ctrl+u":
		return from - page, true
	case "pgdown", "ctrl+d":
		return from + page, true
	case "home", "g":
		return 0, true
	case "end", "G":
		return math.MaxInt, true
	}
	return from, false
}

func (m *model) tasksKey(name string) tea.Cmd {
	switch name {
	case "right", "l":
		return m.fold(true)
	case "left", "h":
		return m.fold(false)
	case "space":
		if n := m.outline.node(m.cursor); n != nil && !m.filter.on() {
			return m.fold(!n.open)
		}
	case "enter":
		return m.openTask()
	case "/":
		m.typing = true
	case "s":
		return m.refilter(filter{m.filter.text, nextState(m.filter.state)})
	case "esc":
		if m.filter.on() {
			return m.refilter(filter{})
		}
		return m.toTrees()
	case "t":
		return m.toTrees()
	case "e":
		m.hideLog = !m.hideLog
		m.keepInSight()
		return m.load()
	case "c":
		m.askCancelTask()
	case "C":
		m.askCancelTree()
	case "r":
		m.askRetry()
	}
	return nil
}

func (m *model) toTrees() tea.Cmd {
	m.choose("")
	return m.list()
}

// fold unfolds the selected task or folds it; folding a folded one goes to its
// parent.
func (m *model) fold(open bool) tea.Cmd {
	n := m.outline.node(m.cursor)
	if m.filter.on() || n == nil {
		return nil
	}
	switch {
	case open:
		n.unfold(true)
	case n.open:
		n.unfold(false)
	case n.parent != nil:
		m.cursor = n.parent.place()
	}
	m.keepInSight()
	return m.load()
}

// filterStates are the states that s goes through.
func filterStates() []perdure.State {
	return []perdure.State{"", perdure.Failed, perdure.Running, perdure.Queued, perdure.Waiting, perdure.Completed,
		perdure.Cancelled}
}

func nextState(s perdure.State) perdure.State {
	all := filterStates()
	return all[(slices.Index(all, s)+1)%len(all)]
}

func (m *model) write(k tea.KeyPressMsg) tea.Cmd {
	text := m.filter.text
	switch k.String() {
	case "enter":
		m.typing = false
		return nil
	case "esc":
		m.typing = false
		return m.refilter(filter{state: m.filter.state})
	case "backspace":
		if runes := []rune(text); len(runes) > 0 {
			text = string(runes[:len(runes)-1])
		}
	case "ctrl+u":
		text = ""
	default:
		text += strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, k.Text)
	}
	if text == m.filter.text {
		return nil
	}
	return m.refilter(filter{text, m.filter.state})
}

func (m *model) refilter(f filter) tea.Cmd {
	m.filter, m.matches, m.selected, m.top, m.full = f, nil, 0, 0, false
	if !f.on() {
		m.keepInSight()
		return m.load()
	}
	if m.searching {
		return nil // one search at a time: its end begins the next
	}
	return m.search(false)
}

// searchOn asks for more matches when the last is near.
func (m *model) searchOn() tea.Cmd {
	if !m.filter.on() || !m.full || m.searching || m.selected < len(m.matches)-m.bodyHeight() {
		return nil
	}
	return m.search(true)
}

// subject is the selected task, or nil.
func (m *model) subject() *client.OutlineRow {
	if m.rows() == 0 {
		return nil
	}
	return m.row(m.at())
}

func (m *model) askCancelTask() {
	row := m.subject()
	switch {
	case row == nil:
	case row.State.Terminal():
		m.note = fmt.Sprintf("%s is %s: there is nothing to cancel", row.Task, row.State)
	default:
		id := row.Task
		m.asked = &question{fmt.Sprintf("cancel %s and everything below it?", id), func() tea.Cmd {
			return m.cancelled(func(ctx context.Context, c *client.Client) (int64, error) {
				return c.CancelTask(ctx, id, "cancelled in watch")
			})
		}}
	}
}

func (m *model) askCancelTree() {
	if m.status == nil || m.status.State.Terminal() {
		m.note = "the tree has ended: there is nothing to cancel"
		return
	}
	id := m.tree
	m.asked = &question{fmt.Sprintf("cancel all of %s?", id), func() tea.Cmd {
		return m.cancelled(func(ctx context.Context, c *client.Client) (int64, error) {
			return c.CancelTree(ctx, id, "cancelled in watch")
		})
	}}
}

func (m *model) cancelled(cancel func(context.Context, *client.Client) (int64, error)) tea.Cmd {
	return m.request(func(ctx context.Context, c *client.Client) tea.Msg {
		n, err := cancel(ctx, c)
		return acted{text: "cancelled " + human.Count(n, "task"), err: err}
	})
}

func (m *model) askRetry() {
	row := m.subject()
	if row == nil {
		return
	}
	if row.State != perdure.Failed {
		m.note = fmt.Sprintf("%s is %s: only failed tasks can be retried", row.Task, row.State)
		return
	}
	id, next := row.Task, "`perdure resume "+string(m.tree)+"` runs it"
	if m.cfg.Daemon {
		next = "the daemon runs it"
	}
	m.asked = &question{fmt.Sprintf("retry %s?", id), func() tea.Cmd {
		return m.request(func(ctx context.Context, c *client.Client) tea.Msg {
			_, err := c.RetryTask(ctx, id)
			return acted{text: fmt.Sprintf("%s is queued again; %s", id, next), err: err}
		})
	}}
}

func (m *model) openTask() tea.Cmd {
	row := m.subject()
	if row == nil {
		return nil
	}
	id := row.Task
	return m.request(func(ctx context.Context, c *client.Client) tea.Msg {
		t, err := c.Task(ctx, id)
		return opened{t, err}
	})
}

func (m *model) taskKey(name string) {
	page := max(1, m.height-3)
	if name == "space" {
		name = "pgdown"
	}
	to, ok := moved(name, m.scroll, page)
	if !ok {
		m.screen, m.task = screenTasks, nil
		return
	}
	m.scroll = max(0, min(to, len(m.taskLines())-page))
}
