package status_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/status"
)

func TestCost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		usage perdure.Usage
		want  string
	}{
		{perdure.Usage{}, "–"},
		{perdure.Usage{Calls: 2}, "–"},
		{perdure.Usage{Calls: 2, InputTokens: 1}, "$0.0000"},
		{perdure.Usage{Calls: 2, CostUSD: 0.065}, "$0.0650"},
		{perdure.Usage{Calls: 2, CostUSD: 0.00001}, "<$0.0001"},
		{perdure.Usage{Calls: 2, UnpricedCalls: 2}, "price unknown"},
		{perdure.Usage{Calls: 3, UnpricedCalls: 2}, "price unknown"},
		{perdure.Usage{Calls: 3, CostUSD: 0.5, UnpricedCalls: 1}, "$0.5000 + 1 call of unknown price"},
	}
	for _, test := range tests {
		if got := status.Cost(test.usage); got != test.want {
			t.Errorf("cost(%+v) = %q, want %q", test.usage, got, test.want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]perdure.Usage{
		"0 calls": {},
		"1 call, 1,200 tokens in, 30 out, $0.0100": {Calls: 1, InputTokens: 1200, OutputTokens: 30, CostUSD: 0.01},
		"3 calls, 2 calls with unknown outcome":    {Calls: 3, UncertainCalls: 2},
		"3 calls, 2 calls with unknown outcome (at most 5.0k tokens, $0.0200)": {Calls: 3, UncertainCalls: 2,
			UncertainTokens: 5000, UncertainCostUSD: 0.02},
	} {
		if got := status.Usage(u); got != want {
			t.Errorf("usage %q, want %q", got, want)
		}
	}
}
