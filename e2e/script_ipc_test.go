package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// sendRPC sends a request to the socket for .aiwg clients that AIWG_SOCKET names and
// compares or stores a value of the answer:
//
//	rpc task.get '["task-0001"]' result.state = completed
//	rpc task.submit '{"prompt":"p"}' result.taskId -> TASK
//	rpc raw '{' error.code = -32700
//
// Each is a connection of its own.
func sendRPC(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 || args[3] != "=" && args[3] != "->" {
		ts.Fatalf("usage: rpc METHOD PARAMS PATH = VALUE, or … PATH -> VARIABLE")
	}
	conn, err := net.Dial("unix", ts.Getenv("AIWG_SOCKET"))
	ts.Check(err)
	defer conn.Close()
	ts.Check(conn.SetDeadline(time.Now().Add(patience)))
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, args[0], args[1])
	if args[0] == "raw" {
		line = args[1]
	}
	_, err = conn.Write([]byte(line + "\n"))
	ts.Check(err)
	raw, err := bufio.NewReader(conn).ReadBytes('\n')
	ts.Check(err)
	var value any
	ts.Check(json.Unmarshal(raw, &value))
	for _, key := range strings.Split(args[2], ".") {
		next := any(nil)
		switch v := value.(type) {
		case map[string]any:
			next = v[key]
		case []any:
			if i, err := strconv.Atoi(key); err == nil && i < len(v) {
				next = v[i]
			}
		}
		if next == nil {
			ts.Fatalf("%s is not in %s", args[2], raw)
		}
		value = next
	}
	text := fmt.Sprint(value)
	switch {
	case args[3] == "->":
		ts.Setenv(args[4], text)
	case text != args[4]:
		ts.Fatalf("%s is %s: %s", args[2], text, raw)
	}
}
