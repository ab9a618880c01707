package metric

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/perdure/perdure/internal/check/coverage"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
)

// Loss is the coverage that the baseline had and that was lost: lines that its tests
// covered, that still exist and that tests no longer cover.
type Loss struct {
	Still   int     `json:"still"`
	Lost    int     `json:"lost"`
	Percent float64 `json:"percent"`
	// SensitiveStill and SensitiveLost are the numbers for sensitive paths.
	SensitiveStill int `json:"sensitive_still,omitempty"`
	SensitiveLost  int `json:"sensitive_lost,omitempty"`
	// Files are the files that lost most, at most maxLossFiles.
	Files []Lost `json:"files,omitempty"`
	// Unjudged is why the loss, or a part of it, does not count; empty if all of it counts.
	Unjudged string `json:"unjudged,omitempty"`
}

// Lost are the lines of a file that lost their coverage, in the form 3-7, 12.
type Lost struct {
	File      string `json:"file"`
	Lines     string `json:"lines"`
	Lost      int    `json:"lost"`
	Sensitive bool   `json:"sensitive,omitempty"`
}

const (
	// maxLossFiles limits the files of a Loss, maxLossLines the bytes of their line
	// numbers, and shownLoss the files that a sentence names.
	maxLossFiles = 20
	maxLossLines = 200
	shownLoss    = 5
)

// coverageSeverity maps the percentage lost to a severity, the worst first; the second
// number is for sensitive paths.
var coverageSeverity = [...]struct {
	severity        hook.Severity
	from, sensitive float64
}{{hook.Critical, 20, 5}, {hook.High, 5, 0}, {hook.Medium, 0, 0}}

func severityOf(percent float64, sensitive bool) hook.Severity {
	for _, row := range coverageSeverity {
		from := row.from
		if sensitive {
			from = row.sensitive
		}
		if percent >= from {
			return row.severity
		}
	}
	return hook.Medium
}

// Unknown names files for which the coverage of a run is not known.
type Unknown struct {
	// All stands for all files; Packages are Go packages that only their own tests cover.
	All      bool
	Packages []string
}

// Compare finds the lines that lost their coverage since the trusted snapshot, as of the
// snapshot now that the metrics are of. It records the loss in the metrics and returns
// what exceeds the thresholds. If nothing is trusted yet, these metrics become the
// reference.
func (t *Meter) Compare(ctx context.Context, m *Metrics, now workspace.ID, unknown Unknown) ([]Regression, error) {
	if m == nil || m.Profile == "" {
		return nil, nil
	}
	if t.Plan.Profile == "" {
		return nil, t.Trust(ctx, m, now)
	}
	before, err := t.savedProfile(ctx, t.Plan.Profile)
	if err != nil {
		return nil, err
	}
	current, err := t.savedProfile(ctx, m.Profile)
	if err != nil {
		return nil, err
	}
	f, err := t.follower(ctx, now)
	if err != nil {
		return nil, err
	}
	loss := coverage.Lost(before, current, f.follow)
	if f.err != nil {
		return nil, f.err
	}
	folders := t.folders(&unknown)
	counts := loss.Only(func(name string) bool {
		return !unknown.All && !folders[path.Dir(name)] && project.Classify(name).Class != project.TestFile
	})
	m.Loss = t.lossOf(&counts)
	switch {
	case unknown.All:
		m.Loss.Unjudged = "unknown, because tests fail or did not run"
	case len(folders) > 0:
		m.Loss.Unjudged = "packages whose tests fail or did not run are left out"
	}
	return t.regressions(&counts), nil
}

// folders returns the folders of the packages. A package outside the modules of the
// workspace makes all files unknown.
func (t *Meter) folders(unknown *Unknown) map[string]bool {
	folders := make(map[string]bool, len(unknown.Packages))
	for _, pkg := range unknown.Packages {
		folder, ok := t.folderOf(pkg)
		unknown.All = unknown.All || !ok
		folders[folder] = true
	}
	return folders
}

// lineFollower finds the lines of a snapshot in a later one.
type lineFollower struct {
	content  func(id workspace.ID, f *workspace.File) ([]byte, error)
	from, to workspace.ID
	went     map[string]*workspace.Change // by the old path
	came     map[string][]*workspace.File // by the last part of the path
	err      error
}

func (t *Meter) follower(ctx context.Context, now workspace.ID) (*lineFollower, error) {
	changes, err := t.Files.Diff(ctx, t.Plan.At, now)
	if err != nil {
		return nil, err
	}
	f := &lineFollower{from: t.Plan.At, to: now, went: make(map[string]*workspace.Change),
		came: make(map[string][]*workspace.File)}
	f.content = func(id workspace.ID, file *workspace.File) ([]byte, error) {
		if file.Kind != workspace.KindFile || file.Size > maxFollowed {
			return nil, nil
		}
		return t.Files.ReadFile(ctx, id, file.Path)
	}
	for i := range changes {
		c := &changes[i]
		if c.Old != nil {
			f.went[c.Old.Path] = c
		} else if c.New.Kind == workspace.KindFile {
			f.came[path.Base(c.Path)] = append(f.came[path.Base(c.Path)], c.New)
		}
	}
	return f, nil
}

