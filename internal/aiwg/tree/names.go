package tree

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/perdure/perdure"
)

// names gives out IDs, each once in an export. What has an ID of its own, here
// or where it comes from, asks first; what is left takes what is free.
type names struct {
	taken map[string]bool
	last  int64 // of store IDs given out because none was free
}

func newNames() *names { return &names{taken: make(map[string]bool)} }

// own gives out an ID if it is free, else nothing.
func (n *names) own(id string) string {
	if id == "" || n.taken[id] {
		return ""
	}
	n.taken[id] = true
	return id
}

// hex gives out what was given before, or an ID if it is free, or else one of 8
// hexadecimal digits that depends on it.
func (n *names) hex(given, id, prefix string) string {
	if given != "" {
		return given
	}
	for h := fnv.New32a(); n.own(id) == ""; id = fmt.Sprintf("%s%08x", prefix, h.Sum32()) {
		_, _ = h.Write([]byte(id)) // never fails
	}
	return id
}

// store gives out what was given before, or a store ID if it is free, or else
// the next number.
func (n *names) store(given string, id perdure.TaskID) string {
	if given != "" {
		return given
	}
	for n.own(id.String()) == "" {
		n.last++
		id = perdure.TaskID(n.last)
	}
	return id.String()
}

// taskName is what a task is called in an export.
type taskName struct{ id, node string }

// ownTasks gives the tasks of a tree the IDs they have, as far as they are free.
func (x *exporter) ownTasks(list []perdure.Task) map[perdure.TaskID]taskName {
	out := make(map[perdure.TaskID]taskName, len(list))
	for i := range list {
		t := &list[i]
		f := foreignOf(t.Metadata)
		if f == nil {
			f = &foreign{ID: t.ID.String(), Node: t.Node.String()}
		}
		out[t.ID] = taskName{x.taskNames.own(f.ID), x.nodeNames.own(f.Node)}
	}
	return out
}

// restTasks gives the others what is left.
func (x *exporter) restTasks(names map[perdure.TaskID]taskName) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		n := names[id]
		names[id] = taskName{x.taskNames.store(n.id, id), x.nodeNames.hex(n.node, id.Node().String(), "task-")}
	}
}

// foreignState is what the file that a task came from says it is, as long as
// nobody changed the task here; else "".
func foreignState(t *perdure.Task) string {
	f := foreignOf(t.Metadata)
	if f == nil || f.State == "" {
		return ""
	}
	untouched := t.State == perdure.Queued || t.State == perdure.Cancelled && t.Error != nil && t.Error.Kind == unfinished
	if !untouched {
		return ""
	}
	return f.State
}

// without returns the members of an object but one.
func without(raw json.RawMessage, key string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	delete(all, key)
	return all
}
