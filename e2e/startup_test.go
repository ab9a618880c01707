package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// BenchmarkVersion measures the time in which the program starts and ends, built as a
// release, with a new process each time.
func BenchmarkVersion(b *testing.B) {
	program := filepath.Join(b.TempDir(), "perdure")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../cmd/perdure")
	build.Env = append(slices.Clone(givenEnv()), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.ResetTimer()
	for b.Loop() {
		if err := exec.Command(program, "version").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
