package rpc_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// started submits a task and starts it.
func started(c *client) record {
	c.t.Helper()
	id := c.call("task.submit", obj{"prompt": "p"}).TaskID
	return c.call("task.start", obj{"taskId": id})
}

// gone ends a connection and waits until the server has noticed.
func (b *bed) gone(c *client) {
	b.t.Helper()
	c.hangUp()
	watcher := b.dial()
	until(b.t, "the server has noticed the end of a connection", func() bool {
		raw, refused := watcher.try("daemon.status", nil)
		return refused == nil && strings.Contains(string(raw), `"clients":1}`)
	})
	watcher.hangUp()
}

// hangUp closes the connection and reads what was still sent.
func (c *client) hangUp() {
	_ = c.conn.Close()
	_, _ = io.Copy(io.Discard, c.in)
}

// A task belongs to the connection that started it, while that lives.
func TestLeaseOfAConnection(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := serve(t, rpc.Config{Store: s, Silence: time.Millisecond})
		mine, other := b.dial(), b.dial()
		task := started(mine)
		for method, more := range map[string]obj{"task.start": {}, "task.complete": {"result": "x"},
			"task.fail":          {"error": "x"},
			"task.append_output": {"chunk": "x"}, "task.update": {"state": "completed"}} {
			more["taskId"] = task.TaskID
			if e := other.refusal(rpc.CodeLease, method, more); e.Data.Hint == "" {
				t.Errorf("%s: no hint: %+v", method, e)
			}
			more["fence"] = task.Fence + 1
			other.refused(rpc.CodeLease, method, more)
			mine.refused(rpc.CodeLease, method, more)
		}
		if again := mine.call("task.start", obj{"taskId": task.TaskID}); again.Fence != task.Fence {
			t.Errorf("started again it has fence %d, had %d", again.Fence, task.Fence)
		}
		// The token makes it another connection's.
		if moved := other.call("task.start", obj{"taskId": task.TaskID, "fence": task.Fence}); moved.Fence != task.Fence {
			t.Errorf("moved it has fence %d, had %d", moved.Fence, task.Fence)
		}
		mine.refused(rpc.CodeLease, "task.append_output", obj{"taskId": task.TaskID, "chunk": "x"})
		if done := other.call("task.complete", obj{"taskId": task.TaskID, "result": "x"}); done.State != "completed" ||
			done.Output != "" {
			t.Errorf("it is %s", done.raw)
		}
	})
}

// Clients that open a connection for each request go on with their task from
// any of them.
func TestOneConnectionForEachRequest(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	once := func(method string, params obj) record {
		t.Helper()
		c := b.dial()
		defer c.hangUp() // and the next one comes before the server can have noticed
		return c.call(method, params)
	}
	for range 50 {
		id := once("task.submit", obj{"prompt": "p"}).TaskID
		fence := once("task.start", obj{"taskId": id}).Fence
		once("task.append_output", obj{"taskId": id, "chunk": "a"})
		once("task.append_output", obj{"taskId": id, "chunk": "b", "fence": fence})
		if done := once("task.complete", obj{"taskId": id, "result": "x"}); done.State != "completed" ||
			done.Output != "ab" || done.Attempts != 1 {
			t.Errorf("it is %s", done.raw)
		}
	}
}

// When the worker's connection is lost, another worker can take the task over at once;
// the first one gets an error when it comes back.
func TestTakeoverAfterALostConnection(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := serve(t, rpc.Config{Store: s})
		first := b.dial()
		task := started(first)
		b.gone(first)
		second := b.dial()
		taken := second.call("task.start", obj{"taskId": task.TaskID})
		if taken.State != "running" || taken.Fence <= task.Fence || taken.Attempts != 1 {
			t.Errorf("taken over: %s", taken.raw)
		}
		back := b.dial()
		back.refused(rpc.CodeLease, "task.complete", obj{"taskId": task.TaskID, "result": "late", "fence": task.Fence})
		if done := second.call("task.complete",
			obj{"taskId": task.TaskID, "result": "x", "fence": taken.Fence}); *done.Result != "x" {
			t.Errorf("it is %s", done.raw)
		}
	})
}

// The task of a silent worker without a connection is queued again; the worker can
// continue it unless another one started it.
func TestSilence(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := serve(t, rpc.Config{Store: s, Silence: 20 * time.Millisecond})
		first := b.dial()
		tasks := []record{started(first), started(first), started(first)}
		b.gone(first)
		c := b.dial()
		until(t, "the tasks are queued", func() bool { return len(list(c, obj{"state": "queued"})) == 3 })
		// By token, and without one.
		if a := c.call("task.append_output",
			obj{"taskId": tasks[0].TaskID, "chunk": "a", "fence": tasks[0].Fence}); a.Fence != tasks[0].Fence {
			t.Errorf("the token is %d, was %d", a.Fence, tasks[0].Fence)
		}
		if done := c.call("task.complete",
			obj{"taskId": tasks[0].TaskID, "result": "x", "fence": tasks[0].Fence}); done.State != "completed" ||
			done.Attempts != 1 {
			t.Errorf("it is %s", done.raw)
		}
		if done := c.call("task.complete", obj{"taskId": tasks[1].TaskID, "result": "x"}); done.State != "completed" {
			t.Errorf("it is %s", done.raw)
		}
		// Another worker had the third, and released it.
		c.call("task.start", obj{"taskId": tasks[2].TaskID})
		c.call("task.update", obj{"taskId": tasks[2].TaskID, "state": "queued"})
		c.refused(rpc.CodeLease, "task.complete", obj{"taskId": tasks[2].TaskID, "result": "late", "fence": tasks[2].Fence})
		if got := c.call("task.get", obj{"taskId": tasks[2].TaskID}); got.State != "queued" {
			t.Errorf("it is %s", got.raw)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
	})
}

