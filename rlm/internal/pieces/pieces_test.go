package pieces_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/pieces"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	sized := func(tokens int) pieces.Piece { return pieces.Piece{Text: strings.Repeat("x", tokens*4-pieces.Frame)} }
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
		var list []pieces.Piece
		for _, n := range tt.sizes {
			list = append(list, sized(n))
		}
		var got []int
		for _, g := range pieces.Group(list, 100) {
			got = append(got, len(g))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.sizes, diff)
		}
	}
}
