package rlm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
)

func FuzzNode(f *testing.F) {
	for _, s := range []string{`{}`, `{"rlm":{"v":1,"chunks":[0,10,-2,5,3,7]}}`, `{"rlm":{"v":2}}`,
		`{"rlm":{"v":1,"chunks":[1]}}`,
		`{"rlm":{"v":1,"chunks":[9223372036854775807,1]}}`, `{"rlm":{"v":1,"files":[1,2],"whole":true,"prepared":{"a":1}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		n, err := nodeOf(&perdure.Task{Metadata: json.RawMessage(raw)})
		if err != nil {
			return
		}
		encoded, err := encode("plan", metadata{n})
		if err != nil {
			t.Skip() // bytes that JSON cannot hold as they are
		}
		again, err := nodeOf(&perdure.Task{Metadata: encoded})
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		twice, err := encode("plan", metadata{again})
		if err != nil || string(twice) != string(encoded) {
			t.Errorf("%s became %s, %v", encoded, twice, err)
		}
	})
}

func TestTitles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1000)
	tests := []struct {
		node  node
		count int
		want  string
	}{
		{node{Total: 1}, 1, "find {file}"},
		{node{Total: 12, First: 2}, 1, "[part 3 of 12] find {file}"},
		{node{Total: 12, First: 2}, 5, "[parts 3-7 of 12] find {file}"},
		{node{Total: 1, File: "a.go", Whole: true}, 1, "find a.go"},
		{node{Total: 3, First: 1, File: "a.go"}, 1, "[part 2 of 3] find a.go"},
	}
	for _, tt := range tests {
		if got := tt.node.title("find {file}", tt.count); got != tt.want {
			t.Errorf("title is %q, want %q", got, tt.want)
		}
	}
	if got := (&node{Total: 1}).title(long, 1); len(got) > shownPrompt+10 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("a long prompt becomes %q", got)
	}
}

func TestLatest(t *testing.T) {
	t.Parallel()
	task := func(id perdure.TaskID, first string, state perdure.State) perdure.Task {
		return perdure.Task{ID: id, State: state, Metadata: json.RawMessage(`{"rlm":{"v":1,"first":` + first + `}}`)}
	}
	got, err := latest([]perdure.Task{
		task(1, "0", perdure.Completed), task(2, "1", perdure.Failed), task(3, "2", perdure.Cancelled),
		task(4, "3", perdure.Completed),
		task(5, "1", perdure.Completed), task(6, "2", perdure.Failed), task(7, "2", perdure.Failed),
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []perdure.TaskID
	for _, c := range got {
		ids = append(ids, c.ID)
	}
	if diff := cmp.Diff([]perdure.TaskID{1, 5, 7, 4}, ids); diff != "" {
		t.Error(diff)
	}
}
