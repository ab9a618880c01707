package rpc_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/testing/doctest"
)

var update = flag.Bool("update", false, "write the table of cases into the documentation")

// publicCase is a case of the public tests of the task store of that daemon, in the words of
// perdure.
type publicCase struct {
	what string
	// run fails if perdure behaves otherwise; nil for a case that has no meaning here.
	run func(t *caseTest)
	// differs is why perdure behaves otherwise, or why the case has no meaning.
	differs string
}

// caseTest is the test of a case, with a server of its own.
type caseTest struct {
	*testing.T
	*client
	bed *bed
}

// is fails the test unless something is so.
func (t *caseTest) is(what string, ok bool) {
	t.T.Helper()
	if !ok {
		t.Errorf("not so: %s", what)
	}
}

// made submits tasks, of which the first is started and the second completed.
func (t *caseTest) made(n int) {
	t.T.Helper()
	for i := range n {
		t.call("task.submit", obj{"prompt": fmt.Sprintf("p%d", i+1), "agent": []string{"a", "b"}[i%2]})
	}
	if n > 0 {
		t.call("task.start", obj{"taskId": "task-0001", "pid": 1234})
	}
	if n > 1 {
		t.call("task.complete", obj{"taskId": "task-0002", "result": "r"})
	}
}

// summary returns a summary.
func (t *caseTest) summary() (s struct {
	Stats   struct{ Total int }
	Running []struct{ ID, Agent, StartedAt string }
	Recent  []struct{ ID, Prompt, State, CompletedAt string }
}) {
	t.T.Helper()
	raw, _ := t.try("task.summary", nil)
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// step is the time between the ends of tasks in the cases of cleanup.
const step = time.Hour

// aged makes a task that completed two steps ago, one that failed a step ago, one that
// completed now, and one that runs.
func (t *caseTest) aged() {
	t.T.Helper()
	for range 4 {
		t.call("task.submit", obj{"prompt": "p"})
	}
	t.call("task.complete", obj{"taskId": "task-0001", "result": "r"})
	t.call("task.fail", obj{"taskId": "task-0002", "error": "e"})
	t.call("task.complete", obj{"taskId": "task-0003", "result": "r"})
	t.call("task.start", obj{"taskId": "task-0004"})
	for name, age := range map[perdure.TaskID]time.Duration{1: 2 * step, 2: step} {
		err := t.bed.store.WriteTx(t.T.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
			_, err := tx.Exec(ctx, `UPDATE tree_stat SET ended_at = ended_at - $1
				WHERE tree = (SELECT tree FROM task WHERE id = $2)`, age.Microseconds(), int64(name))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cleaned returns the number of tasks that a cleanup of an age in steps removed.
func (t *caseTest) cleaned(steps float64, more obj) int {
	t.T.Helper()
	params := obj{"maxAge": int64(steps * float64(step.Milliseconds()))}
	for key, value := range more {
		params[key] = value
	}
	return t.call("task.cleanup", params).Removed
}

const (
	ofItsFile  = "it is about the file and the object of that program; the store is a database"
	firstIsOne = "; the first ID is `task-0001`, because 0 is no ID in the store"
)

func first(t *caseTest) obj { t.T.Helper(); return obj{"taskId": "task-0001"} }

// ended runs a method that ends a started task.
func ended(method string, params obj, check func(r *record) bool) func(*caseTest) {
	return func(t *caseTest) {
		t.made(1)
		params["taskId"] = "task-0001"
		r := t.call(method, params)
		t.is(string(r.raw), check(&r))
	}
}

// cancelled cancels a started task and reads it.
func cancelled(check func(r *record) bool) func(*caseTest) {
	return func(t *caseTest) {
		t.made(1)
		t.call("task.cancel", first(t))
		r := t.call("task.get", first(t))
		t.is(string(r.raw), check(&r))
	}
}

// listed makes three tasks and checks a list.
func listed(params obj, want string) func(*caseTest) {
	return func(t *caseTest) {
		t.made(3)
		got := strings.Join(list(t.client, params), " ")
		t.is(got, got == want)
	}
}

// submitted checks a new task.
func submitted(params obj, check func(r *record) bool) func(*caseTest) {
	return func(t *caseTest) {
		t.call("task.submit", params)
		r := t.call("task.get", first(t))
		t.is(string(r.raw), check(&r))
	}
}

func creating() []publicCase {
	return []publicCase{
		{"constructor: the path of the file", nil, ofItsFile},
		{"constructor: no tasks at first", nil, ofItsFile},
		{"constructor: the counter begins at 0", nil, ofItsFile},
		{"initialize: creates the folder", nil, ofItsFile},
		{"initialize: loads the tasks of the file", func(t *caseTest) {
			imported(t.T, t.bed, `{"id":"task-0001","prompt":"a","state":"completed"},
				{"id":"task-0002","prompt":"b","state":"running"}`)
			t.is("two tasks", len(list(t.client, obj{})) == 2)
		}, "an imported task that was running is queued, because no worker has it"},
		{"initialize: the counter is past the highest ID", func(t *caseTest) {
			imported(t.T, t.bed, `{"id":"task-0001","prompt":"a"},{"id":"task-0005","prompt":"b"},
				{"id":"task-0003","prompt":"c"}`)
			t.is("the next one", t.call("task.submit", obj{"prompt": "d"}).TaskID == "task-0006")
		}, ""},
		{"initialize: a damaged file", func(t *caseTest) {
			imported(t.T, t.bed, `{"id":"task-0001","prompt":"whole"},{"id":`)
			t.is("the whole part", len(list(t.client, obj{})) == 1)
		}, "there it is an empty store; an import reads what is whole and the backup, and lists the rest"},
		{"initialize: a file without tasks", func(t *caseTest) {
			imported(t.T, t.bed, ``)
			t.is("no task", len(list(t.client, obj{})) == 0)
		}, ""},
		{"createTask: IDs rise by one", func(t *caseTest) {
			a, b := t.call("task.submit", obj{"prompt": "a"}), t.call("task.submit", obj{"prompt": "b"})
			t.is(a.TaskID+b.TaskID, a.TaskID == "task-0001" && b.TaskID == "task-0002")
		}, "the same" + firstIsOne},
		{"createTask: IDs have four digits", func(t *caseTest) {
			t.made(3)
			t.is("the fourth", t.call("task.submit", obj{"prompt": "d"}).TaskID == "task-0004")
		}, "the same" + firstIsOne},
		{"createTask: defaults", submitted(obj{"prompt": "p"}, func(r *record) bool {
			return r.State == "queued" && r.Prompt == "p" && strings.Contains(string(r.raw), `"agent":null`) &&
				r.Priority == 0 && r.StartedAt == nil && r.CompletedAt == nil && r.PID == nil &&
				r.Result == nil && r.Error == nil &&
				strings.Contains(string(r.raw), `"output":""`) && strings.Contains(string(r.raw), `"createdAt":"2`)
		}), ""},
		{"createTask: agent", submitted(obj{"prompt": "p", "agent": "x"},
			func(r *record) bool { return r.Agent == "x" }), ""},
		{"createTask: priority", submitted(obj{"prompt": "p", "priority": 10},
			func(r *record) bool { return r.Priority == 10 }), ""},
		{"createTask: metadata", submitted(obj{"prompt": "p", "metadata": obj{"source": "cli"}},
			func(r *record) bool { return len(r.Metadata) == 1 && r.Metadata["source"] == "cli" }), ""},
		{"createTask: writes the file", nil, ofItsFile + ", and each answer is durable"},
	}
}

func changing() []publicCase {
	return []publicCase{
		{"updateTask: an unknown task", func(t *caseTest) {
			e := t.refusal(rpc.CodeInvalidParams, "task.update", obj{"taskId": "task-9999"})
			t.is(e.Message, e.Message == "Task not found: task-9999")
		}, ""},
		{"updateTask: an invalid state", func(t *caseTest) {
			t.call("task.submit", obj{"prompt": "p"})
			e := t.refusal(rpc.CodeInvalidParams, "task.update", obj{"taskId": "task-0001", "state": "invalid"})
			t.is(e.Message, e.Message == "Invalid state: invalid")
		}, ""},
		{"updateTask: state and pid", func(t *caseTest) {
			t.call("task.submit", obj{"prompt": "p"})
			r := t.call("task.update", obj{"taskId": "task-0001", "state": "running", "pid": 1234})
			t.is(string(r.raw), r.State == "running" && *r.PID == 1234)
		}, ""},
		{"updateTask: writes the file", nil, ofItsFile + ", and each answer is durable"},
		{"updateTask: returns the task", func(t *caseTest) {
			t.call("task.submit", obj{"prompt": "p"})
			r := t.call("task.update", obj{"taskId": "task-0001", "state": "completed"})
			t.is(string(r.raw), r.State == "completed" && r.ID == "task-0001")
		}, ""},
		{"startTask: state", ended("task.get", obj{}, func(r *record) bool { return r.State == "running" }), ""},
		{"startTask: startedAt", ended("task.get", obj{}, func(r *record) bool { return !r.StartedAt.IsZero() }), ""},
		{"startTask: pid", ended("task.get", obj{}, func(r *record) bool { return *r.PID == 1234 }), ""},
		{"completeTask: state", ended("task.complete", obj{"result": "r"},
			func(r *record) bool { return r.State == "completed" }), ""},
		{"completeTask: completedAt", ended("task.complete", obj{"result": "r"},
			func(r *record) bool { return !r.CompletedAt.IsZero() }), ""},
		{"completeTask: result", ended("task.complete", obj{"result": "r"},
			func(r *record) bool { return *r.Result == "r" }), ""},
		{"completeTask: no pid any more", ended("task.complete", obj{"result": "r"},
			func(r *record) bool { return r.PID == nil }), ""},
		{"failTask: state", ended("task.fail", obj{"error": "e"},
			func(r *record) bool { return r.State == "failed" }), ""},
		{"failTask: completedAt", ended("task.fail", obj{"error": "e"},
			func(r *record) bool { return !r.CompletedAt.IsZero() }), ""},
		{"failTask: an error as text", ended("task.fail", obj{"error": "e"},
			func(r *record) bool { return *r.Error == "e" }), ""},
		{"failTask: an error as object", ended("task.fail", obj{"error": obj{"message": "wrong"}},
			func(r *record) bool { return *r.Error == "wrong" }), ""},
		{"failTask: no pid any more", ended("task.fail", obj{"error": "e"},
			func(r *record) bool { return r.PID == nil }), ""},
		{"cancelTask: state", cancelled(func(r *record) bool { return r.State == "cancelled" }), ""},
		{"cancelTask: completedAt", cancelled(func(r *record) bool { return !r.CompletedAt.IsZero() }), ""},
		{"cancelTask: no pid any more", cancelled(func(r *record) bool { return r.PID == nil }), ""},
		{"appendOutput: appends", func(t *caseTest) {
			t.made(1)
			t.call("task.append_output", obj{"taskId": "task-0001", "chunk": "line 1\n"})
			t.call("task.append_output", obj{"taskId": "task-0001", "chunk": "line 2\n"})
			r := t.call("task.get", first(t))
			t.is(r.Output, r.Output == "line 1\nline 2\n")
		}, ""},
		{"appendOutput: does not write each chunk", func(t *caseTest) {
			t.made(1)
			t.is("durable", t.call("task.append_output", obj{"taskId": "task-0001", "chunk": "c"}).Appended == 1)
		}, "each chunk is durable, so that a crash loses nothing"},
		{"appendOutput: ignores an unknown task", func(t *caseTest) {
			t.refused(rpc.CodeInvalidParams, "task.append_output", obj{"taskId": "task-9999", "chunk": "c"})
		}, "it is an error, so that the worker learns that its task was removed"},
	}
}

func reading() []publicCase {
	return []publicCase{
		{"getTask: by ID", ended("task.get", obj{}, func(r *record) bool { return r.ID == "task-0001" }), ""},
		{"getTask: an unknown task is null", func(t *caseTest) {
			e := t.refusal(rpc.CodeInvalidParams, "task.get", obj{"taskId": "task-9999"})
			t.is(e.Message, e.Message == "Task not found: task-9999")
		}, "it is the error that the daemon of the store answers with"},
		{"getTasks: all", listed(obj{}, "3 2 1"), ""},
		{"getTasks: the newest first", listed(obj{}, "3 2 1"),
			"by the order of arrival, so that an imported task is as new as its import"},
		{"getTasks: by state", listed(obj{"state": "completed"}, "2"), ""},
		{"getTasks: by agent", listed(obj{"agent": "a"}, "3 1"), ""},
		{"getTasks: a limit", listed(obj{"limit": 2}, "3 2"), ""},
		{"getTasks: several filters", listed(obj{"agent": "a", "state": "running", "limit": 5}, "1"), ""},
		{"getStats: numbers by state", func(t *caseTest) {
			t.made(4)
			t.call("task.fail", obj{"taskId": "task-0003", "error": "e"})
			raw, _ := t.try("task.stats", nil)
			t.is(string(raw), string(raw) == `{"total":4,"queued":1,"running":1,"completed":1,"failed":1,"cancelled":0}`)
		}, ""},
		{"getSummary: numbers", func(t *caseTest) {
			t.made(3)
			t.is("3", t.summary().Stats.Total == 3)
		}, ""},
		{"getSummary: running tasks", func(t *caseTest) {
			t.made(3)
			r := t.summary().Running
			t.is(fmt.Sprint(r), len(r) == 1 && r[0].ID == "task-0001" && r[0].Agent == "a" && r[0].StartedAt != "")
		}, ""},
		{"getSummary: 80 characters of a prompt", func(t *caseTest) {
			t.call("task.submit", obj{"prompt": strings.Repeat("a", 200)})
			t.is("80", len(t.summary().Recent[0].Prompt) == 80)
		}, ""},
		{"getSummary: five recent tasks", func(t *caseTest) {
			t.made(7)
			t.is("5", len(t.summary().Recent) == 5)
		}, ""},
		{"getSummary: state and completedAt of recent tasks", func(t *caseTest) {
			t.made(3)
			r := t.summary().Recent
			t.is(fmt.Sprint(r), r[1].ID == "task-0002" && r[1].State == "completed" && r[1].CompletedAt != "")
		}, ""},
		{"size: the number of tasks", nil, "it is `total` of `task.stats`"},
	}
}

func cleaning() []publicCase {
	return []publicCase{
		{"cleanup: removes old tasks that ended", func(t *caseTest) {
			t.aged()
			n := t.cleaned(0.9, obj{"includeFailed": true})
			t.is(fmt.Sprint(n), n == 2)
		}, "failed tasks only with `includeFailed`, because a person reviews them; the answer is `{\"removed\": N}`"},
		{"cleanup: keeps recent tasks", func(t *caseTest) {
			t.aged()
			t.cleaned(0.9, nil)
			t.is("it is there", slices.Contains(list(t.client, obj{}), "3"))
		}, ""},
		{"cleanup: keeps running tasks", func(t *caseTest) {
			t.aged()
			t.cleaned(0.9, nil)
			t.is("it is there", slices.Contains(list(t.client, obj{"state": "running"}), "4"))
		}, ""},
		{"cleanup: an age", func(t *caseTest) {
			t.aged()
			t.is("1", t.cleaned(1.9, obj{"includeFailed": true}) == 1)
		}, ""},
		{"cleanup: writes the file", nil, ofItsFile + ", and each answer is durable"},
		{"cleanup: 0 if there is nothing", func(t *caseTest) {
			t.aged()
			t.is("0", t.cleaned(365, nil) == 0)
		}, ""},
		{"cleanup: removes cancelled tasks", func(t *caseTest) {
			t.aged()
			t.call("task.cancel", obj{"taskId": "task-0004"})
			t.cleaned(0, nil)
			t.is("it is gone", !slices.Contains(list(t.client, obj{}), "4"))
		}, ""},
		{"_persist: the form of the file", nil, ofItsFile + "; `perdure export` writes the file"},
		{"_persist: an error is only logged", func(t *caseTest) {
			store, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			b := serve(t.T, rpc.Config{Store: store})
			c := b.dial()
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			// The server answers with an error, or ended before.
			_, err = c.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"p"}}` + "\n"))
			line, readErr := c.in.ReadString('\n')
			t.is(line, err != nil || readErr != nil || strings.Contains(line, `"error"`))
			b.stop()
			<-b.ended
			b.ended <- nil // for the cleanup
		}, "the request fails, so that the client can retry"},
	}
}

func publicCases() []publicCase { return slices.Concat(creating(), changing(), reading(), cleaning()) }

// TestPublicCases runs the cases of the public tests of that daemon's task store, or what
// perdure does instead.
func TestPublicCases(t *testing.T) {
	t.Parallel()
	meaning := 0
	for _, c := range publicCases() {
		if c.run == nil {
			continue
		}
		meaning++
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			b := serve(t, rpc.Config{})
			c.run(&caseTest{T: t, client: b.dial(), bed: b})
		})
	}
	if all := len(publicCases()); all != 62 || meaning != 53 {
		t.Errorf("%d cases, %d with a meaning, want 62 and 53", all, meaning)
	}
}

// The documentation lists the cases.
func TestCasesInDocs(t *testing.T) {
	t.Parallel()
	table := "\n| Case | Here |\n|---|---|\n"
	for _, c := range publicCases() {
		here := "works"
		switch {
		case c.run == nil:
			here = "no meaning: " + c.differs
		case c.differs != "":
			here = "otherwise: " + c.differs
		}
		table += "| " + strings.ReplaceAll(c.what, "_", `\_`) + " | " + here + " |\n"
	}
	doctest.Part{File: "../../../docs/compat-aiwg.md", Name: "cases", Package: "internal/aiwg/rpc",
		Test: "TestCasesInDocs"}.Check(t, table, *update)
}
