package handoff_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/handoff"
)

// One agent notes what it did; another one continues from the file alone.
func Example() {
	if err := run(context.Background()); err != nil {
		slog.Error("example", "error", err)
	}
	// Output:
	// Resuming from checkpoint (created by react-dev)
	// next: Wire the toggle in src/App.tsx
	// done: Created the toggle
	// left: [Wire the toggle Write tests]
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "handoff")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, handoff.FileName)
	now := time.Date(2026, 2, 28, 10, 0, 0, 0, time.UTC)
	err = handoff.Create(ctx, path, handoff.Skeleton{Now: now, PRD: "prd-dark-mode", Story: "US-003"})
	if err != nil {
		return err
	}

	// The first agent.
	var ledger handoff.Ledger
	ledger.TaskID = "prd-dark-mode/US-003"
	ledger.NextAction = "Wire the toggle in src/App.tsx"
	ledger.CompletedSteps = []handoff.Step{{Step: "Created the toggle", Timestamp: now}}
	ledger.PendingSteps = []string{"Wire the toggle", "Write tests"}
	ledger.Metadata = handoff.Metadata{CreatedBy: "react-dev", LastUpdatedAt: now, Reason: handoff.ReasonRateLimit}
	if err := save(ctx, path, ledger); err != nil {
		return err
	}

	// The second one.
	doc, err := handoff.Load(path)
	if err != nil {
		return err
	}
	checkpoint, err := doc.Checkpoint(handoff.PRD)
	if err != nil {
		return err
	}
	r := checkpoint.Resume()
	prompt, err := r.Prompt(ctx, "")
	if err != nil {
		return err
	}
	fmt.Println(prompt[:len("Resuming from checkpoint (created by react-dev)")])
	fmt.Println("next:", checkpoint.NextAction)
	fmt.Println("done:", checkpoint.CompletedSteps[0].Step)
	fmt.Println("left:", checkpoint.PendingSteps)
	return nil
}

// save adopts what others did to the checkpoint and writes the ledger's.
func save(ctx context.Context, path string, ledger handoff.Ledger) error {
	f, err := handoff.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	theirs, err := f.Document().Checkpoint(handoff.PRD)
	if err != nil {
		return err
	}
	ledger, _, err = handoff.Adopt(ledger, nil, theirs)
	if err != nil {
		return err
	}
	next := handoff.Project(ledger, handoff.DefaultLimit)
	doc, err := f.Document().With(handoff.PRD, &next, ledger.Metadata.LastUpdatedAt)
	if err != nil {
		return err
	}
	return f.Write(doc, nil)
}

func ExampleProject() {
	var ledger handoff.Ledger
	ledger.TaskID = "adhoc:fix-login"
	for i := range 500 {
		ledger.CompletedSteps = append(ledger.CompletedSteps, handoff.Step{Step: fmt.Sprint("Step ", i)})
	}
	checkpoint := handoff.Project(ledger, 0)
	text, err := checkpoint.Compact()
	if err != nil {
		slog.Error("example", "error", err)
		return
	}
	fmt.Println(len(text) <= handoff.DefaultLimit, len(checkpoint.CompletedSteps), checkpoint.Cut.CompletedSteps)
	// Output: true 10 490
}

func ExampleAdopt() {
	var ledger handoff.Ledger
	ledger.PendingSteps = []string{"Write tests"}
	written := handoff.Project(ledger, 0)

	theirs := written // the checkpoint in the file now
	theirs.PendingSteps = nil
	theirs.CompletedSteps = []handoff.Step{{Step: "Wrote tests"}}

	ledger, changes, err := handoff.Adopt(ledger, &written, &theirs)
	if err != nil {
		slog.Error("example", "error", err)
		return
	}
	for _, change := range changes {
		fmt.Println(change)
	}
	fmt.Println(len(ledger.PendingSteps), ledger.CompletedSteps[0].Step)
	// Output:
	// pendingSteps removed: "Write tests"
	// completedSteps added: "Wrote tests"
	// 0 Wrote tests
}

func ExampleDocument_With() {
	const file = `{"activePrd": {"id": "p", "checkpoint": {"phase": "planning"}}, "big": 12345678901234567890}`
	doc, err := handoff.Parse("builder-state.json", []byte(file))
	if err != nil {
		slog.Error("example", "error", err)
		return
	}
	doc, err = doc.With(handoff.PRD, nil, time.Now())
	if err != nil {
		slog.Error("example", "error", err)
		return
	}
	fmt.Println(string(doc.Bytes()))
	// Output: {"activePrd": {"id": "p", "checkpoint": null}, "big": 12345678901234567890}
}
