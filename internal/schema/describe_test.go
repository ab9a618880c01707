package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/internal/schema"
)

// described reports members without a description in a schema, by their paths.
func described(t *testing.T, path string, s map[string]any) {
	t.Helper()
	members, _ := s["properties"].(map[string]any)
	for name, one := range members {
		member, _ := one.(map[string]any)
		if text, _ := member["description"].(string); text == "" {
			t.Errorf("%s.%s has no description", path, name)
		}
		described(t, path+"."+name, member)
	}
	if items, ok := s["items"].(map[string]any); ok {
		described(t, path+"[]", items)
	}
}

// Each member of a work checkpoint has a description.
func TestHandoffMembersAreDescribed(t *testing.T) {
	t.Parallel()
	text, err := schema.FS.ReadFile("handoff-checkpoint.json")
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if members, _ := s["properties"].(map[string]any); len(members) < 10 {
		t.Fatalf("%d members", len(members))
	}
	described(t, "checkpoint", s)
}
