package acp_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// wantBrief compares the brief events after the one of the session.
func wantBrief(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{"session "}, want...), got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

func TestFramesInPieces(t *testing.T) {
	t.Parallel()
	_, events := ended(t, &agent.Turn{}, func(f *fake) {
		line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1",` +
			`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"grün"}}}}` + "\r\n\n \t\n"
		for i := range len(line) {
			_, _ = io.WriteString(f.out, line[i:i+1])
		}
		f.message("two")
	})
	wantBrief(t, events, "message grün", "message two")
}

func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	got, events := ended(t, &agent.Turn{}, func(f *fake) {
		f.say("Ripgrep is not available.")
		f.say("secret=hunter2hunter2")
		f.say(`{"jsonrpc":"2.0","method":`)
		f.say(`{}x`)
		f.say("[1,2]")
		f.say("7")
		f.say("a\x00b\xff")
		f.message("fine")
	})
	wantBrief(t, events, "output Ripgrep is not available.", "output secret=[redacted]",
		`output {"jsonrpc":"2.0","method":`, "output {}x",
		"output [1,2]", "output 7", "output a\uFFFDb\uFFFD", "message fine")
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "UTF-8") {
		t.Errorf("notes %q", got.Notes)
	}
}

// An unexpected message is reported, and answered when it is a request.
func TestStrangeMessages(t *testing.T) {
	t.Parallel()
	var answers []string
	_, events := ended(t, &agent.Turn{}, func(f *fake) {
		f.say(`{}`)
		f.say(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"again"}}`) // answered before
		f.say(`{"jsonrpc":"2.0","id":99,"result":{}}`)
		f.say(`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`)
		f.say(`{"jsonrpc":"2.0","method":"_vendor/news","params":[1]}`)
		f.say(`{"jsonrpc":"2.0","method":"session/update","params":"none"}`)
		f.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1",` +
			`"update":{"sessionUpdate":"brand_new","x":1}}}`)
		f.say(`{"jsonrpc":"2.0","method":7,"id":8}`)
		for _, method := range []string{"fs/read_text_file", "terminal/create", "elicitation/create", "no/such"} {
			f.say(`{"jsonrpc":"2.0","id":"%s","method":"%s","params":{}}`, method, method)
			m := f.recv()
			answers = append(answers, string(m.ID)+string(m.Error))
		}
		f.say(`{"jsonrpc":"2.0","id":"bad","method":"session/request_permission","params":[]}`)
		m := f.recv()
		answers = append(answers, string(m.ID)+string(m.Error))
	})
	wantBrief(t, events, strings.Split(strings.Repeat("unknown ,", 12), ",")[:12]...)
	const refused = `{"code":-32601,"message":"method is not supported by this client"}`
	want := []string{
		`"fs/read_text_file"` + refused, `"terminal/create"` + refused, `"elicitation/create"` + refused,
		`"no/such"` + refused,
		`"bad"{"code":-32602,"message":"invalid parameters"}`,
	}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Error(diff)
	}
}

// IDs of requests come back as they were.
func TestIDs(t *testing.T) {
	t.Parallel()
	_, _ = ended(t, &agent.Turn{}, func(f *fake) {
		for _, id := range []string{`0`, `-1`, `1.5`, `"1"`, `1e3`, `{"a":[1]}`, `"ü\u0000"`} {
			f.say(`{"jsonrpc":"2.0","id":%s,"method":"x"}`, id)
			if m := f.recv(); string(m.ID) != id {
				t.Errorf("ID %s came back as %s", id, m.ID)
			}
		}
	})
}

func TestRequestsAfterCompletion(t *testing.T) {
	t.Parallel()
	tr := &agent.Turn{Decide: decides(true)}
	got, events, err := run(t, acp.Config{}, tr, func(f *fake) {
		f.finish(f.begin())
		for f.recv().ID != nil { // until the client has seen the end
		}
		f.say(`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"options":[{"optionId":"yes",` +
			`"kind":"allow_once"}]}}`)
		f.say(`{"jsonrpc":"2.0","id":"q","method":"fs/read_text_file"}`)
		f.say(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"refusal"}}`)
		f.update(`{"sessionUpdate":"usage_update","used":7,"size":8}`)
	})
	if err != nil || got.StopReason != "end_turn" || got.Context == nil || got.Context.Used != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	wantBrief(t, events, "tool_call pending", "unknown ", "unknown ", "usage ")
}

func TestHugeNotificationIsLeftOut(t *testing.T) {
	t.Parallel()
	var events []agent.Event
	tr := &agent.Turn{Observe: func(e agent.Event) { events = append(events, e) }}
	got, _, err := run(t, acp.Config{MaxFrameBytes: 1000}, tr, func(f *fake) {
		p := f.begin()
		f.message(strings.Repeat("x", 5000))
		f.say(strings.Repeat("y", 5000))
		f.message("short")
		f.finish(p)
	})
	if err != nil || got.Text != "short" || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	wantEvents(t, events, "session ", "notice a message of 5158 bytes was left out: at most 1000 are taken",
		"notice a message of 5001 bytes was left out: at most 1000 are taken", "message short")
}

func TestHugeMessageThatSomebodyWaitsFor(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 5000)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"pad":%q}}}`,
		`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"pad":%q}}`,
		`{"jsonrpc":"2.0","method":"session/request_permission","id":"p","params":{"pad":%q}}`,
		`{"pad":%q,"id":3}`,
	} {
		got, _, err := run(t, acp.Config{MaxFrameBytes: 1000}, &agent.Turn{}, func(f *fake) {
			f.begin()
			f.message("begun")
			f.say(line, pad)
			<-f.killed
		})
		e := wantKind(t, err, agent.KindFailed)
		if !errors.Is(e, acp.ErrFrameTooLarge) || e.Hint == "" || got.Text != "begun" {
			t.Errorf("%.60s: %v, result %+v", line, e, got)
		}
	}
}

func TestDroppable(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]bool{
		`{"jsonrpc":"2.0","method":"session/update","params":{"a":"xx`:       true,
		`{"jsonrpc":"2.0","method":"session/update","params":{"a":1},"id":5`: false,
		`{"jsonrpc":"2.0","method":"x","id":1,"params":{`:                    false,
		`{"id":1,"result":{`:                    false,
		`{"jsonrpc":"2.0","params":{"method":"`: false,
		`{"method":"session/update","params":{"sessionId":"s","update":{"id":7,"result":"error`: true,
		`{`:     false,
		`{"met`: false,
		`plain`: true,
		`[1,`:   true,
		``:      true,
	} {
		if got := acp.Droppable([]byte(head)); got != want {
			t.Errorf("Droppable(%q) = %t", head, got)
		}
	}
}

func TestFrameReader(t *testing.T) {
	t.Parallel()
	in := "one\r\n\n  \n" + strings.Repeat("x", 10) + "\n" + strings.Repeat("y", 11) + "\n" +
		strings.Repeat("z", 200_000) + "\nlast"
	data, cut, sizes := acp.Frames(strings.NewReader(in), 10)
	var got []string
	for i := range data {
		got = append(got, fmt.Sprintf("%s %t %d", data[i], cut[i], sizes[i]))
	}
	want := []string{
		"one false 5", "xxxxxxxxxx false 11", "yyyyyyyyyy true 12", "zzzzzzzzzz true 200001", "last false 4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
