package aiwg

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/perdure/perdure"
)

// names gives out IDs, each once in an export.
type names struct {
	taken map[string]bool
	last  int64 // of store IDs given out because none was free
}

func newNames() *names { return &names{taken: make(map[string]bool)} }

// take returns the first of the wanted IDs that is free, else one of a prefix
// and so many hexadecimal digits that depends on them.
func (n *names) take(prefix string, digits int, wanted ...string) string {
	for _, id := range wanted {
		if id != "" && !n.taken[id] {
			n.taken[id] = true
			return id
		}
	}
	h := fnv.New32a()
	for range 1 << 20 {
		_, _ = h.Write([]byte(wanted[len(wanted)-1])) // never fails
		id := fmt.Sprintf("%s%0*x", prefix, digits, h.Sum32())
		if !n.taken[id] {
			n.taken[id] = true
			return id
		}
	}
	return ""
}

// taskName is what a task is called in an export.
type taskName struct{ id, node string }

// nameTasks names the tasks of a tree.
func (x *exporter) nameTasks(list []perdure.Task) map[perdure.TaskID]taskName {
	out := make(map[perdure.TaskID]taskName, len(list))
	for i := range list {
		t := &list[i]
		f := foreignOf(t.Metadata)
		if f == nil {
			f = &foreign{}
		}
		out[t.ID] = taskName{x.taskNames.store(f.ID, t.ID.String()), x.nodeNames.take("task-", 8, f.Node, t.Node.String())}
	}
	return out
}

// store returns the first free of the wanted store IDs, or the next number.
func (n *names) store(wanted ...string) string {
	for _, id := range wanted {
		if id != "" && !n.taken[id] {
			n.taken[id] = true
			return id
		}
	}
	for {
		n.last++
		id := perdure.TaskID(n.last).String()
		if !n.taken[id] {
			n.taken[id] = true
			return id
		}
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
