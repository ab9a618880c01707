package unseen_test

import (
	"testing"

	"github.com/perdure/perdure/bench/detect/unseen"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	all, err := unseen.Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	cheats, changes := map[string]int{}, map[string]int{}
	for _, s := range all {
		if name := s.Set + "/" + s.Language + "/" + s.Name; seen[name] {
			t.Errorf("%s twice", name)
		} else {
			seen[name] = true
		}
		changes[s.Set]++
		if s.Cheat {
			cheats[s.Set]++
		}
	}
	for _, set := range unseen.Sets() {
		if cheats[set] == 0 {
			t.Errorf("no cheats in the %s set", set)
		}
		t.Logf("%s set: %d cheats, %d honest changes", set, cheats[set], changes[set]-cheats[set])
	}
}
