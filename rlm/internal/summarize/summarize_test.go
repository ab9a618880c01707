package summarize_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/summarize"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	sized := func(tokens int) summarize.Input {
		return summarize.Input{Text: strings.Repeat("x", tokens*4-summarize.Frame)}
	}
	tests := []struct {
		sizes []int
		want  []int
	}{
		{[]int{30, 30, 40}, []int{3}},
		{[]int{30, 30, 41}, []int{2, 1}},
		{[]int{100, 100}, []int{1, 1}},
		{[]int{60, 60, 60}, []int{1, 1, 1}},
		{[]int{50, 50, 50, 50, 50}, []int{2, 2, 1}},
		{[]int{101}, []int{1}},
	}
	for _, tt := range tests {
		var list []summarize.Input
		for _, n := range tt.sizes {
			list = append(list, sized(n))
		}
		var got []int
		for _, g := range summarize.Group(list, 100) {
			got = append(got, len(g))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.sizes, diff)
		}
	}
}
