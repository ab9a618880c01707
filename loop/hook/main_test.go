package hook_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/loop/hook"
)

// logVar makes the test binary, started again by a test, a process that appends
// to the log it names until it is killed.
const logVar = "HOOK_TEST_LOG"

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	failpoint.Enable()
	if path := os.Getenv(logVar); path != "" {
		fmt.Fprintln(os.Stderr, "appending:", appendForEver(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// appendForEver appends records and prints the number of each when it is
// written. Every second line is long: it takes the system more than one page.
func appendForEver(path string) error {
	most, err := strconv.ParseInt(os.Getenv(logVar+"_MAX"), 10, 64)
	if err != nil {
		return err
	}
	log, err := hook.OpenLog(hook.LogConfig{Path: path, MaxBytes: most})
	if err != nil {
		return err
	}
	for i := 1; ; i++ {
		if err := log.Append(numbered(os.Getenv(logVar+"_NAME"), i)); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func numbered(handler string, i int) hook.Record {
	r := hook.Record{
		Time: time.Date(2026, 2, 2, 21, 10, 5, 0, time.UTC), Hook: hook.PostIteration, LoopID: "fix-tests-a1b2c3d4",
		Iteration: i,
		Handler:   handler, Kind: hook.KindBuiltin, Duration: 12500 * time.Microsecond, Verdict: hook.Warn,
	}
	if i%2 == 0 {
		r.StateChanges = map[string]any{"text": strings.Repeat("x", 20_000)}
	}
	return r
}

func message(name hook.Name, inputs map[string]any) hook.Message {
	return hook.Message{
		Content:  "what do you say?",
		Metadata: hook.Metadata{HookName: name, LoopID: "fix-tests-a1b2c3d4", Iteration: 5, Inputs: inputs},
	}
}

// wantFault checks the kind of an error and that it is one line.
func wantFault(t *testing.T, err error, want hook.FaultKind) *hook.FaultError {
	t.Helper()
	var f *hook.FaultError
	if !errors.As(err, &f) || f.Kind != want {
		t.Fatalf("error is %v, want a fault of kind %q", err, want)
	}
	if strings.Contains(f.Error(), "\n") {
		t.Errorf("the error has several lines: %q", f.Error())
	}
	return f
}

func says(v hook.Verdict, content string) hook.Func {
	return func(context.Context, hook.Message) (hook.Reply, error) { return hook.NewReply(v, content), nil }
}

func newRunner(t *testing.T, cfg hook.Config) *hook.Runner {
	t.Helper()
	r, err := hook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
