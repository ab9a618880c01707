package rlm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
)

// replyCase is a reply of a model with the answer of the run, and what the next request says.
type replyCase struct{ name, reply, answer, says string }

func replyCases(t *testing.T) (cases []replyCase) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "replies.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(data), "\n#### ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		reply, rest, _ := strings.Cut(rest, "\n-- answer --\n")
		answer, says, _ := strings.Cut(rest, "\n-- says --\n")
		cases = append(cases, replyCase{name, reply, strings.TrimSuffix(answer, "\n"), strings.TrimSpace(says)})
	}
	return cases
}

// chatRequest is what of a request is read here.
type chatRequest struct {
	Model    string
	Messages []struct{ Role, Content string }
}

// Code runs in all forms in which models write it, and a final answer is one that code computed.
func TestRepliesOfModels(t *testing.T) {
	t.Parallel()
	cases := replyCases(t)
	asked := make(chan chatRequest, 10*len(cases))
	server := replyserver.Start(t, func(r replyserver.Request) []byte {
		var req chatRequest
		if json.Unmarshal(r.Body, &req) != nil {
			return nil
		}
		asked <- req
		number, err := strconv.Atoi(req.Model)
		if last := req.Messages[len(req.Messages)-1].Content; err == nil && strings.Contains(last, "Turn 1/") {
			return replyserver.Chat(cases[number].reply)
		}
		return replyserver.Chat("```repl\nFINAL('second')\n```")
	})
	m := make(models)
	for i := range cases {
		m[fmt.Sprintf("openai:%d", i)] = chatModel(t, strconv.Itoa(i), server.URL)
	}
	b := newBench(t, m)
	contextID := b.put(file{"ctx.txt", "twenty characters..."})
	trees := make([]perdure.Tree, len(cases))
	for i := range cases {
		trees[i] = b.launch("number?", contextID, M{"model": fmt.Sprintf("openai:%d", i), "planner": "repl",
			"repl_engine": "starlark"})
	}
	stop := b.work(4)
	results := make([]perdure.Task, len(cases))
	for i := range trees {
		root, err := b.store.Task(t.Context(), b.wait(trees[i].ID).Root)
		b.ok(err)
		results[i] = root
	}
	stop()
	close(asked)
	requests := make(map[string][]string)
	for req := range asked {
		requests[req.Model] = append(requests[req.Model], req.Messages[len(req.Messages)-1].Content)
	}
	for i, c := range cases {
		got := requests[strconv.Itoa(i)]
		last := got[len(got)-1]
		if results[i].Result != c.answer || results[i].State != perdure.Completed {
			t.Errorf("%s: %q, want %q, %s %+v; the model was told\n%s", c.name, results[i].Result, c.answer, results[i].State,
				results[i].Error, last)
		} else if c.answer == "second" && (len(got) < 2 || !strings.Contains(last, c.says)) {
			t.Errorf("%s: the model was told\n%s", c.name, last)
		}
	}
}

// chatModel returns a model of a server, with a guard.
func chatModel(t *testing.T, name, url string) model.Model {
	t.Helper()
	inner, err := openai.New(openai.Config{Model: name, BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.NewGuarded(model.GuardedConfig{Model: inner, Name: "openai:" + name})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
