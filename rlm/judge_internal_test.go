package rlm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A judge's JSON is found in what stands around it.
func TestReadVerdict(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]float64{
		`{"score": 80}`: 80,
		"Well.\n```json\n{\"score\": 7.5}\n```\nDone.": 7.5,
		`I say {"score":0,"critique":"x"} because`:     0,
	} {
		if v, problems := readVerdict(reply); len(problems) != 0 || !v.Scored || v.Score != want {
			t.Errorf("%q: %+v, problems %q", reply, v, problems)
		}
	}
	for reply, want := range map[string]string{
		"It is good, 8 of 10.": "no JSON",
		"":                     "empty",
		`{"score": 8`:          "ends before it is complete",
		`{"score": 800}`:       "not between 0 and 100",
	} {
		if v, problems := readVerdict(reply); len(problems) != 1 || !strings.Contains(problems[0], want) || v.Scored {
			t.Errorf("%q: %+v, problems %q, want %q", reply, v, problems, want)
		}
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	sized := func(tokens int) piece { return piece{text: strings.Repeat("x", tokens*4-pieceFrame)} }
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
		var pieces []piece
		for _, n := range tt.sizes {
			pieces = append(pieces, sized(n))
		}
		var got []int
		for _, g := range group(pieces, 100) {
			got = append(got, len(g))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.sizes, diff)
		}
	}
}
