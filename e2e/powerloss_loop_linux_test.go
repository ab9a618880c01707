package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/workspace"
)

// TestPowerLossOfSnapshots: a snapshot that was taken can be read as a whole after
// a power loss, as TestPowerLoss makes it.
func TestPowerLossOfSnapshots(t *testing.T) {
	t.Parallel()
	trace, base := record(t, "snapshots")
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 3))
	d := newDisk(base)
	d.acked = func() {
		for name, how := range map[string]*rand.Rand{"at worst": nil, "by chance": rng} {
			if err := snapshotsSurvive(t, d, how); err != nil {
				t.Errorf("after %v, %s: %v", d.acks[len(d.acks)-1:], name, err)
			}
		}
	}
	play(t, d, trace)
	if len(d.acks) != 7 {
		t.Errorf("acknowledged: %v", d.acks)
	}
}

// TestPowerLossOfSnapshotsOnLyingDisk: each flush of them is needed.
func TestPowerLossOfSnapshotsOnLyingDisk(t *testing.T) {
	t.Parallel()
	trace, base := record(t, "snapshots")
	for name, ignore := range map[string]func(path string) bool{
		"packs":          func(path string) bool { return strings.Contains(path, "/packs/") },
		"names of packs": func(path string) bool { return filepath.Base(path) == "packs" },
		"manifests":      func(path string) bool { return filepath.Base(path) == "manifests" },
		"the project":    func(path string) bool { return filepath.Base(path) == "project" },
	} {
		d := newDisk(base)
		d.ignore = ignore
		lost := 0
		d.acked = func() {
			if snapshotsSurvive(t, d, nil) != nil {
				lost++
			}
		}
		play(t, d, trace)
		if lost == 0 {
			t.Errorf("%s: nothing is lost", name)
		}
	}
}

// snapshotsSurvive rebuilds the disk and returns the lost acknowledged snapshots.
func snapshotsSurvive(t *testing.T, d *disk, rng *rand.Rand) error {
	t.Helper()
	dir := t.TempDir()
	rebuild := func() error { return d.worst(dir) }
	if rng != nil {
		rebuild = func() error { return d.chance(dir, rng) }
	}
	if err := rebuild(); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "project")
	if _, err := os.Stat(root); err != nil {
		return err
	}
	w, err := loopWorkspace(filepath.Join(root, ".perdure"))
	if err != nil {
		return err
	}
	for _, ack := range d.acks {
		fact := strings.Fields(ack)
		if fact[0] == "end" {
			continue
		}
		n, err := strconv.Atoi(fact[2])
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range loopEdits(n) {
			content, err := w.ReadFile(t.Context(), workspace.ID(fact[1]), name)
			if text == "" && errors.Is(err, workspace.ErrNotFound) {
				content, err = nil, nil
			}
			if err != nil || string(content) != text {
				return fmt.Errorf("%s: %s holds %q, want %q: %w", ack, name, content, text, err)
			}
		}
	}
	return nil
}
