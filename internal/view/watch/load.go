package watch

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/rlm"
)

const (
	// pageRows is how many rows are loaded at once.
	pageRows = 100
	// keptEvents is how many events the log holds, and a look asks for.
	keptEvents = 200
	// listedTrees is how many trees are listed.
	listedTrees = 50
	// searchEvery is the least time between two repetitions of a search.
	searchEvery = 2 * time.Second
)

// The messages that requests end with.
type (
	// looked is a look at a tree.
	looked struct {
		tree   perdure.TreeID
		name   string // of the first look
		status client.Status
		events []perdure.Event
		next   int64
		rows   []client.OutlineRow
		turns  []rlm.TaskTurns // of the root; nil without a REPL
		read   bool            // turns were asked for
		took   time.Duration
		at     time.Time
		err    error
	}
	// loaded is a page of children.
	loaded struct {
		tree perdure.TreeID
		key  pageKey
		rows []client.OutlineRow
		err  error
	}
	// found is what a search found; from the beginning unless more is set.
	found struct {
		tree   perdure.TreeID
		filter filter
		rows   []client.OutlineRow
		more   bool
		full   bool // there may be more
		took   time.Duration
		at     time.Time
		err    error
	}
	// listed is a list of trees.
	listed struct {
		trees []treeLine
		err   error
	}
	// acted is the end of something the user asked for.
	acted struct {
		text string
		err  error
	}
	// opened is a task with its prompt and result.
	opened struct {
		task perdure.ShowTask
		err  error
	}
	// timeUp says that it is time for the next look.
	timeUp struct{ round int }
)

// pageKey names a page of the children of a task.
type pageKey struct {
	parent perdure.TaskID
	page   int
}

type treeLine struct {
	tree   perdure.Tree
	prompt string // the beginning
	status client.Status
}

type filter struct {
	text  string
	state perdure.State
}

func (f filter) on() bool { return f != filter{} }

func (f filter) query(tree perdure.TreeID) client.OutlineQuery {
	q := client.OutlineQuery{Tree: tree, Text: f.text, Limit: pageRows}
	if f.state != "" {
		q.States = []perdure.State{f.state}
	}
	return q
}

// request makes a command of a function that asks the server.
func (m *model) request(ask func(ctx context.Context, c *client.Client) tea.Msg) tea.Cmd {
	ctx, c, r := m.ctx, m.cfg.Client, m.requests
	return func() tea.Msg {
		if !r.begin() {
			return nil
		}
		defer r.wg.Done()
		return ask(ctx, c)
	}
}

// look asks for what changed of the tree that is shown.
func (m *model) look() tea.Cmd {
	tree, after, quiet, sight := m.tree, m.lastEvent, m.quiet(), m.inSight()
	root, repl := m.rootTask(), m.repl
	return m.request(func(ctx context.Context, c *client.Client) tea.Msg {
		begin := time.Now()
		l := looked{tree: tree, next: after}
		if l.status, l.err = c.Status(ctx, tree); l.err != nil {
			return l
		}
		page, err := c.NewestEvents(ctx, after, tree, keptEvents)
		if l.err = err; err != nil {
			return l
		}
		l.events, l.next = page.Events, page.Next
		switch {
		case len(sight) == 0: // the first look
			l.rows, l.err = first(ctx, c, tree)
			if t, err := c.Tree(ctx, tree); err == nil {
				l.name = t.Name
			}
			if l.err == nil && len(l.rows) > 0 {
				l.readTurns(ctx, c, l.rows[0].Task)
			}
		case len(l.events) > 0 || !quiet:
			l.rows, l.err = c.Outline(ctx, client.OutlineQuery{Tree: tree, Tasks: sight})
			if l.err == nil && repl {
				l.readTurns(ctx, c, root)
			}
		}
		l.at = time.Now()
		l.took = l.at.Sub(begin)
		return l
	})
}

