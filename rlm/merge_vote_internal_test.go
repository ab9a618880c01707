package rlm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
)

// Counts of levels add up, with the citations of those who gave the same answer.
func TestCountVotes(t *testing.T) {
	t.Parallel()
	one, two, three := cited("a", 1, 0), cited("b", 1, 0), cited("c", 1, 0)
	with := func(c ...model.Citation) Data { return Data{Citations: c} }
	left, none := count([]part{
		{task: 2, text: "Yes", data: with(one)}, {task: 3, text: "no", data: with(three)},
		{task: 4, text: "YES.", data: with(two, one)}, {task: 5, text: " "},
	})
	if none != 1 || len(left) != 2 || left[0].Count != 2 || left[0].Key == "" {
		t.Fatalf("votes %+v, %d abstained", left, none)
	}
	all, none := count([]part{
		{task: 6, text: "Yes", data: Data{Votes: left, Abstained: none, Citations: []model.Citation{three}}},
		{task: 7, text: nothingHere},
		{task: 8, text: "yes!", data: with(three)},
		{task: 9, text: "maybe", data: Data{Votes: []Vote{{Answer: "listed for people", Count: 7}}}},
	})
	for i := range all {
		all[i].Key = ""
	}
	want := []Vote{
		{Answer: "Yes", Task: 2, Count: 3, Citations: []model.Citation{one, two, three}},
		{Answer: "no", Task: 3, Count: 1, Citations: []model.Citation{three}},
		{Answer: "maybe", Task: 9, Count: 1},
	}
	if diff := cmp.Diff(want, all); diff != "" || none != 2 {
		t.Errorf("%d abstained; %s", none, diff)
	}
	shown := shownVotes(all, 1)
	if shown[0].Answer != "no" || len(shown) != 3 || shown[1].Citations != nil {
		t.Errorf("shown %+v", shown)
	}
}
