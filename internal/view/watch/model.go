package watch

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/rlm"
)

// screen is what the body of the view shows.
type screen int

const (
	screenTrees screen = iota
	screenTasks
	screenTask
	screenHelp
)

// model is the state of the view. It belongs to the goroutine of the program.
type model struct {
	ctx      context.Context // of Run
	cfg      Config
	requests *requests
	// later waits; tests replace it.
	later func(d time.Duration, msg tea.Msg) tea.Cmd

	width, height int
	screen, under screen // under: what help and task lie over
	round         int    // of queries; the timer of an older one is ignored
	note          string // of the last thing asked for
	failed        error  // of the last look

	trees  []treeLine
	chosen int // of trees

	tree      perdure.TreeID
	name      string
	outline   *outline
	status    *client.Status
	now       time.Time // of the last look
	events    []perdure.Event
	lastEvent int64
	loading   map[pageKey]bool
	hideLog   bool
	// repl is set if a REPL answers the root, turns are its lines.
	repl   bool
	turns  []turns.Line
	cursor place
	top    int // the first row in sight

	filter    filter
	typing    bool // the user writes the filter's text
	matches   []client.OutlineRow
	selected  int // of matches
	full      bool
	searching bool
	searched  time.Time
	searchFor time.Duration

	asked  *question
	task   *perdure.ShowTask
	scroll int
}

type question struct {
	text string
	yes  func() tea.Cmd
}

func newModel(ctx context.Context, cfg Config) *model {
	cfg.Every = cmp.Or(cfg.Every, defaultEvery)
	m := &model{ctx: ctx, cfg: cfg, requests: new(requests), width: 80, height: 24,
		later: func(d time.Duration, msg tea.Msg) tea.Cmd { return tea.Tick(d, func(time.Time) tea.Msg { return msg }) }}
	m.choose(cfg.Tree)
	return m
}

func (m *model) choose(tree perdure.TreeID) {
	m.tree, m.name, m.outline, m.status, m.events, m.lastEvent = tree, "", newOutline(), nil, nil, 0
	m.loading, m.cursor, m.top, m.failed, m.note = make(map[pageKey]bool), place{}, 0, nil, ""
	m.filter, m.typing, m.matches, m.selected, m.asked, m.searching = filter{}, false, nil, 0, nil, false
	m.repl, m.turns = false, nil
	m.screen = screenTasks
	if tree == "" {
		m.screen = screenTrees
	}
	m.round++
}

// Init asks for what is shown first.
func (m *model) Init() tea.Cmd { return m.again() }

// again reads what is shown.
func (m *model) again() tea.Cmd {
	if m.tree == "" {
		return m.list()
	}
	return m.look()
}

// wait looks again after a while: longer after a look that took long, or when
// nothing goes on.
func (m *model) wait(took time.Duration) tea.Cmd {
	pause := max(m.cfg.Every, idleShare*took)
	if m.failed != nil || m.tree == "" || m.quiet() {
		pause = max(pause, 4*m.cfg.Every)
	}
	return m.later(pause, timeUp{m.round})
}

// quiet reports whether no task runs.
func (m *model) quiet() bool { return m.status != nil && m.status.Running == 0 }

// Update takes in a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 6)
		m.keepInSight()
		return m, m.load()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case timeUp:
		if msg.round != m.round {
			return m, nil
		}
		return m, m.again()
	case listed:
		return m, m.listed(msg)
	case looked:
		return m, m.looked(msg)
	case loaded:
		m.loaded(msg)
		return m, m.load()
	case found:
		return m, m.found(msg)
	case acted:
		m.note = msg.text
		if msg.err != nil {
			m.note = "error: " + message(msg.err)
		}
		m.round++
		return m, m.again()
	case opened:
		if msg.err != nil {
			m.note = "error: " + message(msg.err)
			return m, nil
		}
		m.task, m.scroll, m.under, m.screen = &msg.task, 0, screenTasks, screenTask
	}
	return m, nil
}

func (m *model) listed(l listed) tea.Cmd {
	m.failed = l.err
	if m.tree != "" {
		return nil // a tree was opened meanwhile
	}
	if l.err == nil {
		id := m.chosenTree()
		m.trees = l.trees
		for i, t := range m.trees { // stay with the tree, not with the line
			if t.tree.ID == id {
				m.chosen = i
			}
		}
		m.chosen = max(0, min(m.chosen, len(m.trees)-1))
	}
	return m.wait(0)
}