// maxFollowed is the maximum size in bytes of files whose lines are followed; the lines
// of larger ones count as removed when the file changes.
const maxFollowed = 4 << 20

func (f *lineFollower) follow(name string) (string, coverage.LineMap, bool) {
	c := f.went[name]
	switch {
	case f.err != nil:
		return "", coverage.LineMap{}, false
	case c == nil:
		return name, coverage.Unchanged(), true
	case c.New == nil: // it may have been moved and edited at once
		if list := f.came[path.Base(name)]; len(list) == 1 {
			return f.edited(c.Old, list[0])
		}
		return "", coverage.LineMap{}, false
	case c.New.Kind != workspace.KindFile:
		return "", coverage.LineMap{}, false
	case c.Old.Hash == c.New.Hash: // renamed, or another mode
		return c.Path, coverage.Unchanged(), true
	}
	return f.edited(c.Old, c.New)
}

func (f *lineFollower) edited(was, is *workspace.File) (string, coverage.LineMap, bool) {
	before, err := f.content(f.from, was)
	if err == nil {
		var after []byte
		if after, err = f.content(f.to, is); err == nil {
			return is.Path, coverage.FollowLines(before, after), true
		}
	}
	f.err = err
	return "", coverage.LineMap{}, false
}

// folderOf returns the folder of a Go package; false if no module of the workspace has
// it.
func (t *Meter) folderOf(pkg string) (string, bool) {
	best, folder := -1, ""
	for _, m := range t.Plan.Modules {
		rest, ok := strings.CutPrefix(pkg+"/", m.Path+"/")
		if ok && len(m.Path) > best {
			best, folder = len(m.Path), path.Join(m.Dir, rest)
		}
	}
	return path.Clean(folder), best >= 0
}

// lossOf converts a loss to the form that is stored.
func (t *Meter) lossOf(loss *coverage.Loss) *Loss {
	only := loss.Only(t.Measures.Sensitive)
	kept := &Loss{Still: loss.Still, Lost: loss.Lost, Percent: loss.Percent(), SensitiveStill: only.Still,
		SensitiveLost: only.Lost}
	for _, f := range loss.Worst(maxLossFiles) {
		kept.Files = append(kept.Files, Lost{File: f.Now, Lines: clip.Bytes(f.Lines.String(), maxLossLines), Lost: f.Lost,
			Sensitive: t.Measures.Sensitive(f.Now)})
	}
	return kept
}

// Regression is a loss above a threshold.
type Regression struct {
	Severity hook.Severity
	// Text describes the loss, with the lines of the files that lost most; Files are these
	// and further ones, at most maxRegressed.
	Text  string
	Files []string
}

// maxRegressed limits the files of a regression.
const maxRegressed = 50

// regressions returns the losses above a threshold, for all files and for sensitive
// paths.
func (t *Meter) regressions(loss *coverage.Loss) []Regression {
	over := func(l *coverage.Loss, threshold float64) bool {
		return threshold >= 0 && l.Lost > 0 && l.Percent() > threshold
	}
	only := loss.Only(t.Measures.Sensitive)
	var all []Regression
	add := func(l *coverage.Loss, sensitive bool) {
		g := Regression{Severity: severityOf(l.Percent(), sensitive)}
		where := ""
		if sensitive {
			where = " on sensitive paths"
		}
		g.Text = fmt.Sprintf("%d of %d covered lines%s are no longer covered (%.1f %%): %s", l.Lost,
			l.Still, where, l.Percent(), lossText(l))
		for _, f := range l.Worst(maxRegressed) {
			g.Files = append(g.Files, f.Now)
		}
		all = append(all, g)
	}
	if over(&only, t.Measures.SensitiveThreshold) {
		add(&only, true)
	}
	// A loss on sensitive paths only is reported once.
	if over(loss, t.Measures.CoverageThreshold) && (len(all) == 0 || loss.Lost > only.Lost) {
		add(loss, false)
	}
	return all
}

// lossText names the files that lost most, with their lines.
func lossText(l *coverage.Loss) string {
	var parts []string
	worst := l.Worst(shownLoss)
	for i := range worst {
		parts = append(parts, worst[i].Now+" "+clip.Bytes(worst[i].Lines.String(), maxLossLines))
	}
	text := strings.Join(parts, "; ")
	if more := len(l.Worst(len(l.Files))) - len(worst); more > 0 {
		text += fmt.Sprintf("; and %s more", human.Count(more, "file"))
	}
	return text
}
