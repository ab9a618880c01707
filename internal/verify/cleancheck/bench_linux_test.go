package cleancheck_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
)

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCheck measures the overhead of a clean copy of a workspace of 50,000 files of
// 4 KiB, and with as many ignored ones.
func BenchmarkCheck(b *testing.B) {
	root := filepath.Join(b.TempDir(), "work")
	content := make([]byte, 4<<10)
	random := rand.NewChaCha8([32]byte{1})
	fill := func(top string) {
		for i := range 50_000 {
			name := filepath.Join(root, top, fmt.Sprintf("part%02d/package%03d/file%05d.go", i/1000, i/20, i))
			if i%20 == 0 {
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					b.Fatal(err)
				}
			}
			_, _ = random.Read(content)
			if err := os.WriteFile(name, content, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	fill("")
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("node_modules/\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	files, err := workspace.Open(workspace.Config{Root: root, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	id, _, err := files.Snapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	measure := func(b *testing.B) {
		kept, err := cleancheck.Keep(b.Context(), files)
		if err != nil {
			b.Fatal(err)
		}
		machine, err := cleancheck.RecordMachine(b.Context(), os.Environ(), root, []string{"sh", "go"})
		if err != nil {
			b.Fatal(err)
		}
		run := func(context.Context, *cleancheck.Place, *testreport.Report) (*cleancheck.Result, error) {
			return &cleancheck.Result{Passed: true}, nil
		}
		c := &cleancheck.Candidate{Of: id, Now: cleancheck.Result{Passed: true}, Since: &evidence.Between{From: id, To: id},
			Kept: kept}
		cfg := cleancheck.Config{Files: files, Temp: b.TempDir(), Run: run, Env: os.Environ(), Machine: machine}
		copying, before := int64(0), processor(b)
		for b.Loop() {
			v, err := cleancheck.Check(b.Context(), cfg, c)
			if err != nil || v.State != cleancheck.Passed || v.Copied < 50_000 {
				b.Fatal(v, err)
			}
			copying += v.CopyMS
		}
		b.ReportMetric(float64(copying)/float64(b.N), "copy-ms/op")
		b.ReportMetric(float64((processor(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
	}
	b.Run("snapshot", measure)
	fill("node_modules")
	b.Run("and ignored", measure)
	b.Run("machine", func(b *testing.B) {
		for b.Loop() {
			if _, err := cleancheck.RecordMachine(b.Context(), os.Environ(), root, []string{"sh", "go", "node"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("keep", func(b *testing.B) {
		for b.Loop() {
			if _, err := cleancheck.Keep(b.Context(), files); err != nil {
				b.Fatal(err)
			}
		}
	})
}