func (m *model) chosenTree() perdure.TreeID {
	if m.chosen < len(m.trees) {
		return m.trees[m.chosen].tree.ID
	}
	return ""
}

func (m *model) looked(l looked) tea.Cmd {
	if l.tree != m.tree {
		return nil
	}
	if m.failed = l.err; l.err != nil {
		return m.wait(l.took)
	}
	m.status, m.now = &l.status, l.at
	m.events = append(m.events, l.events...)
	m.events = m.events[max(0, len(m.events)-keptEvents):]
	m.lastEvent = l.next
	if l.name != "" {
		m.name = l.name
	}
	if l.read {
		m.setTurns(l.turns)
	}
	begins := m.outline.root == nil
	for _, row := range l.rows {
		m.outline.put(row)
		for i := range m.matches {
			if m.matches[i].Task == row.Task {
				m.matches[i] = row
			}
		}
		if begins && m.outline.root != nil {
			m.outline.root.unfold(true)
		}
	}
	m.keepInSight()
	cmds := []tea.Cmd{m.wait(l.took), m.load()}
	stale := len(l.events) > 0 && l.at.Sub(m.searched) > max(searchEvery, idleShare*m.searchFor)
	if m.filter.on() && stale && !m.searching {
		cmds = append(cmds, m.search(false))
	}
	return tea.Batch(cmds...)
}

// setTurns takes in the turns of the root, if a REPL answers it.
func (m *model) setTurns(list []rlm.TaskTurns) {
	m.turns = nil
	for i := range list {
		m.repl = true
		for k := range list[i].Turns {
			m.turns = append(m.turns, turns.Lines(&list[i].Turns[k])...)
		}
	}
}

// rootTask is the root of the tree, 0 before the first look.
func (m *model) rootTask() perdure.TaskID {
	if m.outline.root == nil {
		return 0
	}
	return m.outline.root.row.Task
}

func (m *model) loaded(l loaded) {
	if l.tree != m.tree {
		return
	}
	delete(m.loading, l.key)
	if l.err != nil {
		m.failed = l.err
		return
	}
	for _, row := range l.rows {
		m.outline.put(row)
	}
	m.keepInSight()
}

func (m *model) found(f found) tea.Cmd {
	if f.tree != m.tree {
		return nil
	}
	m.searching = false
	switch {
	case f.filter != m.filter && m.filter.on():
		return m.search(false) // the user went on writing
	case f.filter != m.filter:
		return nil
	}
	if m.failed = f.err; f.err != nil {
		return nil
	}
	if f.more {
		m.matches = append(m.matches, f.rows...)
	} else {
		m.matches, m.searched, m.searchFor = f.rows, f.at, f.took
	}
	m.full = f.full
	m.keepInSight()
	return nil
}

// inSight are the tasks that are on the screen.
func (m *model) inSight() []perdure.TaskID {
	var ids []perdure.TaskID
	for i := m.top; i < min(m.top+m.bodyHeight(), m.rows()); i++ {
		if row := m.row(i); row != nil {
			ids = append(ids, row.Task)
		}
	}
	return ids
}

func (m *model) rows() int {
	if m.filter.on() {
		return len(m.matches)
	}
	return m.outline.size()
}

// row is a loaded row, or nil.
func (m *model) row(i int) *client.OutlineRow {
	if m.filter.on() {
		if i < len(m.matches) {
			return &m.matches[i]
		}
		return nil
	}
	p, _ := m.outline.at(i)
	if n := m.outline.node(p); n != nil {
		return &n.row
	}
	return nil
}

// at is the number of the selected row.
func (m *model) at() int {
	if m.filter.on() {
		return m.selected
	}
	return m.outline.index(m.cursor)
}

func (m *model) moveTo(i int) {
	i = max(0, min(i, m.rows()-1))
	if m.filter.on() {
		m.selected = i
	} else {
		m.cursor, _ = m.outline.at(i)
	}
	m.keepInSight()
}

// keepInSight scrolls so that the selected row is on the screen.
func (m *model) keepInSight() {
	if m.filter.on() {
		m.selected = max(0, min(m.selected, len(m.matches)-1))
	}
	at, height := m.at(), m.bodyHeight()
	m.top = min(m.top, max(0, m.rows()-height))
	m.top = max(0, max(min(m.top, at), at-height+1))
}

// message returns the message of an error for people.
func message(err error) string {
	var own *perdure.Error
	if errors.As(err, &own) && own.Msg != "" {
		return own.Msg
	}
	return err.Error()
}