// readTurns asks for the turns of the root. A daemon of an earlier version lists none.
func (l *looked) readTurns(ctx context.Context, c *client.Client, root perdure.TaskID) {
	l.read = true
	if l.turns, l.err = c.Turns(ctx, l.tree, root); errors.Is(l.err, perdure.ErrNotFound) {
		l.err = nil
	}
}

// first asks for the root and its first children.
func first(ctx context.Context, c *client.Client, tree perdure.TreeID) ([]client.OutlineRow, error) {
	rows, err := c.Outline(ctx, client.OutlineQuery{Tree: tree, Limit: 1})
	if err != nil || len(rows) == 0 {
		return rows, err
	}
	kids, err := c.Outline(ctx, client.OutlineQuery{Tree: tree, Parent: rows[0].Task, Limit: pageRows})
	return append(rows, kids...), err
}

// load asks for the pages of rows that are in sight and not there.
func (m *model) load() tea.Cmd {
	if m.filter.on() || m.outline.root == nil {
		return nil
	}
	var cmds []tea.Cmd
	for i := m.top; i < min(m.top+m.bodyHeight(), m.outline.size()); i++ {
		p, _ := m.outline.at(i)
		if m.outline.node(p) != nil {
			continue
		}
		key := pageKey{p.parent.row.Task, p.pos / pageRows}
		if m.loading[key] {
			continue
		}
		m.loading[key] = true
		tree := m.tree
		cmds = append(cmds, m.request(func(ctx context.Context, c *client.Client) tea.Msg {
			rows, err := c.Outline(ctx, client.OutlineQuery{Tree: tree, Parent: key.parent, From: int64(key.page * pageRows),
				Limit: pageRows})
			return loaded{tree: tree, key: key, rows: rows, err: err}
		}))
	}
	return tea.Batch(cmds...)
}

// search asks for the tasks that match the filter: the first pages, so many as
// there are rows, or the next one.
func (m *model) search(more bool) tea.Cmd {
	tree, f, q, want := m.tree, m.filter, m.filter.query(m.tree), max(len(m.matches), 1)
	if more {
		q.After, want = m.matches[len(m.matches)-1].Task, 1
	}
	m.searching = true
	return m.request(func(ctx context.Context, c *client.Client) tea.Msg {
		begin := time.Now()
		r := found{tree: tree, filter: f, more: more, full: true}
		for r.full && len(r.rows) < want && r.err == nil {
			var page []client.OutlineRow
			page, r.err = c.Outline(ctx, q)
			r.rows = append(r.rows, page...)
			if r.full = len(page) == q.Limit; r.full {
				q.After = page[len(page)-1].Task
			}
		}
		r.at = time.Now()
		r.took = r.at.Sub(begin)
		return r
	})
}

// list asks for the newest trees. What ended is asked for once.
func (m *model) list() tea.Cmd {
	known := make(map[perdure.TreeID]treeLine)
	for _, t := range m.trees {
		known[t.tree.ID] = t
	}
	return m.request(func(ctx context.Context, c *client.Client) tea.Msg {
		page, err := c.Trees(ctx, perdure.TreeFilter{Limit: listedTrees})
		if err != nil {
			return listed{err: err}
		}
		lines := make([]treeLine, 0, len(page.Trees))
		for _, t := range page.Trees {
			line, ok := known[t.ID]
			if ended := t.State.Terminal() && line.status.State == t.State; !ok || !ended || line.tree.Reopened != t.Reopened {
				s, err := c.Status(ctx, t.ID)
				if err != nil {
					return listed{err: err}
				}
				line.status = s
			}
			if line.tree = t; !ok {
				root, err := c.Outline(ctx, client.OutlineQuery{Tree: t.ID, Tasks: []perdure.TaskID{t.Root}})
				if err != nil {
					return listed{err: err}
				}
				if len(root) > 0 {
					line.prompt = root[0].Label
				}
			}
			lines = append(lines, line)
		}
		return listed{trees: lines}
	})
}
