package loop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	settings "github.com/perdure/perdure/internal/config"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

// The document of an ended loop names its report, if it exists.
func TestReportInDocument(t *testing.T) {
	t.Parallel()
	b := &env.Backend{Config: &settings.Loaded{Dir: t.TempDir()}}
	in := loopview.Input{Tree: perdure.Tree{ID: "tree-1a2b3c4d", Kind: perdure.KindLoop, Name: "fix-it"},
		Loop: record.Loop{Tree: "tree-1a2b3c4d", Status: record.Completed}}
	if got := reportOf(b, &in); got != "" {
		t.Errorf("report %q before it was written", got)
	}
	path := filepath.Join(env.LoopDir(b.Config), loop.ID(&in.Tree), "report.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("# Report\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in.Report = reportOf(b, &in)
	if got := loopview.Document(in).ReportPath; in.Report != path || got != path {
		t.Errorf("report %q, in the document %q, want %q", in.Report, got, path)
	}
	in.Loop.Status = record.Running
	if got := reportOf(b, &in); got != "" {
		t.Errorf("report %q of a running loop", got)
	}
}
