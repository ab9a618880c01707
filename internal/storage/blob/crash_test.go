//go:build failpoint && unix

package blob_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/storage/blob"
)

// TestCrash kills a writing process at each hit of each failpoint and checks the files
// that it left.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"blob.before_sync", "blob.after_sync", "blob.after_rename"} {
		for n := 1; n < childPuts; n++ { // the last content is there already and passes none
			t.Run(fmt.Sprint(point, " ", n), func(t *testing.T) {
				t.Parallel()
				crash(t, point, n)
			})
		}
	}
}

func crash(t *testing.T, point string, n int) {
	s, dir := newStore(t)
	out, err := runChild(exec.CommandContext(t.Context(), os.Args[0]), "put", dir,
		fmt.Sprint("PERDURE_FAILPOINT=", point, ":", n))
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("child ended with %v, want killed", err)
	}
	acknowledged := strings.Count(out, "ACK")
	if acknowledged != n-1 {
		t.Errorf("%d blobs acknowledged, want %d", acknowledged, n-1)
	}
	visible := 0
	for info, err := range s.Walk(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(t.Context(), info.Hash); err != nil {
			t.Errorf("a blob is visible but not whole: %v", err)
		}
		visible++
	}
	want := acknowledged
	leftovers := 1
	if point == "blob.after_rename" {
		want, leftovers = n, 0
	}
	if visible != want {
		t.Errorf("%d blobs visible, want %d", visible, want)
	}
	checkAcknowledged(t, s, out)
	swept, err := s.Sweep(t.Context(), time.Now().Add(time.Minute))
	if err != nil || swept.Files != leftovers {
		t.Errorf("swept %+v, %v; want %d files", swept, err, leftovers)
	}
	for i := range childPuts { // the work done again ends as if nothing had happened
		mustPut(t, s, childContent(i))
	}
	if got := files(t, dir); len(got) != childPuts-1 {
		t.Errorf("files %q, want %d", got, childPuts-1)
	}
}

// checkAcknowledged reads back each blob that the child said was durable.
func checkAcknowledged(t *testing.T, s *blob.Store, out string) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var hash string
		var size int64
		if _, err := fmt.Sscanf(line, "ACK %s %d", &hash, &size); err != nil {
			continue
		}
		f, err := s.Open(hash)
		if err != nil {
			t.Error(err)
			continue
		}
		content, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		if err != nil || string(content) != childContent(i) || int64(len(content)) != size {
			t.Errorf("acknowledged blob %d holds %d bytes (%v), want %d", i, len(content), err, size)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
