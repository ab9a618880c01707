package evidence_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
)

// place is a folder with snapshots.
type place struct {
	*testing.T
	dir   string
	files *workspace.Workspace
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	files, err := workspace.Open(workspace.Config{Root: dir, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, dir, files}
}

func (p *place) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) put(name, text string) {
	p.Helper()
	p.ok(os.MkdirAll(filepath.Dir(p.path(name)), 0o700))
	p.ok(os.WriteFile(p.path(name), []byte(text), 0o600))
}

func (p *place) take() workspace.ID {
	p.Helper()
	id, _, err := p.files.Snapshot(p.Context())
	p.ok(err)
	return id
}

// since inspects the changes since a snapshot.
func (p *place) since(before workspace.ID) *detect.Report {
	p.Helper()
	after := p.take()
	changes, err := p.files.Diff(p.Context(), before, after)
	p.ok(err)
	report, err := evidence.Run(p.Context(), p.files, &evidence.Between{From: before, To: after, Changes: changes},
		detect.Input{})
	p.ok(err)
	return report
}

// TestRun: the changed files of two snapshots are compared; folders, links and large
// files cause no error.
func TestRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("a/x_test.go", "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Log(1) }\n")
	p.put("same.go", "package a\n")
	before := p.take()
	p.put("a/x_test.go", "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Skip() }\n")
	p.put("large.bin", string(make([]byte, 5<<20)))
	p.ok(os.Symlink("same.go", p.path("link")))
	report := p.since(before)
	if report.Files != 3 || len(report.Findings) == 0 || report.Findings[0].Type != detect.TestSkipping ||
		report.Findings[0].File != "a/x_test.go" {
		t.Errorf("%+v", report)
	}
	ran := &testreport.Report{Tests: []testreport.Test{{ID: "a::TestX"}}}
	if len(evidence.Acting(report, nil, nil)) != 1 || len(evidence.Acting(report, ran, nil)) != 0 {
		t.Errorf("acting without and with results: %+v, %+v", evidence.Acting(report, nil, nil),
			evidence.Acting(report, ran, nil))
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
		return &testreport.Diff{Lost: []testreport.Change{{ID: "p::TestOld"}, {ID: "x.js::suite > gone with its subject"},
			{ID: "p::TestUnrun"}, {ID: "p::TestOther"}}}
	}
	d, now := lost(), &testreport.Report{Tests: []testreport.Test{{ID: "p::TestNew"}}}
	evidence.FindAgain(d, report, now)
	if len(d.Lost) != 2 || d.Lost[0].ID != "p::TestUnrun" || d.Lost[1].ID != "p::TestOther" {
		t.Errorf("lost: %+v", d.Lost)
	}
	d = lost()
	evidence.FindAgain(d, nil, now)
	if len(d.Lost) != 4 {
		t.Errorf("without a report: %+v", d.Lost)
	}
}

// Results that list a removed test do not prove that it ran, unless another test may have
// its name.
func TestForgedResults(t *testing.T) {
	t.Parallel()
	gone := detect.Finding{Type: detect.TestDeletion, Action: detect.Act, Subject: "TestGone",
		Message: "test removed"}
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
		acting := evidence.Acting(report, baseline, tt.now)
		if len(acting) != tt.want {
			t.Errorf("%s: %+v, want %d", tt.name, acting, tt.want)
		}
		if tt.want == 1 && len(acting) == 1 &&
			(!strings.HasPrefix(acting[0].Message, "test removed") || acting[0].Message == gone.Message) {
			t.Errorf("%s: told %q", tt.name, acting[0].Message)
		}
	}
}
