package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/storage/blob"
	"github.com/perdure/perdure/internal/testing/testenv"
)

// TestMain also runs this binary as the child process of the crash, power loss and full
// disk tests.
func TestMain(m *testing.M) {
	testenv.Set()
	if role := os.Getenv("PERDURE_TEST_CHILD"); role != "" {
		if err := playChild(role, os.Getenv("PERDURE_TEST_DIR")); err != nil {
			panic(err)
		}
		return
	}
	m.Run()
}

func newStore(t testing.TB) (*blob.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deep", "blobs")
	s, err := blob.New(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func mustPut(t testing.TB, s *blob.Store, content string) blob.Ref {
	t.Helper()
	ref, err := s.Put(t.Context(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// files are the paths of all files below dir, relative to it.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		list = append(list, filepath.ToSlash(rel))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

func TestPutAndOpen(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB, larger than any buffer
	for _, content := range []string{"", "hello", "nul \x00 and \xff bytes", big} {
		t.Run(fmt.Sprint(len(content), " bytes"), func(t *testing.T) {
			t.Parallel()
			s, dir := newStore(t)
			ref := mustPut(t, s, content)
			want := blob.Ref{Hash: hashOf(content), Size: int64(len(content))}
			if ref != want {
				t.Fatalf("ref %+v, want %+v", ref, want)
			}
			f, err := s.Open(ref.Hash)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
			if err != nil || string(got) != content {
				t.Errorf("read %d bytes (%v), want the %d that were put", len(got), err, len(content))
			}
			if err := s.Verify(t.Context(), ref.Hash); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{ref.Hash[:2] + "/" + ref.Hash[2:]}, files(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPutTwiceIsOneFileWithItsTimeRenewed(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	ref := mustPut(t, s, "same")
	path := filepath.Join(dir, ref.Hash[:2], ref.Hash[2:])
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if again := mustPut(t, s, "same"); again != ref {
		t.Errorf("second put gave %+v, want %+v", again, ref)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("files %q, want one", got)
	}
	info, err := s.Stat(ref.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(info.ModTime) > time.Hour {
		t.Errorf("time is still %v", info.ModTime)
	}
}

func TestPutMendsABlobOfTheWrongSize(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	ref := mustPut(t, s, "whole content")
	if err := os.Truncate(filepath.Join(dir, ref.Hash[:2], ref.Hash[2:]), 3); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(t.Context(), ref.Hash); !errors.Is(err, blob.ErrDamaged) {
		t.Errorf("verify cut blob: %v, want damaged", err)
	}
	mustPut(t, s, "whole content")
	if err := s.Verify(t.Context(), ref.Hash); err != nil {
		t.Errorf("after a second put: %v", err)
	}
}

func TestPutFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	broken := errors.New("source broke")
	_, err := s.Put(t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the source's", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &cancelAfter{r: rand.NewChaCha8([32]byte{}), n: 10, cancel: cancel}
	if _, err := s.Put(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	if _, err := s.Put(ctx, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("put after the end of ctx: %v, want canceled", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left behind %q", got)
	}
}

// cancelAfter is an endless reader that cancels a context at its n-th read.
type cancelAfter struct {
	r      io.Reader
	n      int
	cancel context.CancelFunc
}

func (c *cancelAfter) Read(p []byte) (int, error) {
	if c.n--; c.n == 0 {
		c.cancel()
	}
	return c.r.Read(p)
}

func TestFolderRemovedWhileRunning(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	ref := mustPut(t, s, "one")
	if err := os.RemoveAll(filepath.Join(dir, ref.Hash[:2])); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "one")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "one")
	if err := s.Verify(t.Context(), ref.Hash); err != nil {
		t.Error(err)
	}
}

func TestBadAndMissingHashes(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	missing := hashOf("never put")
	tests := []struct {
		hash string
		want error
	}{
		{missing, fs.ErrNotExist},
		{"", blob.ErrBadHash},
		{missing[1:], blob.ErrBadHash},
		{strings.ToUpper(missing), blob.ErrBadHash},
		{"../" + missing[3:], blob.ErrBadHash},
		{strings.Repeat("\x00", 64), blob.ErrBadHash},
	}
	for _, tt := range tests {
		if _, err := s.Open(tt.hash); !errors.Is(err, tt.want) {
			t.Errorf("open %q: %v, want %v", tt.hash, err, tt.want)
		}
		if _, err := s.Stat(tt.hash); !errors.Is(err, tt.want) {
			t.Errorf("stat %q: %v, want %v", tt.hash, err, tt.want)
		}
		if err := s.Verify(t.Context(), tt.hash); !errors.Is(err, tt.want) {
			t.Errorf("verify %q: %v, want %v", tt.hash, err, tt.want)
		}
		if err := s.Remove(tt.hash); errors.Is(tt.want, blob.ErrBadHash) && !errors.Is(err, tt.want) {
			t.Errorf("remove %q: %v, want %v", tt.hash, err, tt.want)
		}
	}
	if err := s.Remove(missing); err != nil {
		t.Errorf("remove what is not there: %v", err)
	}
	if _, err := blob.New("", nil); err == nil {
		t.Error("a store without a folder was made")
	}
}

func TestVerifyFindsAFlippedBit(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	ref := mustPut(t, s, "content")
	path := filepath.Join(dir, ref.Hash[:2], ref.Hash[2:])
	if err := os.WriteFile(path, []byte("contend"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(t.Context(), ref.Hash); !errors.Is(err, blob.ErrDamaged) {
		t.Errorf("error %v, want damaged", err)
	}
}

func TestWalkAndRemove(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	walk := func() []string {
		t.Helper()
		hashes := []string{}
		for info, err := range s.Walk(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if info.Size != 3 || time.Since(info.ModTime) > time.Hour {
				t.Errorf("info %+v", info)
			}
			hashes = append(hashes, info.Hash)
		}
		return hashes
	}
	if got := walk(); len(got) != 0 {
		t.Errorf("empty store holds %q", got)
	}
	var want []string
	for i := range 600 { // several per folder
		want = append(want, mustPut(t, s, fmt.Sprintf("%03d", i)).Hash)
	}
	slices.Sort(want)
	for _, stray := range []string{"ab/not-a-hash", "zz/" + hashOf("x")[2:], "README"} {
		path := filepath.Join(dir, filepath.FromSlash(stray))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("stray"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, walk()); diff != "" {
		t.Errorf("walk (-want +got):\n%s", diff)
	}
	for _, hash := range want[1:] {
		if err := s.Remove(hash); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want[:1], walk()); diff != "" {
		t.Errorf("after removal (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Walk(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("walk with ended ctx: %v", err)
		}
	}
}

func TestSweepTakesOnlyOldLeftovers(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	if err := s.Sweep(t.Context(), time.Now()); err != nil {
		t.Errorf("empty store: %v", err)
	}
	ref := mustPut(t, s, "kept")
	leftover := filepath.Join(dir, "tmp", "blob-1")
	if err := os.WriteFile(leftover, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-3 * time.Hour)
	if err := os.Chtimes(leftover, old, old); err != nil {
		t.Fatal(err)
	}
	sweep := readerFunc(func([]byte) (int, error) {
		if err := s.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Error(err)
		}
		return 0, io.EOF
	})
	if _, err := s.Put(t.Context(), io.MultiReader(strings.NewReader("half"), sweep)); err != nil {
		t.Errorf("sweep during a put: %v", err)
	}
	if err := s.Verify(t.Context(), ref.Hash); err != nil {
		t.Error(err)
	}
	if left := files(t, filepath.Join(dir, "tmp")); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestConcurrentPuts(t *testing.T) {
	t.Parallel()
	_, dir := newStore(t)
	var wg sync.WaitGroup
	for range 8 {
		s, err := blob.New(dir, slog.New(slog.DiscardHandler)) // one for each process
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for i := range 20 {
				content := strings.Repeat(fmt.Sprint("value ", i), 1000)
				ref, err := s.Put(t.Context(), strings.NewReader(content))
				if err != nil || ref.Hash != hashOf(content) {
					t.Errorf("put: %+v, %v", ref, err)
					return
				}
				if err := s.Verify(t.Context(), ref.Hash); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := files(t, dir); len(got) != 20 {
		t.Errorf("%d files, want 20", len(got))
	}
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1 << 20, 64 << 20} {
		b.Run(fmt.Sprint(size>>20, "MiB"), func(b *testing.B) {
			s, _ := newStore(b)
			data := make([]byte, size)
			_, _ = rand.NewChaCha8([32]byte{}).Read(data)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				copy(data, fmt.Sprint(i)) // new content, else nothing is written
				ref, err := s.Put(b.Context(), bytes.NewReader(data))
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Remove(ref.Hash); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
