package perdure_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// endedTrees makes a tree of each end, and one that goes on.
func endedTrees(t *testing.T, s *perdure.Store) map[perdure.State]rooted {
	t.Helper()
	trees := make(map[perdure.State]rooted)
	for _, state := range []perdure.State{perdure.Running, perdure.Completed, perdure.Failed, perdure.Cancelled} {
		trees[state] = leased(t, s, perdure.TreeSpec{})
	}
	complete(t, trees[perdure.Completed].root, "")
	fail(t, trees[perdure.Failed].root, perdure.Failure{})
	if _, err := s.CancelTree(t.Context(), trees[perdure.Cancelled].tree.ID, ""); err != nil {
		t.Fatal(err)
	}
	return trees
}

func prune(t *testing.T, s *perdure.Store, req perdure.PruneRequest) perdure.PruneReport {
	t.Helper()
	r, err := s.Prune(t.Context(), req)
	if err != nil {
		t.Fatalf("prune: %v", err)
	}
	return r
}

func treeIDs(trees []perdure.PrunedTree) []perdure.TreeID {
	ids := []perdure.TreeID{}
	for _, t := range trees {
		ids = append(ids, t.ID)
	}
	return ids
}

// soon is a policy by which everything that has ended is due.
func soon() perdure.RetentionPolicy {
	return perdure.RetentionPolicy{Completed: time.Nanosecond, Failed: time.Nanosecond}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		trees := endedTrees(t, s)
		before := dump(t, s)
		if r := prune(t, s, perdure.PruneRequest{}); len(r.Trees)+len(r.Due) != 0 {
			t.Errorf("by default %v went at once", r)
		}
		want := []perdure.TreeID{trees[perdure.Completed].tree.ID, trees[perdure.Cancelled].tree.ID}
		due := []perdure.TreeID{trees[perdure.Failed].tree.ID}
		dry := prune(t, s, perdure.PruneRequest{Policy: soon(), DryRun: true})
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Errorf("a dry run changed:\n%s", diff)
		}
		wet := prune(t, s, perdure.PruneRequest{Policy: soon()})
		for _, r := range []perdure.PruneReport{dry, wet} {
			if diff := cmp.Diff([][]perdure.TreeID{want, due}, [][]perdure.TreeID{treeIDs(r.Trees), treeIDs(r.Due)}); diff !=
				"" {
				t.Errorf("dry run %v: -want +got\n%s", r.DryRun, diff)
			}
			if r.Bytes == 0 {
				t.Error("no bytes are told")
			}
		}
		for state, r := range trees {
			_, err := s.Tree(t.Context(), r.tree.ID)
			if gone := perdure.CodeOf(err) == perdure.CodeNotFound; gone != (state == perdure.Completed ||
				state == perdure.Cancelled) {
				t.Errorf("the %s tree: %v", state, err)
			}
		}
		all := soon()
		all.IncludeFailed = true
		if r := prune(t, s, perdure.PruneRequest{Policy: all}); len(r.Trees) != 1 || len(r.Due) != 0 {
			t.Errorf("with failed trees: %+v", r)
		}
		complete(t, trees[perdure.Running].root, "it was never touched")
		prune(t, s, perdure.PruneRequest{Policy: all})
		for _, row := range dump(t, s) {
			table, _, _ := strings.Cut(row, " ")
			if table != "session" && !strings.HasPrefix(row, "event=") && !remains(row) {
				t.Errorf("left behind: %s", row)
			}
		}
		// A number is never used again.
		last := trees[perdure.Cancelled].tree.Root
		if tree := createTree(t, s, perdure.TreeSpec{}); tree.Root != last+1 {
			t.Errorf("the next task is %s after %s", tree.Root, last)
		}
		sound(t, s)
	})
}

// remains reports whether a row is one of the events that state which trees were removed.
func remains(row string) bool {
	return strings.HasPrefix(row, "event ") && strings.Contains(row, " tree=0 task=0 kind=tree.removed ") ||
		strings.HasPrefix(row, "event_block tree=0 ")
}

// A tree of many tasks goes in several steps; between them, and after a death
// midway, the store is sound, and the next run finishes.
func TestPruneLargeTree(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		tree := createTree(t, s, perdure.TreeSpec{})
		for range 3 { // more than one step takes
			submit(t, s, tree.Root, 700)
		}
		if _, err := s.CancelTree(t.Context(), tree.ID, ""); err != nil {
			t.Fatal(err)
		}
		if err := perdure.ForgetTree(t.Context(), s, tree.ID); err != nil { // as if it died here
			t.Fatal(err)
		}
		sound(t, s)
		_, err := s.Tree(t.Context(), tree.ID)
		wantCode(t, "a forgotten tree", err, perdure.CodeNotFound)
		_, err = s.Task(t.Context(), tree.Root+1)
		wantCode(t, "a task of a forgotten tree", err, perdure.CodeNotFound)
		prune(t, s, perdure.PruneRequest{})
		for _, row := range dump(t, s) {
			if table, _, _ := strings.Cut(row, " "); !strings.HasPrefix(table, "event=") && !remains(row) {
				t.Fatalf("left behind: %s", row)
			}
		}
	})
}

