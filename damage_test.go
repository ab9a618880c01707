package perdure_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

func kinds(problems []perdure.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Kind)
	}
	return all
}

// TestCheckReadsBlobs: content that was changed or removed behind the store's
// back is found.
func TestCheckReadsBlobs(t *testing.T) {
	t.Parallel()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var refs [2]perdure.BlobRef
	for i, text := range []string{"the pack", "the manifest"} {
		if refs[i], err = s.PutBlob(t.Context(), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.PutContext(t.Context(), perdure.ContextSpec{Pack: refs[0], Manifest: refs[1], Files: 1, Bytes: 8})
	if err != nil {
		t.Fatal(err)
	}
	createTree(t, s, perdure.TreeSpec{Contexts: []string{c.ID}, Root: perdure.TaskSpec{Prompt: "p"}})
	sound(t, s)
	path := func(ref perdure.BlobRef) string { return filepath.Join(s.Dir(), "blobs", ref.Hash[:2], ref.Hash[2:]) }
	if err := os.WriteFile(path(refs[0]), []byte("the pock"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path(refs[1])); err != nil {
		t.Fatal(err)
	}
	problems, err := s.Check(t.Context())
	got := kinds(problems)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"blob_damaged", "blob_missing"}) {
		t.Errorf("check finds %v, %v", problems, err)
	}
}

// TestPruneClearsUpAfterTheDead: files that a killed process left are removed, those of
// living processes never.
func TestPruneClearsUpAfterTheDead(t *testing.T) {
	t.Parallel()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tree := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "p"}})
	working, idle, alive := openSession(t, s), openSession(t, s), openSession(t, s)
	claimOne(t, working)
	long := time.Now().Add(-time.Hour)
	for _, ss := range []*perdure.Session{working, idle, alive} {
		if err := os.Chtimes(filepath.Join(s.Dir(), "sessions", ss.ID()), long, long); err != nil {
			t.Fatal(err)
		}
	}
	young := openSession(t, s)
	for _, ss := range []*perdure.Session{working, idle, young} {
		if err := ss.Die(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left := func(ss *perdure.Session) bool {
		_, err := os.Stat(filepath.Join(s.Dir(), "sessions", ss.ID()))
		return err == nil
	}
	prune := func() {
		t.Helper()
		if _, err := s.Prune(t.Context(), perdure.PruneRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	prune()
	if left(idle) || !left(working) || !left(alive) || !left(young) {
		t.Errorf("left: idle %v, working %v, alive %v, young %v", left(idle), left(working), left(alive), left(young))
	}
	if l := claimOne(t, alive); l.Tree.ID != tree.ID {
		t.Fatalf("claimed a task of %s", l.Tree.ID)
	}
	prune()
	if left(working) || !left(alive) {
		t.Errorf("after the takeover left: working %v, alive %v", left(working), left(alive))
	}
	sound(t, s)
}
