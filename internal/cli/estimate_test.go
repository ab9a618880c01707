package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/rlm"
)

// TestDryRunLeavesNothing: a dry run creates no store, and in an existing one no tree.
func TestDryRunLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("a.txt", "alpha\n")
	args := []string{"run", "Which letter?", "-c", "a.txt", "--model", "openai:gpt-4o-mini", "--dry-run"}
	stdout, stderr := p.run(0, args...)
	if !strings.Contains(stdout, "\ncalls       1\n") || !strings.Contains(stderr, "nothing was sent") {
		t.Errorf("printed %s%s", stdout, stderr)
	}
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	p.run(0, "run", "x", "--model", "mock:echo")
	p.run(0, args...)
	if stdout, _ = p.run(0, "status"); strings.Count(stdout, "tree-") != 1 {
		t.Errorf("trees: %s", stdout)
	}
}

func TestEstimateText(t *testing.T) {
	t.Parallel()
	e := rlm.Estimate{Planner: "split", LeastCalls: 1, Calls: new(int64(1)), LeastInputTokens: 900,
		InputTokens: new(int64(1000)), OutputTokens: new(int64(4096)), TimeBasis: "no calls"}
	const unpriced = "1 call, about 900 to 1,000 tokens in, at most 4,096 out, price unknown, time unknown: no calls"
	if got := estimateLine(&e); got != unpriced {
		t.Errorf("%q, want %q", got, unpriced)
	}
	e.Calls, e.LeastInputTokens, e.Seconds, e.TimeBasis = new(int64(3)), 400, new(4.0), "x"
	e.CostUSD, e.LeastCostUSD = new(0.02), new(0.01)
	const priced = "at most 3 calls, at most 1,000 tokens in, at most 4,096 out, $0.0100 to $0.0200, time about 4.0s (x)"
	if got := estimateLine(&e); got != priced {
		t.Errorf("%q, want %q", got, priced)
	}
}

// TestBudgetFlagsSuffice: amounts are rounded up.
func TestBudgetFlagsSuffice(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]rlm.Budget{
		"--budget-calls 41 --budget-tokens 1234567 --budget-usd 0.0102": {Calls: new(int64(41)),
			Tokens: new(int64(1_234_567)), CostUSD: new(0.010101)},
		"--budget-calls 2 --budget-usd 0.0001": {Calls: new(int64(2)), Tokens: new(int64(0)), CostUSD: new(0.000001)},
		"":                                     {},
	} {
		if got := budgetFlags(&b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestConfirmAsks: on a terminal the user decides.
func TestConfirmAsks(t *testing.T) {
	t.Parallel()
	for answer, status := range map[string]int{"y\n": 0, "n\n": env.StatusFailed, "": env.StatusFailed} {
		p := newProject(t)
		p.width, p.stdin = 100, strings.NewReader(answer)
		_, stderr := p.run(status, "run", "x", "--model", "exec:cat", "--confirm-above", "5")
		if !strings.Contains(stderr, "the cost is unknown, which counts as more than $5. Start it? [y/N]") {
			t.Errorf("answer %q: %s", answer, stderr)
		}
		trees := 0
		if status == 0 {
			trees = 1
		}
		if stdout, _ := p.run(0, "status"); strings.Count(stdout, "tree-") != trees {
			t.Errorf("answer %q: trees %s", answer, stdout)
		}
	}
}