// A tree that is retried while retention is about to take it stays, and
// one that is taken cannot be retried.
func TestPruneBesideRetry(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		for _, retryFirst := range []bool{true, false} {
			r := leased(t, s, perdure.TreeSpec{})
			fail(t, r.root, perdure.Failure{})
			retry := func() error { return s.RetryTask(ctx, r.tree.Root) }
			forget := func() error { return perdure.ForgetTree(ctx, s, r.tree.ID) }
			first, second := forget, retry
			if retryFirst {
				first, second = retry, forget
			}
			release := perdure.HoldWriter(ctx, s)
			results := []chan error{make(chan error, 1), make(chan error, 1)}
			go func() { results[0] <- first() }()
			awaitQueue(s, 1)
			go func() { results[1] <- second() }()
			awaitQueue(s, 2)
			if err := errors.Join(release(), <-results[0]); err != nil {
				t.Fatal(err)
			}
			err := <-results[1]
			_, readErr := s.Tree(ctx, r.tree.ID)
			if retryFirst && (err != nil || readErr != nil) {
				t.Errorf("a retried tree: %v, %v", err, readErr)
			}
			if !retryFirst && (!errors.Is(err, perdure.ErrNotFound) || !errors.Is(readErr, perdure.ErrNotFound)) {
				t.Errorf("a forgotten tree: %v, %v", err, readErr)
			}
			sound(t, s)
		}
	})
}

// Retention removes content that nothing refers to, after its time of grace,
// and never content that a tree or a context needs.
func TestPruneBlobs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		put := func(text string) perdure.BlobRef {
			ref, err := s.PutBlob(ctx, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return ref
		}
		loose, pack, manifest := put("loose"), put("pack"), put("manifest")
		c, err := s.PutContext(ctx, perdure.ContextSpec{Pack: pack, Manifest: manifest, Files: 1, Bytes: 4})
		if err != nil {
			t.Fatal(err)
		}
		tree := createTree(t, s, perdure.TreeSpec{Contexts: []string{c.ID}})
		big := strings.Repeat("x", perdure.MaxPayloadBytes+1)
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: big}})
		there := func(ref perdure.BlobRef) bool {
			b, err := s.OpenBlob(ctx, ref.Hash)
			if err != nil {
				return false
			}
			return b.Close() == nil
		}
		prune(t, s, perdure.PruneRequest{Policy: soon()})
		if !there(loose) {
			t.Error("content went within its time of grace")
		}
		age(t, s)
		prune(t, s, perdure.PruneRequest{Policy: soon(), DryRun: true})
		if !there(loose) {
			t.Error("a dry run removed content")
		}
		report := prune(t, s, perdure.PruneRequest{Policy: soon()})
		if there(loose) || !there(pack) || !there(manifest) || report.Blobs != 1 || report.Bytes != loose.Size {
			t.Errorf("loose %v, pack %v, manifest %v, %+v", there(loose), there(pack), there(manifest), report)
		}
		if got := readTask(t, s, r.tree.Root).Prompt; got != big {
			t.Error("the prompt of a living tree changed")
		}
		sound(t, s)
		complete(t, r.root, "")
		if _, err := s.CancelTree(ctx, tree.ID, ""); err != nil {
			t.Fatal(err)
		}
		age(t, s)
		prune(t, s, perdure.PruneRequest{Policy: soon()})
		if there(pack) || there(manifest) {
			t.Error("the context outlived its tree")
		}
		_, err = s.Context(ctx, c.ID)
		wantCode(t, "the context of a removed tree", err, perdure.CodeNotFound)
		_, err = s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Contexts: []string{c.ID}})
		wantCode(t, "a tree of it", err, perdure.CodeNotFound)
		sound(t, s)
	})
}

// age makes all content two hours older.
func age(t *testing.T, s *perdure.Store) {
	t.Helper()
	if err := s.Change(t.Context(), `UPDATE blob_ref SET created_at = created_at - 7200000000`); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	err := filepath.Walk(filepath.Join(s.Dir(), "blobs"), func(path string, info os.FileInfo, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // content that lies in the database
		}
		if err != nil || info.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A tree that was refused for one of its contexts leaves nothing of the others.
func TestRefusedContexts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		ref, err := s.PutBlob(ctx, bytes.NewReader([]byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.PutContext(ctx, perdure.ContextSpec{Pack: ref, Manifest: ref})
		if err != nil {
			t.Fatal(err)
		}
		before := dump(t, s)
		_, err = s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Contexts: []string{c.ID, "ctx-0123456789abcdef"}})
		wantCode(t, "tree with an unknown context", err, perdure.CodeNotFound)
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Errorf("the refusal changed:\n%s", diff)
		}
		_, err = s.PutContext(ctx, perdure.ContextSpec{Pack: perdure.BlobRef{Hash: strings.Repeat("0", 64)}, Manifest: ref})
		wantCode(t, "context of unknown content", err, perdure.CodeNotFound)
	})
}
