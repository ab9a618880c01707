package rpc_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// outline is an answer as the table has it: the id, and "ok" or the error's code.
func outline(line string) string {
	if strings.HasPrefix(line, "[") {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(line), &list); err != nil {
			return "no JSON: " + line
		}
		var parts []string
		for _, one := range list {
			parts = append(parts, outline(string(one)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var a answer
	if err := json.Unmarshal([]byte(line), &a); err != nil || a.Version != "2.0" || (a.Result == nil) == (a.Error == nil) {
		return "no answer: " + line
	}
	if a.Error != nil {
		return fmt.Sprintf("%s %d", a.ID, a.Error.Code)
	}
	return string(a.ID) + " ok"
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	b.dial().call("task.submit", obj{"prompt": "p"})
	tests := []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "1 ok"},
		{`{"jsonrpc":"2.0","id":"a\u00e9","method":"ping","params":{}}`, `"a\u00e9" ok`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping","params":[]}`, "null ok"},
		{`{"jsonrpc":"2.0","id":-1.5e3,"method":"ping","params":null}`, "-1.5e3 ok"},
		{" \t {\"id\":2,\"method\":\"ping\",\"jsonrpc\":\"2.0\"} \r", "2 ok"},
		{`{"jsonrpc":"2.0","id":12345678901234567890123456789,"method":"ping"}`, "12345678901234567890123456789 ok"},
		// Not JSON.
		{`{"jsonrpc":"2.0","id":1,"method":"ping"`, "null -32700"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}}`, "null -32700"},
		{`{'jsonrpc':'2.0'}`, "null -32700"},
		{`nonsense`, "null -32700"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}", "null -32700"},
		{"\xef\xbb\xbf{}", "null -32700"},
		{strings.Repeat("[", 20_000), "null -32700"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}`, "null -32700"},
		// No request.
		{`7`, "null -32600"}, {`null`, "null -32600"}, {`"ping"`, "null -32600"}, {`true`, "null -32600"},
		{`{}`, "null -32600"},
		{`{"id":1,"method":"ping"}`, "1 -32600"},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "1 -32600"},
		{`{"jsonrpc":2.0,"id":1,"method":"ping"}`, "1 -32600"},
		{`{"JSONRPC":"2.0","id":1,"method":"ping"}`, "1 -32600"},
		{`{"jsonrpc":"2.0","id":1}`, "1 -32600"},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, "1 -32600"},
		{`{"jsonrpc":"2.0","id":1,"method":null}`, "1 -32600"},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, "1 -32600"},
		{`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, "1 -32600"},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, "null -32600"},
		{`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, "null -32600"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null -32600"},
		{`{"jsonrpc":"2.0","result":1,"id":4}`, "4 -32600"},
		// No method.
		{`{"jsonrpc":"2.0","id":1,"method":"Ping"}`, "1 -32601"},
		{`{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}`, "1 -32601"},
		// No parameters of it.
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":7}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.get"}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"taskId":1}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"taskId":"task-0099"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"taskId":"task-99999999999999999999"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.get","params":["task-0001"]}`, "1 ok"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.get","params":["task-0001",2]}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":""}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":["x"]}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"a\u0000b"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","priority":101}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","priority":"high"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","priority":0.5}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","agent":7}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","metadata":"y"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","metadata":{"perdure_import":{}}}}`,
			"1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","execute":"yes"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","execute":true}}`, "1 -32001"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","id":"` +
			strings.Repeat("i", rpc.MaxIDBytes+1) + `"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"x","agent":"` + strings.Repeat("a", 300) +
			`"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.list","params":{"state":"asleep"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.list","params":{"limit":-1}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.list","params":{"limit":5.0,"state":null}}`, "1 ok"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.start","params":{"taskId":"task-0001","fence":"x"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.append_output","params":{"taskId":"task-0001"}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.append_output","params":{"taskId":"task-0001","chunk":"x"}}`, "1 ok"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.fail","params":{"taskId":"task-0001","error":7}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.cleanup","params":{"maxAge":-1}}`, "1 -32602"},
		{`{"jsonrpc":"2.0","id":1,"method":"task.update","params":{"taskId":"task-0001","updates":7}}`, "1 -32602"},
		// Batches.
		{`[]`, "null -32600"},
		{`[1]`, "[null -32600]"},
		{`[1,[],{}]`, "[null -32600, null -32600, null -32600]"},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","id":"x",` +
			`"method":"nope"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
			`[1 ok, "x" -32601, null -32600, 2 ok]`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}`, "null -32700"},
		{`[` + strings.Repeat(`{"jsonrpc":"2.0","method":"ping"},`, rpc.MaxBatch) + `1]`, "null -32600"},
		// What has no answer.
		{``, ""}, {`   `, ""},
		{`{"jsonrpc":"2.0","method":"ping"}`, ""},
		{`{"jsonrpc":"2.0","method":"nope"}`, ""},
		{`{"jsonrpc":"2.0","method":"task.get","params":7}`, ""},
		{`[{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","method":"nope"}]`, ""},
	}
	const sentinel = `{"jsonrpc":"2.0","id":"the end","method":"ping"}`
	c := b.dial()
	for _, test := range tests {
		c.send(test.send + "\n" + sentinel + "\n")
		got := ""
		for line := c.line(); outline(line) != `"the end" ok`; line = c.line() {
			got += outline(line)
		}
		if got != test.want {
			t.Errorf("%.200s\n\tgot  %s\n\twant %s", test.send, got, test.want)
		}
	}
}

