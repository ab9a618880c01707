package ledger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
)

// One agent records its work; another takes it up.
func Example() {
	if err := handOver(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Resuming from checkpoint (created by react-dev)
	// left: [Write tests]
}

func handOver(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := perdure.Open(ctx, perdure.Config{Dir: filepath.Join(dir, ".perdure")})
	if err != nil {
		return err
	}
	defer store.Close()
	file := filepath.Join(dir, handoff.FileName)
	if err := handoff.Create(ctx, file, handoff.Skeleton{Now: time.Now()}); err != nil {
		return err
	}

	cfg := ledger.Config{Ledgers: ledger.NewStore(store), Location: handoff.Location{File: file, Root: dir}, Folder: dir,
		Agent: "react-dev"}
	first := ledger.New(cfg)
	_, err = first.Apply(ctx,
		ledger.Op{Kind: ledger.OpStart, Text: "Dark mode", Steps: []string{"Add the toggle", "Write tests"}},
		ledger.Op{Kind: ledger.OpStep, Text: "Added the toggle", Pending: "1"},
		ledger.Op{Kind: ledger.OpDecide, Text: "CSS variables", Because: "no runtime style calculation"})
	if err != nil {
		return err
	}

	cfg.Agent = "go-tester"
	second := ledger.New(cfg)
	work, err := second.Resume(ctx, ledger.ResumeConfig{Claim: true})
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(work.Prompt, "\n")
	fmt.Println(line)
	fmt.Println("left:", work.Ledger.PendingSteps)
	return nil
}
