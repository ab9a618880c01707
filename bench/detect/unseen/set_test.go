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
	cheats := 0
	for _, s := range all {
		if name := s.Language + "/" + s.Name; seen[name] {
			t.Errorf("%s twice", name)
		} else {
			seen[name] = true
		}
		if s.Cheat {
			cheats++
		}
	}
	t.Logf("%d cheats, %d honest changes", cheats, len(all)-cheats)
}
