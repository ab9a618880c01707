package openai_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
)

// thoughtsCase is a reply with the answer and the thoughts in it.
type thoughtsCase struct{ name, reply, answer, thoughts string }

// isMarked reports whether the thoughts begin with a mark, so that they are known while they arrive.
func (c *thoughtsCase) isMarked() bool {
	for _, name := range []string{"only the closing", "closed twice", "without their tokens", "Granite", "Apriel",
		"analysis before"} {
		if strings.Contains(c.name, name) {
			return false
		}
	}
	return true
}

// thoughtsCases reads the file of cases.
func thoughtsCases(t *testing.T) (cases []thoughtsCase) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "thoughts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n# ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		if reply, _, ok := strings.Cut(rest, "\n-- stays --"); ok {
			cases = append(cases, thoughtsCase{name, reply, reply, ""})
			continue
		}
		reply, rest, _ := strings.Cut(rest, "\n-- answer --\n")
		answer, found, _ := strings.Cut(rest, "\n-- thoughts --\n")
		cases = append(cases, thoughtsCase{name, reply, answer, strings.TrimSpace(found)})
	}
	return cases
}

// guarded returns a model of a server with the guard that the program has.
func guarded(t *testing.T, url string) *model.Guarded {
	t.Helper()
	m, err := openai.New(openai.Config{Model: "m", BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.NewGuarded(model.GuardedConfig{Model: m, Name: "openai:m", InitialBackoff: 1, MaxBackoff: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Thoughts in a reply are no part of the answer, and what is about thoughts is.
func TestThoughtsAreNoAnswer(t *testing.T) {
	t.Parallel()
	cases := thoughtsCases(t)
	if len(cases) < 95 {
		t.Fatalf("%d cases were read", len(cases))
	}
	byName := make(map[string]string)
	for _, c := range cases {
		byName[c.name] = c.reply
	}
	server := replyserver.Start(t, func(r replyserver.Request) []byte {
		var body struct{ Messages []struct{ Content string } }
		if json.Unmarshal(r.Body, &body) != nil || len(body.Messages) == 0 {
			return nil
		}
		return replyserver.Chat(byName[body.Messages[0].Content])
	})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var streamed strings.Builder
			resp, err := guarded(t, server.URL).Generate(t.Context(), &model.Request{Prompt: c.name,
				OnText: func(text string) { streamed.WriteString(text) }})
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text != c.answer || resp.Thoughts != c.thoughts {
				t.Errorf("answer %q, thoughts %q", resp.Text, resp.Thoughts)
			}
			if c.thoughts != "" && c.isMarked() && strings.Contains(streamed.String(), strings.SplitN(c.thoughts, "\n", 2)[0]) {
				t.Errorf("the thoughts were passed on as %q", streamed.String())
			}
		})
	}
}

// A server that sends thoughts in a field has them kept, apart from the answer.
func TestThoughtsInFields(t *testing.T) {
	t.Parallel()
	const both = `{"choices":[{"message":{"reasoning":"hm","reasoning_content":"hm","content":"42"}}]}`
	const object = `{"choices":[{"message":{"reasoning":{"effort":"low"},"content":"<think>hm</think>42"}}]}`
	const parts = `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},` +
		`{"type":"text","text":"42"}]}}]}`
	for name, reply := range map[string][]byte{
		"reasoning_content": replyserver.JSON(200, `{"choices":[{"message":{"reasoning_content":"hm","content":"42"}}]}`),
		"reasoning":         replyserver.JSON(200, `{"choices":[{"message":{"reasoning":"hm","content":"42"}}]}`),
		"both":              replyserver.JSON(200, both),
		"field and tags":    replyserver.JSON(200, `{"choices":[{"message":{"reasoning":"hm","content":"</think>\n42"}}]}`),
		"an object":         replyserver.JSON(200, object),
		"parts":             replyserver.JSON(200, parts),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := replyserver.Start(t, func(replyserver.Request) []byte { return reply })
			resp, err := guarded(t, server.URL).Generate(t.Context(), &model.Request{Prompt: "?"})
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text != "42" || !strings.HasPrefix(resp.Thoughts, "hm") {
				t.Errorf("answer %q, thoughts %q", resp.Text, resp.Thoughts)
			}
		})
	}
}

// A call of a tool that was not offered is read as text, so that its code can run.
func TestCallsThatWereNotAskedFor(t *testing.T) {
	t.Parallel()
	server := replyserver.Start(t, func(replyserver.Request) []byte {
		return replyserver.JSON(200, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","type":"function",`+
			`"function":{"name":"python","arguments":"{\"code\":\"print(1)\"}"}}]},"finish_reason":"tool_calls"}]}`)
	})
	resp, err := guarded(t, server.URL).Generate(t.Context(), &model.Request{Prompt: "?"})
	if err != nil || !strings.HasPrefix(resp.Text, "<tool_call>") || !strings.Contains(resp.Text, `print(1)`) {
		t.Errorf("%+v, %v", resp, err)
	}
}

// A reply of thoughts only is asked for once more, and is an error that says so.
func TestOnlyThoughtsIsAnError(t *testing.T) {
	t.Parallel()
	field := func(reason string) []byte {
		return replyserver.JSON(200, `{"choices":[{"message":{"reasoning":"The answer is 42."},"finish_reason":"`+
			reason+`"}]}`)
	}
	parts := `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`
	for name, tt := range map[string]struct {
		reply    []byte
		requests int
		kind     model.Kind
	}{
		"in a field":        {field("stop"), 2, model.KindThoughts},
		"in parts":          {replyserver.JSON(200, parts), 2, model.KindThoughts},
		"in tags":           {replyserver.Chat("<think>\nThe answer is 42.\n</think>\n"), 2, model.KindThoughts},
		"not closed":        {replyserver.Chat("<think>\nThe answer is 42."), 2, model.KindThoughts},
		"cut at the limit":  {field("length"), 1, model.KindInvalid},
		"only analysis":     {replyserver.Chat("<|channel|>analysis<|message|>The answer is 42."), 2, model.KindThoughts},
		"nothing but marks": {replyserver.Chat("<think></think>"), 2, model.KindThoughts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := replyserver.Start(t, func(replyserver.Request) []byte { return tt.reply })
			resp, err := guarded(t, server.URL).Generate(t.Context(), &model.Request{Prompt: "?"})
			e, ok := err.(*model.Error) //nolint:errorlint // Generate returns it itself
			if !ok || e.Kind != tt.kind || e.Thoughts == "" {
				t.Fatalf("response %+v, error %+v", resp, err)
			}
			if n := len(server.Requests()); n != tt.requests {
				t.Errorf("%d requests were sent, want %d", n, tt.requests)
			}
		})
	}
}
