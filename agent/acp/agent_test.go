package acp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
)

// fake is the agent's side of the protocol, for scripts.
type fake struct {
	in  *bufio.Reader
	out io.Writer
	// initialize is answered with these capabilities.
	caps string
	// sent is how many requests it sent.
	sent int
	// killed is closed when it has to end.
	killed <-chan struct{}
}

// frame is a message as the fake sees it.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func newFake(in io.Reader, out io.Writer) *fake {
	return &fake{in: bufio.NewReader(in), out: out, caps: `{}`}
}

// recv returns the next message of the client; the zero frame at the end.
func (f *fake) recv() frame {
	line, err := f.in.ReadBytes('\n')
	if err != nil {
		return frame{}
	}
	var m frame
	if err := json.Unmarshal(line, &m); err != nil {
		f.say(`{"broken":%q}`, line)
	}
	return m
}

// want reads messages until one of this method comes.
func (f *fake) want(method string) frame {
	for {
		m := f.recv()
		if m.Method == method || m.Method == "" && len(m.ID) == 0 {
			return m
		}
	}
}

// say writes a line.
func (f *fake) say(format string, args ...any) {
	fmt.Fprintf(f.out, format+"\n", args...)
}

func (f *fake) answer(to frame, result string) {
	f.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, to.ID, result)
}

func (f *fake) refuse(to frame, code int, text, data string) {
	f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":%s}}`, to.ID, code, text, data)
}

// update sends a session/update for session "s-1".
func (f *fake) update(update string) {
	f.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":%s}}`, update)
}

// message sends a part of a message.
func (f *fake) message(text string) {
	f.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}`, quote(text)))
}

// ask asks for permission and returns the answer.
func (f *fake) ask(call string) string {
	return f.askWith(call, `[{"optionId":"always","name":"a","kind":"allow_always"},{"optionId":"once","name":"b",`+
		`"kind":"allow_once"},{"optionId":"no","name":"c","kind":"reject_once"}]`)
}

func (f *fake) askWith(call, options string) string {
	f.sent++
	f.say(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s-1","toolCall":%s,`+
		`"options":%s}}`, f.sent, call, options)
	for {
		m := f.recv()
		if m.Method == "" {
			return string(m.Result) + string(m.Error)
		}
	}
}

// greet answers initialize.
func (f *fake) greet() {
	f.answer(f.want("initialize"), `{"protocolVersion":1,"agentCapabilities":`+f.caps+
		`,"authMethods":[{"id":"key"},{"id":"browser"}]}`)
}

// begin greets and begins session s-1; the prompt is returned.
func (f *fake) begin() frame {
	f.greet()
	f.answer(f.want("session/new"), `{"sessionId":"s-1"}`)
	return f.want("session/prompt")
}

// finish ends a prompt.
func (f *fake) finish(prompt frame) { f.answer(prompt, `{"stopReason":"end_turn"}`) }

func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// beAgent follows a script on standard input and output.
func beAgent(script string) int {
	if script == "tee" {
		return beTee()
	}
	run, ok := scripts()[script]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such script:", script)
		return 1
	}
	return run(newFake(os.Stdin, os.Stdout))
}