// An error says what is wrong, and what an internal one is about stays inside.
func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	id := c.call("task.submit", obj{"prompt": "p"}).TaskID
	c.call("task.cancel", obj{"taskId": id})
	e := c.refusal(rpc.CodeConflict, "task.complete", obj{"taskId": id, "result": "x"})
	want := &rpc.Error{Code: rpc.CodeConflict, Message: `task "task-0001" is cancelled and cannot become completed`,
		Data: &rpc.ErrorData{Code: perdure.CodeConflict, Hint: "task.start starts a queued task", TaskID: 1,
			Is: perdure.Cancelled, Want: perdure.Completed}}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("the error differs (-want +got):\n%s", diff)
	}
	e = c.refusal(rpc.CodeInvalidParams, "task.get", obj{"taskId": "task-0099"})
	if e.Message != "Task not found: task-0099" || e.Data.Code != perdure.CodeNotFound {
		t.Errorf("not found: %+v %+v", e, e.Data)
	}
}

// A line that is too long gets an error before it has ended, and the connection
// continues with the next one.
func TestLongLines(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{MaxLineBytes: 1000}).dial()
	frame := func(n int) string {
		head, tail := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	if got := outline(c.ask(frame(1000)).raw(t)); got != "1 ok" {
		t.Errorf("the longest line: %s", got)
	}
	if got := outline(c.ask(frame(1001)).raw(t)); got != "null -32003" {
		t.Errorf("one byte more: %s", got)
	}
	c.send(strings.Repeat("y", 300_000)) // without an end
	if got := outline(c.answer().raw(t)); got != "null -32003" {
		t.Errorf("a line without an end: %s", got)
	}
	c.send(strings.Repeat("y", 300_000) + "\n" + frame(100) + "\n")
	if got := outline(c.answer().raw(t)); got != "1 ok" {
		t.Errorf("the line after it: %s", got)
	}
}

func (a answer) raw(t *testing.T) string {
	t.Helper()
	raw, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *rpc.Error      `json:"error,omitempty"`
		ID      json.RawMessage `json:"id"`
	}(a))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// What a client sent before it closed its side is answered, a last line without
// an end too.
func TestHalfClosedConnection(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if err := c.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if a, b := outline(c.line()), outline(c.line()); a != "1 ok" || b != "2 ok" {
		t.Errorf("answers %s, %s", a, b)
	}
	c.closed()
}

// A client that sends and never reads is disconnected, and does not block others.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{WriteTimeout: 2 * time.Second})
	slow, other := b.dial(), b.dial()
	id := other.call("task.submit", obj{"prompt": strings.Repeat("long ", 100_000)}).TaskID
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"taskId":%q}}`, id) + "\n"
	for {
		if _, err := io.WriteString(slow.conn, line); err != nil {
			break // it was disconnected
		}
		other.call("ping", nil)
	}
	other.call("ping", nil)
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{MaxConns: 2})
	first, second := b.dial(), b.dial()
	first.call("ping", nil)
	second.call("ping", nil)
	third := b.dial()
	if got := outline(third.line()); got != "null -32005" {
		t.Errorf("the third is told %s", got)
	}
	third.closed()
	_ = first.conn.Close()
	until(t, "there is room again", func() bool {
		c := b.dial()
		c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
		line, err := c.in.ReadString('\n')
		return err == nil && outline(strings.TrimSpace(line)) == "1 ok"
	})
}

// Many clients at once, each with a task of its own from beginning to end, and
// requests sent ahead of their answers.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		const clients, each = 40, 5
		b := serve(t, rpc.Config{Store: s})
		var wg sync.WaitGroup
		for i := range clients {
			c := b.dial()
			wg.Go(func() {
				for j := range each {
					id := c.call("task.submit", obj{"prompt": fmt.Sprintf("%d/%d", i, j)}).TaskID
					for n, method := range []string{"task.start", "task.append_output", "task.append_output", "task.complete"} {
						c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":[%q,%s]}`+"\n", n, method, id,
							[]string{"1", `"a"`, `"b"`, `"done"`}[n]))
					}
					for n := range 4 {
						if got, want := outline(c.line()), fmt.Sprintf("%d ok", n); got != want {
							t.Errorf("answer %s, want %s", got, want)
						}
					}
					if got := c.call("task.get", obj{"taskId": id}); got.Output != "ab" || got.State != "completed" {
						t.Errorf("the task is %s", got.raw)
					}
				}
			})
		}
		wg.Wait()
		want := fmt.Sprintf(`{"total":%d,"queued":0,"running":0,"completed":%d,"failed":0,"cancelled":0}`, clients*each,
			clients*each)
		if raw, _ := b.dial().try("task.stats", nil); string(raw) != want {
			t.Errorf("stats %s", raw)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := rpc.New(rpc.Config{}); err == nil {
		t.Error("a server without a store")
	}
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if _, err := rpc.New(rpc.Config{Store: s, MaxConns: -1}); err == nil {
		t.Error("a server with a negative limit")
	}
}
