package loops

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// CurrentFile is the file of the only loop of a folder, as programs before version 2 of the
// layout write it.
const CurrentFile = "ralph/current-loop.json"

// oldNames returns the members of a state by their names in previous forms.
func oldNames() map[string]string {
	return map[string]string{"id": "loop_id", "loopId": "loop_id", "current_iteration": "iteration",
		"currentIteration": "iteration", "objective": "task", "completionCriteria": "completion_criteria",
		"completion": "completion_criteria",
		"startTime":  "started_at", "startedAt": "started_at", "lastUpdate": "last_updated", "lastUpdated": "last_updated",
		"endTime": "completed_at", "completedAt": "completed_at", "currentPid": "pid", "workingDir": "working_directory"}
}

// oldSettings returns the members of the configuration by their names in previous forms, in
// which they are members of the state.
func oldSettings() map[string]string {
	return map[string]string{"max_iterations": "max_iterations", "maxIterations": "max_iterations",
		"checkpoint_frequency": "checkpoint_interval", "timeoutMinutes": "timeout_minutes"}
}

// IsState reports whether a value is the state of a loop, in any of its forms.
func IsState(v *jsontree.Value) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return v.Get(name) != nil })
	}
	return has("loop_id", "loopId") || has("task", "objective") && has("current_iteration", "currentIteration",
		"completion_criteria", "completionCriteria", "max_iterations", "maxIterations")
}

// current changes a state in a previous form to the current one. Members without a name
// there stay as they are. It reports whether the form was a previous one.
func (x *fitter) current(v *jsontree.Value) bool {
	if v.Kind != jsontree.Object || v.Get("loop_id") != nil || !IsState(v) {
		return false
	}
	settings := v.Get("configuration")
	for i := range v.Members {
		m := &v.Members[i]
		if name, old := oldSettings()[m.Name]; old && (settings == nil || settings.Kind == jsontree.Object) {
			if settings == nil {
				settings = &jsontree.Value{Kind: jsontree.Object, Start: m.Value.Start}
			}
			if settings.Get(name) == nil {
				x.note(Corrected, m.Value, "%s was read as configuration.%s", m.Name, name)
				settings.Add(name, m.Value)
				m.Name = ""
			}
			continue
		}
		name, old := oldNames()[m.Name]
		if old && v.Get(name) == nil {
			x.note(Corrected, m.Value, "%s was read as %s", m.Name, name)
			m.Name = name
		}
	}
	v.Members = slices.DeleteFunc(v.Members, func(m jsontree.Member) bool { return m.Name == "" })
	if settings != nil && v.Get("configuration") == nil {
		v.Add("configuration", settings)
	}
	if id := v.Get("loop_id"); id != nil && !idPattern().MatchString(id.Text()) {
		v.Add(free(v, v, "loop_id"), id)
	}
	x.criteria(v)
	return true
}

// criteria changes a list of criteria to a text with one of them in each line.
func (x *fitter) criteria(v *jsontree.Value) {
	list := v.Get("completion_criteria")
	if !list.Is(jsontree.Array) || slices.ContainsFunc(list.Items,
		func(item *jsontree.Value) bool { return item.Kind != jsontree.String }) {
		return
	}
	lines := make([]string, len(list.Items))
	for i, item := range list.Items {
		lines[i] = item.Text()
	}
	x.note(Corrected, list, "completion_criteria is a list; it became a text of %d lines", len(lines))
	for i := range v.Members {
		if v.Members[i].Name == "completion_criteria" {
			v.Members[i].Value = stringAt(list, strings.Join(lines, "\n"))
		}
	}
	v.Add(free(v, v, "completion_criteria"), list)
}

// lone returns the loop of a state outside of a folder of its own, nil if it has none or
// if its folder is there.
func (m *importer) lone(name string, folders []*loop) *loop {
	if !slices.Contains(m.Files, name) {
		return nil
	}
	text, err := m.Read(name)
	if err != nil {
		text = nil // read and noted again
	}
	v, _ := jsontree.Parse(text, jsontree.Options{Partial: true}) // noted later
	id := ""
	for _, key := range []string{"loop_id", "loopId", "id"} {
		if id == "" && v != nil {
			id = v.Get(key).Text()
		}
	}
	l := &loop{folder: id, lone: name, id: validID(id),
		files: map[string]string{stateFile: name},
		docs:  make(map[string]*document)}
	if id == "" {
		l.id = namelessID(v)
		l.folder = l.id
	}
	if slices.ContainsFunc(folders, func(f *loop) bool { return f.id == l.id }) {
		m.Note(Note{Kind: Left, File: name, Message: "not imported: the loop has a folder"})
		return nil
	}
	return l
}

// namelessID returns the ID of a loop whose state has none.
func namelessID(v *jsontree.Value) string {
	return newID("current-loop", v.Get("started_at").Text()+"\x00"+v.Get("task").Text())
}

// complement adds what a state in a previous form lacks, so that the loop can be continued.
func (x *fitter) complement(v *jsontree.Value) {
	for _, d := range []struct {
		key   string
		value *jsontree.Value
	}{{"version", jsontree.NewString(stateVersion)}, {"loop_id", jsontree.NewString(namelessID(v))},
		{"status", jsontree.NewString("paused")}, {"iteration", jsontree.NewNumber(0)}} {
		if v.Get(d.key) == nil {
			x.note(Default, v, "there is no %s; it was set to %s", d.key, d.value.Append(nil))
			v.Add(d.key, d.value)
		}
	}
}

// stateVersion is the version of states that have none.
const stateVersion = "2.0.0"

// layoutPrefix begins the IDs of loops in the layout.
const layoutPrefix = "ralph-"

// LayoutID returns the ID of a loop in exports, which other programs accept.
func LayoutID(id string) string {
	if strings.HasPrefix(id, layoutPrefix) || len(layoutPrefix)+len(id) > maxIDBytes {
		return id
	}
	return layoutPrefix + id
}

// sameIDs returns the IDs that a loop can have in the store.
func sameIDs(id string) []string {
	ids := []string{id}
	if short, ok := strings.CutPrefix(id, layoutPrefix); ok && idPattern().MatchString(short) {
		ids = append(ids, short)
	}
	return ids
}