// scripts are what the binary can be as a process of its own. They return the
// exit status.
func scripts() map[string]func(f *fake) int {
	return map[string]func(f *fake) int{
		"echo": func(f *fake) int { // a whole turn
			p := f.begin()
			f.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"let me see"}}`)
			f.message("I will ")
			f.message("write.")
			f.update(`{"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Write a.txt","kind":"edit","status":"pending",` +
				`"rawInput":{"file_path":"/w/a.txt","content":"x"}}`)
			answer := f.ask(`{"toolCallId":"c-1","title":"Write a.txt?"}`)
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed","rawOutput":{"output":` +
				quote(answer) + `}}`)
			f.update(`{"sessionUpdate":"usage_update","used":1200,"size":8000,"cost":{"amount":0.0123,"currency":"USD"}}`)
			f.message("Done.")
			f.answer(p, `{"stopReason":"end_turn","usage":{"totalTokens":130,"inputTokens":100,"outputTokens":10,`+
				`"cachedReadTokens":15,"cachedWriteTokens":5}}`)
			f.recv()
			return 0
		},
		"where": func(f *fake) int { // tells what it was given
			p := f.begin()
			dir, err := os.Getwd() //nolint:forbidigo // it is what is asked
			f.message(fmt.Sprint(dir, " ", err, " ", os.Getenv("GIVEN"), " ", string(p.Params)))
			f.finish(p)
			f.recv()
			return 0
		},
		"environment": func(f *fake) int { // prints the variables that it received
			p := f.begin()
			f.message(strings.Join(os.Environ(), "\n"))
			f.finish(p)
			f.recv()
			return 0
		},
		"dies at once": func(*fake) int {
			fmt.Fprintln(os.Stderr, "usage: agent [options]")
			return 2
		},
		"dies in the middle": func(f *fake) int {
			f.begin()
			f.message("I begin")
			fmt.Fprintln(os.Stderr, "panic: key sk-abcdefghijklmnopqrstuvwx")
			fmt.Fprint(f.out, `{"jsonrpc":"2.0","method":"session/up`)
			return 7
		},
		"dies of its provider": func(f *fake) int {
			f.begin()
			fmt.Fprintln(os.Stderr, "Error: 429 Too Many Requests")
			return 1
		},
		"closes its output": func(f *fake) int {
			f.begin()
			_ = os.Stdout.Close()
			select {}
		},
		"hangs": func(f *fake) int {
			f.begin()
			f.message("wait")
			select {}
		},
		"kills its guard": func(f *fake) int { // and reports success
			p := f.begin()
			f.finish(p)
			if guard, err := os.FindProcess(os.Getppid()); err == nil {
				_ = guard.Kill()
			}
			select {}
		},
		"ignores everything": func(*fake) int { select {} },
		"stays": func(f *fake) int { // does not end with its input
			f.finish(f.begin())
			select {}
		},
		"cat": func(f *fake) int { // no agent at all
			_, err := io.Copy(os.Stdout, f.in)
			if err != nil && !errors.Is(err, os.ErrClosed) {
				return 1
			}
			return 0
		},
		"floods": func(f *fake) int {
			p := f.begin()
			megabytes, err := strconv.Atoi(os.Getenv("MEGABYTES"))
			if err != nil {
				return 1
			}
			line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1",` +
				`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` +
				strings.Repeat("x", 1<<20) + `"}}}}` + "\n"
			for range megabytes {
				if _, err := io.WriteString(f.out, line); err != nil {
					return 1
				}
			}
			f.finish(p)
			f.recv()
			return 0
		},
		"asks and does not read": func(f *fake) int {
			f.begin()
			for {
				if _, err := io.WriteString(f.out, `{"jsonrpc":"2.0","id":"`+strings.Repeat("i", 1000)+
					`","method":"fs/read_text_file","params":{}}`+"\n"); err != nil {
					return 0
				}
			}
		},
	}
}

// beTee runs the command in TEE_COMMAND and keeps what it writes in TEE_FILE.
func beTee() int {
	var words []string
	if err := json.Unmarshal([]byte(os.Getenv("TEE_COMMAND")), &words); err != nil || len(words) == 0 {
		return 1
	}
	file, err := os.OpenFile(os.Getenv("TEE_FILE"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, io.MultiWriter(os.Stdout, file), os.Stderr
	err = cmd.Run()
	if closeErr := file.Close(); err != nil || closeErr != nil {
		fmt.Fprintln(os.Stderr, err, closeErr)
		return 1
	}
	return 0
}

// wantKind checks the kind of an error.
func wantKind(t *testing.T, err error, want agent.Kind) *agent.Error {
	t.Helper()
	var e *agent.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error = %v, want kind %q", err, want)
	}
	return e
}

func turn(t *testing.T) *agent.Turn {
	t.Helper()
	return &agent.Turn{Prompt: "do it", Dir: t.TempDir()}
}

// wantEvents compares the kinds and messages of events.
func wantEvents(t *testing.T, events []agent.Event, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, brief(events)); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

func brief(events []agent.Event) []string {
	var got []string
	for _, e := range events {
		text := string(e.Kind) + " "
		if e.Call != nil {
			text += string(e.Call.Status)
			if e.Text != "" {
				text += " "
			}
		}
		got = append(got, text+e.Text)
	}
	return got
}
