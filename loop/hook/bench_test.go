package hook_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/loop/hook"
)

// BenchmarkRunner is the cost of the layer itself: handlers in this process
// that do nothing.
func BenchmarkRunner(b *testing.B) {
	fine := hook.Func(func(context.Context, hook.Message) (hook.Reply, error) {
		return hook.NewReply(hook.Allow, ""),
			nil
	})
	for _, n := range []int{0, 1, 4} {
		for _, logged := range []bool{false, true} {
			b.Run(fmt.Sprintf("handlers=%d/log=%v", n, logged), func(b *testing.B) {
				cfg := hook.Config{Observe: func(hook.Notice) {}}
				for i := range n {
					cfg.Handlers = append(cfg.Handlers, at(hook.PreToolCall, fmt.Sprint(i), fine))
				}
				if logged {
					log, err := hook.OpenLog(hook.LogConfig{Path: filepath.Join(b.TempDir(), "hook-log.jsonl")})
					if err != nil {
						b.Fatal(err)
					}
					defer log.Close()
					cfg.Log = log
				}
				r, err := hook.New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				m := message(hook.PreToolCall, map[string]any{"tool": "Bash", "command": "rm -rf build", "destructive": true})
				b.ReportAllocs()
				for b.Loop() {
					if got, err := r.Run(b.Context(), m); err != nil || got.Verdict != hook.Allow {
						b.Fatalf("%+v, %v", got, err)
					}
				}
			})
		}
	}
}
