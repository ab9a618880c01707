package tree

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
)

// names assigns IDs, each once in an export. First all existing IDs are reserved, then
// the other records get free ones.
type names struct {
	taken map[string]bool
	last  int64 // the last store ID that was assigned by counting
}

func newNames() *names { return &names{taken: make(map[string]bool)} }

// reserve returns the ID if it was free, else "".
func (n *names) reserve(id string) string {
	if id == "" || n.taken[id] {
		return ""
	}
	n.taken[id] = true
	return id
}

// hex returns the reserved ID, else id if it is free, else an ID of 8 hexadecimal
// digits that depends on id.
func (n *names) hex(reserved, id, prefix string) string {
	if reserved != "" {
		return reserved
	}
	for h := fnv.New32a(); n.reserve(id) == ""; id = fmt.Sprintf("%s%08x", prefix, h.Sum32()) {
		_, _ = h.Write([]byte(id)) // never fails
	}
	return id
}

// store returns the reserved ID, else the store ID if it is free, else the next free
// number.
func (n *names) store(reserved string, id perdure.TaskID) string {
	if reserved != "" {
		return reserved
	}
	for n.reserve(id.String()) == "" {
		n.last++
		id = perdure.TaskID(n.last)
	}
	return id.String()
}

// taskName is the IDs of a task in an export. wanted is an ID that another task of the store
// may have.
type taskName struct{ id, node, wanted string }

// reserveTasks reserves the existing IDs of the tasks of a tree.
func (x *exporter) reserveTasks(list []perdure.Task) map[perdure.TaskID]taskName {
	out := make(map[perdure.TaskID]taskName, len(list))
	for i := range list {
		t := &list[i]
		f := foreignOf(t.Metadata)
		if f == nil {
			f = &foreign{ID: t.ID.String(), Node: t.Node.String()}
		}
		n := taskName{node: x.nodeNames.reserve(f.Node)}
		if f.ID == t.ID.String() {
			n.id = x.taskNames.reserve(f.ID)
		} else {
			n.wanted = f.ID
		}
		out[t.ID] = n
	}
	return out
}

// reserveWanted reserves the IDs of the tasks that have another one in the store.
func (x *exporter) reserveWanted(names map[perdure.TaskID]taskName) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		if n := names[id]; n.id == "" {
			n.id = x.taskNames.reserve(n.wanted)
			names[id] = n
		}
	}
}

// number returns the number of an ID of a task.
func number(id string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "task-"), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n
}

// order sorts the tasks of a tree as all exports of it do, wherever it was imported: parents
// first, then by their IDs in the files.
func (t *exportTree) order() {
	slices.SortStableFunc(t.tasks, func(a, b perdure.Task) int {
		nameA, nameB := t.names[a.ID].id, t.names[b.ID].id
		return cmp.Or(a.Depth-b.Depth, cmp.Compare(number(nameA), number(nameB)), cmp.Compare(nameA, nameB))
	})
}

// assignTasks assigns IDs to the tasks whose IDs were not free.
func (x *exporter) assignTasks(names map[perdure.TaskID]taskName) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		n := names[id]
		names[id] = taskName{id: x.taskNames.store(n.id, id), node: x.nodeNames.hex(n.node, id.Node().String(), "task-")}
	}
}

// foreignState returns the state of an imported task in its file, "" if the task was
// not imported or has changed since.
func foreignState(t *perdure.Task) string {
	f := foreignOf(t.Metadata)
	if f == nil || f.State == "" {
		return ""
	}
	if t.State == perdure.Queued || t.State == perdure.Cancelled && t.Error != nil && t.Error.Kind == unfinished {
		return f.State
	}
	return ""
}

// without returns the members of an object except one.
func without(raw json.RawMessage, key string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	delete(all, key)
	return all
}
