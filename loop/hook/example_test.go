package hook_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/loop/hook"
)

// A runner with one handler in this process that looks at tool calls.
func Example() {
	careful := hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
		if m.Metadata.Inputs["risk_level"] != "high" {
			return hook.NewReply(hook.Allow, ""), nil
		}
		r := hook.NewReply(hook.Warn, "a test file is about to change")
		r.Metadata.Inject = "You are about to modify a test file: a fix, not a deletion?"
		return r, nil
	})
	r, err := hook.New(hook.Config{
		Handlers: []hook.Registration{{Hook: hook.PreToolCall, Name: "careful", Handler: careful}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := r.Run(context.Background(), hook.Message{
		Content: "May this call go through?",
		Metadata: hook.Metadata{HookName: hook.PreToolCall, Iteration: 3,
			Inputs: map[string]any{"tool": "Edit", "risk_level": "high"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.Verdict, got.Inject)
	// Output: WARN You are about to modify a test file: a fix, not a deletion?
}
