package rlm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

func TestConcatenate(t *testing.T) {
	t.Parallel()
	m := merger{merge: MergeConcatenate, files: true}
	text, _ := m.run([]part{{file: "a.go", text: "x\n"}, {file: "b.go", text: "x"}})
	if want := "## a.go\n\nx\n\n## b.go\n\nx"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func cited(file string, start int, score float64) model.Citation {
	return model.Citation{File: file, StartLine: start, EndLine: start, Text: fmt.Sprint(file, start),
		SHA256: fmt.Sprintf("%s-%d", file, start), Score: score}
}

func TestCitationsAreUnited(t *testing.T) {
	t.Parallel()
	a, b, c := cited("a", 1, 0), cited("b", 1, 0), cited("a", 2, 0)
	m := merger{merge: MergeUnion}
	_, data := m.run([]part{
		{text: "x", data: Data{Citations: []model.Citation{a, b}, Notes: []string{"n1", "n2"}}},
		{text: "y", data: Data{Citations: []model.Citation{b, c}, Notes: []string{"n2"}, Missing: []Missing{{Task: 1}},
			MoreMissing: 4}},
	})
	want := Data{Citations: []model.Citation{a, b, c}, Notes: []string{"n1", "n2"}, Missing: []Missing{{Task: 1}},
		MoreMissing: 4}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Error(diff)
	}
}

func TestRankedCitationsAreBounded(t *testing.T) {
	t.Parallel()
	var parts []part
	for i := range 30 {
		f := string(rune('a' + i))
		parts = append(parts, part{data: Data{
			Citations: []model.Citation{cited(f, 1, float64(i)), cited(f, 9, float64(i)/2)}}})
	}
	for _, whole := range []bool{false, true} {
		m := merger{prompt: "what", merge: MergeUnion, ranked: true, whole: whole}
		text, data := m.run(parts)
		want := rankedKept
		if whole {
			want = rankedShown
		}
		if len(data.Citations) != want || data.Citations[0].Score != 29 {
			t.Errorf("whole %v: %d citations, the first is %+v", whole, len(data.Citations), data.Citations[0])
		}
		if !strings.Contains(text, "builtin:extract") {
			t.Errorf("the answer does not say what it is: %q", text)
		}
	}
}

func TestMissingIsBounded(t *testing.T) {
	t.Parallel()
	var d Data
	for range 3 {
		d.addMissing(make([]Missing, 400), 1)
	}
	if len(d.Missing) != maxMissing || d.MoreMissing != 203 {
		t.Errorf("%d are listed and %d counted", len(d.Missing), d.MoreMissing)
	}
}

// The error of a task that was cancelled without a reason is the kind alone.
func TestLastError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		task perdure.Task
		want string
	}{
		{perdure.Task{State: perdure.Failed}, "failed"},
		{perdure.Task{Error: &perdure.TaskError{Kind: "cancelled"}}, "cancelled"},
		{perdure.Task{Error: &perdure.TaskError{Kind: "model", Message: "it refused"}}, "model: it refused"},
	} {
		if got := lastError(&tt.task); got != tt.want {
			t.Errorf("lastError is %q, want %q", got, tt.want)
		}
	}
}
