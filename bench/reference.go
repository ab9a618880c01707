package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed reference.py
var referenceProgram string

// constant is an endpoint that gives code to the first request and answers each sub-call at once.
type constant struct {
	code        string
	mu          sync.Mutex
	calls       int
	first, last time.Time
}

func (c *constant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct{ Content string }
	}
	arrived := time.Now()
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, fmt.Sprintf("not a request of messages: %v", err), http.StatusBadRequest)
		return
	}
	io.Copy(io.Discard, r.Body) //nolint:errcheck // the answer does not depend on it
	text, isSubCall := "ok", strings.HasPrefix(request.Messages[len(request.Messages)-1].Content, "q ")
	if !isSubCall {
		text = "```repl\n" + c.code + "\nanswer['content'] = 'complete'\nanswer['ready'] = True\n```"
	}
	content, _ := json.Marshal(text) //nolint:errchkjson // a string
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"constant","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`,
		content)
	if !isSubCall {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.calls == 1 {
		c.first = arrived
	}
	c.last = time.Now()
}

// compareWithReference: the sub-calls of code against those of the reference implementation, by turns.
// Its one argument is a Python that has the packages rlm and openai.
func compareWithReference(b *bench, round int) error {
	if len(b.args) != 1 {
		return fmt.Errorf("name the Python that has the packages rlm and openai")
	}
	program, err := b.program(b.dir)
	if err != nil {
		return err
	}
	const each, batch = 100, 1000
	for _, work := range []struct {
		name, code string
		calls      int
	}{
		{"sub-calls one after another", fmt.Sprintf("for i in range(%d): llm_query(f'q {i}')", each), each},
		{"one batch at concurrency 16", fmt.Sprintf("llm_query_batched([f'q {i}' for i in range(%d)])", batch), batch},
	} {
		reference, err := measureSubCalls(work.code, work.calls, func(url string) *exec.Cmd {
			return exec.CommandContext(b.ctx, b.args[0], "-c", referenceProgram, url, work.code)
		})
		if err != nil {
			return fmt.Errorf("reference: %s: %w", work.name, err)
		}
		dir := filepath.Join(b.dir, strconv.Itoa(round), strconv.Itoa(work.calls))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		own, err := measureSubCalls(work.code, work.calls, func(url string) *exec.Cmd {
			return runREPL(b.ctx, program, dir, url)
		})
		if err != nil {
			return fmt.Errorf("perdure: %s: %w", work.name, err)
		}
		err = b.print("reference", work.name+", answered at once", round, map[string]any{"calls": work.calls,
			"perdure_ms": own.Seconds() * 1000, "reference_ms": reference.Seconds() * 1000,
			"ratio": own.Seconds() / reference.Seconds()})
		if err != nil {
			return err
		}
	}
	return nil
}

// runREPL is a run of planner repl at an endpoint.
func runREPL(ctx context.Context, program, dir, url string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, "run", "count", "--context", "-", "--planner", "repl", "--repl-profile",
		"reference", "--model", "openai:constant", "--base-url", url, "--concurrency", "16")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "OPENAI_API_KEY=none"), strings.NewReader("hello\n")
	return cmd
}

// measureSubCalls runs a program whose code makes calls at an endpoint of its own, and returns the
// time from the first to the end of the last.
func measureSubCalls(code string, calls int, command func(url string) *exec.Cmd) (time.Duration, error) {
	endpoint := &constant{code: code}
	server := httptest.NewServer(endpoint)
	defer server.Close()
	if out, err := command(server.URL + "/v1").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	if endpoint.calls != calls {
		return 0, fmt.Errorf("%d sub-calls arrived, %d were made", endpoint.calls, calls)
	}
	return endpoint.last.Sub(endpoint.first), nil
}