// A worker goes on with its task at the next server, whether the one before
// stopped or died.
func TestWorkGoesOnAtTheNextServer(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		first := serve(t, rpc.Config{Store: s, DrainTimeout: time.Millisecond})
		c := first.dial()
		var tasks []record
		for range 3 {
			task := started(c)
			c.call("task.append_output", obj{"taskId": task.TaskID, "chunk": "a"})
			tasks = append(tasks, task)
		}
		first.end()
		c.closed()
		next := serve(t, rpc.Config{Store: testdb.Open(t, cfg), DrainTimeout: time.Millisecond})
		c = next.dial()
		c.call("task.append_output", obj{"taskId": tasks[0].TaskID, "chunk": "b", "fence": tasks[0].Fence})
		c.call("task.append_output", obj{"taskId": tasks[1].TaskID, "chunk": "b"})
		next.end()
		next = serve(t, rpc.Config{Store: testdb.Open(t, cfg)})
		c = next.dial()
		for i, more := range []obj{{"fence": tasks[0].Fence}, {}} {
			more["taskId"], more["result"] = tasks[i].TaskID, "x"
			if done := c.call("task.complete", more); done.State != "completed" || done.Output != "ab" || done.Attempts != 1 {
				t.Errorf("it is %s", done.raw)
			}
		}
		if taken := next.dial().call("task.start", obj{"taskId": tasks[2].TaskID}); taken.Fence <= tasks[2].Fence {
			t.Errorf("taken over: %s", taken.raw)
		}
	})
}

// While a worker that is connected does something a server that stops waits for
// it, and takes nothing new.
func TestDrainOfWorkers(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{DrainTimeout: patience})
	c, other := b.dial(), b.dial()
	task := started(c)
	waiting := c.call("task.submit", obj{"prompt": "waits"})
	b.stop()
	until(t, "the server stops", func() bool {
		_, refused := other.try("task.submit", obj{"prompt": "x"})
		return refused != nil && refused.Code == rpc.CodeUnavailable
	})
	other.refused(rpc.CodeUnavailable, "task.start", obj{"taskId": waiting.TaskID})
	other.refused(rpc.CodeUnavailable, "task.update", obj{"taskId": waiting.TaskID, "state": "running"})
	if got := other.call("task.get", obj{"taskId": task.TaskID}); got.State != "running" {
		t.Errorf("it is %s", got.raw)
	}
	c.call("task.append_output", obj{"taskId": task.TaskID, "chunk": "a"})
	if done := c.call("task.complete", obj{"taskId": task.TaskID, "result": "x"}); done.State != "completed" {
		t.Errorf("it is %s", done.raw)
	}
	c.closed()
	other.closed()
	b.end()
}

// What workers do not end in time is queued again.
func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{DrainTimeout: time.Millisecond})
	c := b.dial()
	task := started(c)
	b.end()
	c.closed()
	id, err := perdure.ParseTaskID(task.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.store.Task(t.Context(), id); err != nil || got.State != perdure.Queued || got.Lease != nil {
		t.Errorf("the task is %+v, %v", got, err)
	}
}

// A task that another process executes cannot be started.
func TestTaskOfAnotherProcess(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		one, two := serve(t, rpc.Config{Store: testdb.Open(t, cfg)}), serve(t, rpc.Config{Store: testdb.Open(t, cfg)})
		c, other := one.dial(), two.dial()
		task := started(c)
		for _, method := range []string{"task.start", "task.complete", "task.fail"} {
			other.refused(rpc.CodeLease, method, obj{"taskId": task.TaskID})
		}
		other.refused(rpc.CodeLease, "task.append_output", obj{"taskId": task.TaskID, "chunk": "x"})
		if got := other.call("task.cancel", obj{"taskId": task.TaskID}); !got.Cancelled {
			t.Errorf("cancel: %s", got.raw)
		}
		c.refused(rpc.CodeConflict, "task.complete", obj{"taskId": task.TaskID, "result": "x"})
	})
}

// Tasks of workers whose server died are queued again after a while, so that
// they are found.
func TestLostTasksAreQueuedAgain(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		dead := testdb.Open(t, cfg)
		s, err := rpc.New(rpc.Config{Store: dead})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithoutCancel(t.Context())
		if err := s.OpenForTest(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			s.AnswerForTest(ctx, []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"p"}}
				{"jsonrpc":"2.0","id":2,"method":"task.start","params":["task-%04d"]}`, i+1)))
		}
		if err := s.DieForTest(ctx); err != nil {
			t.Fatal(err)
		}
		b := serve(t, rpc.Config{Store: testdb.Open(t, cfg), Silence: 20 * time.Millisecond})
		c := b.dial()
		until(t, "the tasks are queued", func() bool { return len(list(c, obj{"state": "queued"})) == 2 })
	})
}
