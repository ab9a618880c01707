package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/schema"
)

// Each schema is complete in itself, so that other validators need only one file. What two of
// them share is the same in both.
func TestSharedDefinitions(t *testing.T) {
	t.Parallel()
	type doc struct {
		Defs map[string]any `json:"$defs"`
	}
	read := func(name string) (d doc) {
		text, err := schema.FS.ReadFile(name + ".json")
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, from := range map[string]string{"task-record": "tasks-file", "state-checkpoint": "rlm-state"} {
		want := read(from).Defs
		for def, is := range read(name).Defs {
			if diff := cmp.Diff(want[def], is); diff != "" {
				t.Errorf("%s of %s differs from that of %s (-want +got):\n%s", def, name, from, diff)
			}
		}
	}
}
