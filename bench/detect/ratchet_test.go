package main

import (
	"strings"
	"testing"
)

func TestWorse(t *testing.T) {
	t.Parallel()
	kept := &figures{Recall: map[string]part{"a": {90, 100}, "b": {10, 10}}, FalseAlarms: map[string]part{"a": {1, 50}}}
	tests := map[string]struct {
		recall, alarms map[string]part
		want           []string
	}{
		"equal":        {kept.Recall, kept.FalseAlarms, nil},
		"better":       {map[string]part{"a": {91, 100}, "b": {10, 10}}, map[string]part{"a": {0, 50}}, nil},
		"larger set":   {map[string]part{"a": {180, 200}, "b": {12, 12}}, map[string]part{"a": {2, 100}}, nil},
		"lower recall": {map[string]part{"a": {89, 100}, "b": {10, 10}}, kept.FalseAlarms, []string{"recall worse: a"}},
		"lost set":     {map[string]part{"a": {90, 100}}, kept.FalseAlarms, []string{"recall not measured: b"}},
		"more alarms":  {kept.Recall, map[string]part{"a": {2, 50}}, []string{"false alarms worse: a"}},
		"smaller base": {kept.Recall, map[string]part{"a": {1, 40}}, []string{"false alarms worse: a"}},
		"both are worse": {map[string]part{"a": {1, 100}, "b": {9, 10}}, map[string]part{"a": {50, 50}},
			[]string{"recall worse: a", "recall worse: b", "false alarms worse: a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := worse(kept, &figures{Recall: test.recall, FalseAlarms: test.alarms})
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i, line := range got {
				if !strings.HasPrefix(line, test.want[i]) {
					t.Errorf("line %d is %q, want %q", i, line, test.want[i])
				}
			}
		})
	}
}
