package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// acpEditor is a client of the Agent Client Protocol that drives a process of perdure acp.
type acpEditor struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	dir   string
	next  int
	// seen are the updates so far, and asked the permission requests.
	seen  []update
	asked []permission
	// withdrawn is set if the agent withdrew a request.
	withdrawn bool
	// choose returns the answer to a permission request, "" for the outcome cancelled. Nil: the user
	// does not answer.
	choose func(p permission) string
}

// update is an update of a session.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	ID      string          `json:"toolCallId"`
	Title   string          `json:"title"`
	Status  string          `json:"status"`
	Content json.RawMessage `json:"content"`
	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
}

// text returns the text of a chunk.
func (u *update) text() string {
	var content struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(u.Content, &content) // tool calls have a list
	return content.Text
}

// permission is a permission request.
type permission struct {
	ToolCall struct {
		ID      string          `json:"toolCallId"`
		Title   string          `json:"title"`
		Content json.RawMessage `json:"content"`
	} `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Name string `json:"name"`
		Kind string `json:"kind"`
	} `json:"options"`
}

// wire is a message of the agent.
type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *wireError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// edits starts perdure acp with arguments, and begins the conversation.
func (w *workplace) edits(args string, env ...string) *acpEditor {
	t := w.t
	t.Helper()
	e := &acpEditor{t: t, cmd: w.command("exec perdure acp "+args, env...), dir: w.dir,
		choose: func(p permission) string { t.Errorf("unexpected question %q", p.ToolCall.Title); return "" }}
	var err error
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.cmd.Stderr = t.Output()
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e.lines = bufio.NewScanner(out)
	e.lines.Buffer(nil, 64<<20)
	t.Cleanup(func() {
		_ = e.in.Close()
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
	})
	e.must("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	return e
}

// send sends a request and returns its ID.
func (e *acpEditor) send(method, params string) string {
	e.t.Helper()
	e.next++
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.next, method, params))
	return fmt.Sprint(e.next)
}

func (e *acpEditor) say(line string) {
	e.t.Helper()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		e.t.Fatal(err)
	}
}

// receive reads a message, records updates and answers permission requests. It returns false at the
// end of the output.
func (e *acpEditor) receive() (m wire, ok bool) {
	e.t.Helper()
	if !e.lines.Scan() {
		return m, false
	}
	if err := json.Unmarshal(e.lines.Bytes(), &m); err != nil {
		e.t.Fatalf("standard output has a line that is no message: %q", e.lines.Text())
	}
	switch m.Method {
	case "$/cancel_request":
		e.withdrawn = true
	case "session/update":
		var p struct {
			Update update `json:"update"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			e.t.Fatal(err)
		}
		e.seen = append(e.seen, p.Update)
	case "session/request_permission":
		var p permission
		if err := json.Unmarshal(m.Params, &p); err != nil {
			e.t.Fatal(err)
		}
		e.asked = append(e.asked, p)
		if e.choose == nil {
			break
		}
		outcome := `{"outcome":"cancelled"}`
		if answer := e.choose(p); answer != "" {
			outcome = fmt.Sprintf(`{"outcome":"selected","optionId":%q}`, answer)
		}
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":%s}}`, m.ID, outcome))
	}
	return m, true
}

// wait reads until the response to a request.
func (e *acpEditor) wait(id string) (json.RawMessage, error) {
	e.t.Helper()
	for {
		m, ok := e.receive()
		switch {
		case !ok:
			return nil, io.ErrUnexpectedEOF
		case m.Method != "" || string(m.ID) != id:
		case m.Error != nil:
			return nil, m.Error
		default:
			return m.Result, nil
		}
	}
}

// must sends a request and returns its result.
func (e *acpEditor) must(method, params string) json.RawMessage {
	e.t.Helper()
	result, err := e.wait(e.send(method, params))
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// session opens a session in the workplace and returns its ID.
func (e *acpEditor) session() string {
	e.t.Helper()
	var out struct {
		ID string `json:"sessionId"`
	}
	if err := json.Unmarshal(e.must("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, e.dir)), &out); err != nil {
		e.t.Fatal(err)
	}
	return out.ID
}

// load loads a session.
func (e *acpEditor) load(id string) error {
	e.t.Helper()
	_, err := e.wait(e.send("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, e.dir)))
	return err
}

// begin sends a prompt and returns the ID of the request.
func (e *acpEditor) begin(session, text string) string {
	e.t.Helper()
	return e.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text))
}

// prompt sends a prompt and returns why the turn ended, or the error.
func (e *acpEditor) prompt(session, text string) string {
	e.t.Helper()
	return e.ends(e.begin(session, text))
}

// cancel cancels the turn of a session.
func (e *acpEditor) cancel(session string) {
	e.t.Helper()
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
}

// ends waits for the end of a turn.
func (e *acpEditor) ends(id string) string {
	e.t.Helper()
	result, err := e.wait(id)
	if err != nil {
		return err.Error()
	}
	var out struct {
		Reason string `json:"stopReason"`
	}
	if err := json.Unmarshal(result, &out); err != nil {
		e.t.Fatal(err)
	}
	return out.Reason
}

// until reads until an update matches.
func (e *acpEditor) until(matches func(u *update) bool) {
	e.t.Helper()
	for at := len(e.seen); ; {
		for ; at < len(e.seen); at++ {
			if matches(&e.seen[at]) {
				return
			}
		}
		if m, ok := e.receive(); !ok || m.Method == "" {
			e.t.Fatalf("the turn ended with %s %v; its updates: %+v", m.Result, m.Error, e.seen)
		}
	}
}

// said returns all text of the agent since the update of a number.
func (e *acpEditor) said(since int) string {
	var b strings.Builder
	for i := range e.seen[since:] {
		if u := &e.seen[since+i]; u.Kind == "agent_message_chunk" {
			b.WriteString(u.text())
		}
	}
	return b.String()
}

// says checks that the agent has said something.
func (e *acpEditor) says(want string) {
	e.t.Helper()
	if said := e.said(0); !strings.Contains(said, want) {
		e.t.Errorf("the agent said %q, want %q in it", said, want)
	}
}

// closes closes the input and returns the exit status.
func (e *acpEditor) closes() int {
	e.t.Helper()
	if err := e.in.Close(); err != nil {
		e.t.Fatal(err)
	}
	return e.exits()
}

// exits reads the rest of the output and returns the exit status, -1 after a signal.
func (e *acpEditor) exits() int {
	e.t.Helper()
	for {
		if _, ok := e.receive(); !ok {
			break
		}
	}
	_ = e.cmd.Wait() // the status is returned
	return e.cmd.ProcessState.ExitCode()
}
