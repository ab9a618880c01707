package rlm

import (
	"strings"
	"testing"
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
