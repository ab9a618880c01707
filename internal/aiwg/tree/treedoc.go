package tree

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// treeDoc is a tree.json.
type treeDoc struct {
	Version       string          `json:"version"`
	ID            string          `json:"tree_id"`
	Name          string          `json:"name,omitempty"`
	Kind          string          `json:"kind,omitempty"`
	Configuration json.RawMessage `json:"configuration,omitempty"`
	Limits        *perdure.Limits `json:"limits,omitempty"`
	Root          any             `json:"root_task"`
	Metadata      any             `json:"metadata"`
}

// treeMeta is the metadata of a tree.json. All of it follows from the tasks.
type treeMeta struct {
	Status      string     `json:"status"`
	Partial     bool       `json:"partial,omitempty"`
	TreeID      string     `json:"tree_id,omitempty"`
	Prompt      string     `json:"root_prompt"`
	Depth       int        `json:"max_depth"`
	Total       int        `json:"total_nodes"`
	Completed   int        `json:"completed_nodes"`
	Failed      int        `json:"failed_nodes"`
	CostUSD     float64    `json:"total_cost_usd"`
	Tokens      int64      `json:"total_tokens"`
	CreatedAt   time.Time  `json:"created_at"`
	CompletedAt *time.Time `json:"completed_at,omitempty"`
	Duration    int64      `json:"duration_ms,omitempty"`
	micros      int64
}

// add adds a task, the root first. state is its state in the files.
func (m *treeMeta) add(t *perdure.Task, state string) {
	if m.Total++; m.Total == 1 {
		m.Status, m.Prompt, m.CreatedAt = state, t.Prompt, t.CreatedAt
		if perdure.State(state).Terminal() && !t.CompletedAt.IsZero() {
			m.CompletedAt, m.Duration = &t.CompletedAt, max(t.CompletedAt.Sub(t.CreatedAt).Milliseconds(), 0)
		}
	}
	switch state {
	case string(perdure.Completed):
		m.Completed++
	case string(perdure.Failed):
		m.Failed++
	}
	m.Depth = max(m.Depth, t.Depth)
	m.micros += int64(t.Usage.CostUSD*1e6 + 0.5)
	m.CostUSD = float64(m.micros) / 1e6
	m.Tokens += t.Usage.InputTokens + t.Usage.OutputTokens
}

// keepTree keeps the members of the tree's metadata that an export would not write.
func (r *reader) keepTree(g *tree) {
	if g.meta == nil {
		return
	}
	own := treeMeta{TreeID: g.id}
	for _, t := range g.order {
		own.add(&t.Task, cmp.Or(t.foreign.State, exportState(t.State)))
	}
	left := leftOver(g.meta.n, &own)
	delete(left, "status")
	delete(left, "partial")
	have := make(map[string]json.RawMessage)
	if json.Unmarshal(jsontree.MustMarshal(&own), &have) != nil {
		return
	}
	for _, key := range sortedKeys(left) {
		switch derived, ours := have[key]; {
		case ours:
			g.meta.noteAs(Kept, g.meta.n.Get(key),
				"metadata.%s is %.80s, and by the tasks it is %.80s; exports have the former", key, left[key], derived)
		default:
			r.note(Kept, g.file, g.meta.n.Get(key).Start, "metadata.%s is kept in the tree's configuration", key)
		}
	}
	g.record.Metadata = left
}

// treeDoc returns the tree.json of a tree.
func (x *exporter) treeDoc(t *exportTree) any {
	d := treeDoc{Version: firstVersion, ID: t.id, Name: t.Name, Kind: t.Kind, Configuration: t.Config}
	var more, fields map[string]json.RawMessage
	if t.record != nil {
		d.Version = cmp.Or(t.record.Version, firstVersion)
		d.Kind, d.Configuration, fields, more = t.record.Kind, t.record.Configuration, t.record.Fields, t.record.Metadata
	}
	if t.Limits != (perdure.Limits{}) {
		d.Limits = &t.Limits
	}
	m := treeMeta{Partial: t.Partial, TreeID: t.id}
	nodes := make(map[perdure.TaskID]*nodeDoc, len(t.tasks))
	for i := range t.tasks {
		task := &t.tasks[i]
		state := cmp.Or(foreignState(task), exportState(task.State))
		m.add(task, state)
		n := x.nodeDoc(t, task, state)
		nodes[task.ID] = n
		if up := nodes[task.Parent]; up != nil { // parents come first
			up.Children = append(up.Children, n.withRest(task.Metadata))
			continue
		}
		d.Root = n.withRest(task.Metadata)
	}
	d.Metadata = overlaid(treePart, &m, more)
	return extended[treeDoc]{doc: d, more: fields}
}
