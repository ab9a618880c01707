package score_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/score"
)

func TestFromModel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reply, problem, critique string
		score                    float64
	}{
		{reply: `{"score": 80, "critique": " more "}`, score: 80, critique: "more"},
		{reply: `{"score": "7.5"}`, score: 7.5},
		{reply: `{"score":0,"critique":["x"]}`, score: 0},
		{reply: `[80]`, problem: "not an object"},
		{reply: `80`, problem: "not an object"},
		{reply: `{"points": 80}`, problem: "score: it is missing"},
		{reply: `{"score": "high"}`, problem: `score: "high" is not a number`},
		{reply: `{"score": null}`, problem: "score: null is not a number"},
		{reply: `{"score": {"of": 1}}`, problem: "is not a number"},
		{reply: `{"score": "NaN"}`, problem: "not between 0 and 100"},
		{reply: `{"score": 101}`, problem: "score: 101 is not between 0 and 100"},
		{reply: `{"score": -1}`, problem: "score: -1 is not between 0 and 100"},
	}
	for _, tt := range tests {
		v, problem := score.FromModel(json.RawMessage(tt.reply))
		if tt.problem != "" {
			if !strings.Contains(problem, tt.problem) || v.Scored {
				t.Errorf("%s: %+v, problem %q, want %q", tt.reply, v, problem, tt.problem)
			}
			continue
		}
		if problem != "" || !v.Scored || v.Score != tt.score || v.Critique != tt.critique {
			t.Errorf("%s: %+v, problem %q", tt.reply, v, problem)
		}
	}
}

func FuzzFromModel(f *testing.F) {
	for _, reply := range []string{`{"score": 80, "critique": "x"}`, "prose", `{"score":1e400}`, `{"score":"0x1p3"}`} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		v, problem := score.FromModel(json.RawMessage(reply))
		if v.Scored == (problem != "") || v.Score < 0 || v.Score > score.High || v.Score != v.Score {
			t.Errorf("%q: %+v, %q", reply, v, problem)
		}
	})
}

func TestFromProgram(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]score.Verdict{
		"12\n":              {Score: 12, Scored: true},
		" -0.5 \nbecause\n": {Score: -0.5, Scored: true, Critique: "because"},
		"":                  {},
		"NaN":               {},
		"inf":               {},
		"12 points":         {},
		"good\n12":          {},
	} {
		got, err := score.FromProgram(reply)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != want.Scored {
			t.Errorf("%q: %v, %s", reply, err, diff)
		}
	}
	long, err := score.FromProgram("1\n" + strings.Repeat("ä", 5000))
	if err != nil || len(long.Critique) > 2010 || !strings.HasSuffix(long.Critique, "ä…") {
		t.Errorf("%d bytes, %v", len(long.Critique), err)
	}
}
