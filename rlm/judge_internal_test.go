package rlm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reply, problem, critique string
		score                    float64
	}{
		{reply: `{"score": 80, "critique": " more "}`, score: 80, critique: "more"},
		{reply: "Well.\n```json\n{\"score\": \"7.5\"}\n```\nDone.", score: 7.5},
		{reply: `I say {"score":0,"critique":["x"]} because`, score: 0},
		{reply: "It is good, 8 of 10.", problem: "no JSON"},
		{reply: "", problem: "empty"},
		{reply: `[80]`, problem: "not an object"},
		{reply: `{"points": 80}`, problem: "score: it is missing"},
		{reply: `{"score": "high"}`, problem: `score: "high" is not a number`},
		{reply: `{"score": null}`, problem: "score: null is not a number"},
		{reply: `{"score": "NaN"}`, problem: "not between 0 and 100"},
		{reply: `{"score": 101}`, problem: "score: 101 is not between 0 and 100"},
		{reply: `{"score": -1}`, problem: "score: -1 is not between 0 and 100"},
		{reply: `{"score": 8`, problem: "ends before it is complete"},
	}
	for _, tt := range tests {
		v, problems := readVerdict(tt.reply)
		if tt.problem != "" {
			if len(problems) != 1 || !strings.Contains(problems[0], tt.problem) || v.scored {
				t.Errorf("%q: %+v, problems %q, want %q", tt.reply, v, problems, tt.problem)
			}
			continue
		}
		if len(problems) != 0 || !v.scored || v.score != tt.score || v.critique != tt.critique {
			t.Errorf("%q: %+v, problems %q", tt.reply, v, problems)
		}
	}
}

func FuzzReadVerdict(f *testing.F) {
	for _, reply := range []string{`{"score": 80, "critique": "x"}`, "prose", "```\n{\"score\":1}\n```", `{"score":1e400}`} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		v, problems := readVerdict(reply)
		if v.scored == (len(problems) > 0) || v.score < 0 || v.score > maxScore || v.score != v.score {
			t.Errorf("%q: %+v, %q", reply, v, problems)
		}
	})
}

func TestReadScore(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]verdict{
		"12\n":              {score: 12, scored: true},
		" -0.5 \nbecause\n": {score: -0.5, scored: true, critique: "because"},
		"":                  {},
		"NaN":               {},
		"inf":               {},
		"12 points":         {},
		"good\n12":          {},
	} {
		got, err := readScore(reply)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(verdict{})); diff != "" || (err == nil) != want.scored {
			t.Errorf("%q: %v, %s", reply, err, diff)
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
