package inspect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/testreport"
	"github.com/perdure/perdure/internal/workspace"
)

// TestRun: of two snapshots the changed files are compared; folders, links and
// large files are no trouble.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := workspace.Open(workspace.Config{Root: dir, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	take := func() workspace.ID {
		t.Helper()
		id, _, err := files.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	put("a/x_test.go", "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Log(1) }\n")
	put("same.go", "package a\n")
	before := take()
	put("a/x_test.go", "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Skip() }\n")
	put("large.bin", string(make([]byte, 5<<20)))
	if err := os.Symlink("same.go", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	after := take()
	changes, err := files.Diff(t.Context(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	report, err := inspect.Run(t.Context(), files, &inspect.Between{From: before, To: after, Changes: changes}, detect.Input{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Files != 3 || len(report.Findings) == 0 || report.Findings[0].Type != detect.TestSkipping || report.Findings[0].File != "a/x_test.go" {
		t.Errorf("%+v", report)
	}
	ran := &testreport.Report{Tests: []testreport.Test{{ID: "a::TestX"}}}
	if len(inspect.Acting(report, nil, nil)) != 1 || len(inspect.Acting(report, ran, nil)) != 0 {
		t.Errorf("acting without and with results: %+v, %+v", inspect.Acting(report, nil, nil), inspect.Acting(report, ran, nil))
	}
}

func TestFindAgain(t *testing.T) {
	t.Parallel()
	report := &detect.Report{Moved: []detect.Moved{
		{From: detect.TestName{File: "a_test.go", Name: "TestOld"}, To: detect.TestName{File: "b_test.go", Name: "TestNew"}},
		{From: detect.TestName{Name: "suite > gone with its subject"}},
		{From: detect.TestName{Name: "TestUnrun"}, To: detect.TestName{Name: "TestNowhere"}},
	}}
	lost := func() *testreport.Diff {
		return &testreport.Diff{Lost: []testreport.Change{{ID: "p::TestOld"}, {ID: "x.js::suite > gone with its subject"}, {ID: "p::TestUnrun"}, {ID: "p::TestOther"}}}
	}
	d, now := lost(), &testreport.Report{Tests: []testreport.Test{{ID: "p::TestNew"}}}
	inspect.FindAgain(d, report, now)
	if len(d.Lost) != 2 || d.Lost[0].ID != "p::TestUnrun" || d.Lost[1].ID != "p::TestOther" {
		t.Errorf("lost: %+v", d.Lost)
	}
	d = lost()
	inspect.FindAgain(d, nil, now)
	if len(d.Lost) != 4 {
		t.Errorf("without a report: %+v", d.Lost)
	}
}

// Results that list a test which the files do not have any more are no proof that it
// ran, unless another test may have its name.
func TestForgedResults(t *testing.T) {
	t.Parallel()
	gone := detect.Finding{Type: detect.TestDeletion, Action: detect.Act, Subject: "TestGone", Message: "a test of the baseline is gone"}
	baseline := &testreport.Report{Tests: []testreport.Test{{ID: "p::TestGone"}, {ID: "q::TestGone"}, {ID: "p::TestKept"}}}
	honest := &testreport.Report{Tests: []testreport.Test{{ID: "p::TestKept"}}}
	tests := []struct {
		name  string
		now   *testreport.Report
		added []detect.TestName
		want  int
	}{
		{"honest: the results tell", honest, nil, 0},
		{"forged", baseline, nil, 1},
		{"honest: one of the same name is left", &testreport.Report{Tests: []testreport.Test{{ID: "q::TestGone"}}}, nil, 0},
		{"written anew", baseline, []detect.TestName{{File: "b_test.go", Name: "TestGone"}}, 0},
		{"no results", nil, nil, 0},
	}
	for _, tt := range tests {
		report := &detect.Report{Findings: []detect.Finding{gone}, Added: tt.added}
		acting := inspect.Acting(report, baseline, tt.now)
		if len(acting) != tt.want {
			t.Errorf("%s: %+v, want %d", tt.name, acting, tt.want)
		}
		if tt.want == 1 && len(acting) == 1 && acting[0].Message != "a test of the baseline is gone, and the results list it as if it had run" {
			t.Errorf("%s: told %q", tt.name, acting[0].Message)
		}
	}
}
