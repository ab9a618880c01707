package main

import (
	"bytes"
	"cmp"
	"context"
	"embed" // the lists of packages
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/syntax"
)

// packages lists what is compared: a client, a name, and versions in their order.
//
//go:embed releases.txt
var packages string

// smallPackages are lists of further ones that release often, each measured apart.
//
//go:embed small.txt small-a.txt small-b.txt
var smallPackages embed.FS

type releaseOptions struct {
	cache, only string
	set         string // which list of packages that release often; the first has no name
	list        bool
	few         int // how many files of code a release may change to be counted as a commit
	out         io.Writer
	totals      map[string]*tally
	patterns    map[string]int
	commits     map[string]*commitTally
	suites      map[string]*apt // of Debian, by name
	// seen, if set, is called with each report of a mutant (a cheat) or a commit.
	seen func(report *detect.Report, cheat bool)
}

// tally counts what pairs of releases gave.
type tally struct {
	pairs, changed, alarms, warnings int
	// touched are files on which something acted.
	touched int
	lines   int
	slowest time.Duration
}

// releaseRates compares consecutive releases of each package.
func releaseRates(ctx context.Context, o releaseOptions) error {
	if err := o.compareAll(ctx, packages); err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(o.patterns)) {
		if _, err := fmt.Fprintf(o.out, "%6d %s\n", o.patterns[p], p); err != nil {
			return err
		}
	}
	return printTallies(o.out, o.totals)
}

// compareAll compares the versions of each package of a list.
func (o *releaseOptions) compareAll(ctx context.Context, list string) error {
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) < 4 || strings.HasPrefix(line, "#") || !strings.Contains(words[1], o.only) {
			continue
		}
		if err := o.comparePackage(ctx, words[0], words[1], words[2:]); err != nil {
			return fmt.Errorf("%s: %w", words[1], err)
		}
	}
	return nil
}

// smallRates compares consecutive releases of packages that release often, and
// counts those that change few files as commits: they hold one to a few, so that
// their rate is an upper bound.
func smallRates(ctx context.Context, o releaseOptions) error {
	file := "small.txt"
	if o.set != "" {
		file = "small-" + o.set + ".txt"
	}
	list, err := smallPackages.ReadFile(file)
	if err != nil {
		return fmt.Errorf("there is no set %q of small releases: %w", o.set, err)
	}
	if err := o.compareAll(ctx, string(list)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o.out, "releases that change at most %d files of code:\n", o.few); err != nil {
		return err
	}
	return printCommits(o.out, o.commits)
}

func (o *releaseOptions) countSmall(byLanguage map[string]*tally, verdict detect.Verdict) {
	alarms, keys := 0, map[string]bool{"all": true}
	for l, t := range byLanguage {
		alarms += t.alarms
		keys[l] = true
	}
	if n := filesChanged(byLanguage); n > 0 && n <= o.few {
		o.countCommit(keys, verdict, alarms)
	}
}

func filesChanged(byLanguage map[string]*tally) int {
	n := 0
	for _, t := range byLanguage {
		n += t.changed
	}
	return n
}

func (o *releaseOptions) comparePackage(ctx context.Context, client, name string, versions []string) error {
	var before map[string]string
	for i, v := range versions {
		now, err := o.files(ctx, client, name, v)
		if err != nil {
			return err
		}
		if i > 0 {
			if err := o.compareReleases(ctx, name+" "+versions[i-1]+" to "+v, before, now); err != nil {
				return err
			}
		}
		before = now
	}
	return nil
}

// files are those of a version. A version of a package of Debian is a suite.
func (o *releaseOptions) files(ctx context.Context, client, name, version string) (map[string]string, error) {
	if client == "apt" {
		return o.debianFiles(ctx, version, name)
	}
	dir, err := fetch(ctx, o.cache, client, name, version)
	if err != nil {
		return nil, err
	}
	return readFolder(dir)
}

// compareReleases counts what is found between two versions, by language.
func (o *releaseOptions) compareReleases(ctx context.Context, title string, before, now map[string]string) error {
	started := time.Now()
	report, err := detect.Run(ctx, &detect.Input{Changes: changes(before, now)})
	if err != nil {
		return err
	}
	took := time.Since(started)
	perFile := make(map[string]bool)
	byLanguage := make(map[string]*tally)
	of := func(file string) *tally {
		t := at(byLanguage, language(file))
		t.pairs, t.slowest = 1, took
		return t
	}
	for c := range changes(before, now) {
		if path := cmp.Or(c.New.Path, c.Old.Path); language(path) != "" {
			of(path).changed++
			of(path).lines += changedLines(before[path], now[path])
		}
	}
	for _, f := range report.Findings {
		if o.list && f.Action == detect.Act {
			if _, err := fmt.Fprintf(o.out, "%d files, %s: %s %.2f %s:%d gone=%t %q | %s | %s\n", filesChanged(byLanguage),
				title, f.Pattern, f.Confidence, f.File, f.Line, f.Gone, f.Subject, f.Message, f.Evidence); err != nil {
				return err
			}
		}
		if language(f.File) == "" { // a fixture or a manifest: the release alarms, no file of code does
			continue
		}
		switch {
		case f.Action == detect.Act:
			of(f.File).alarms++
			o.patterns[f.Pattern]++
			if !perFile[f.File] {
				of(f.File).touched++
			}
			perFile[f.File] = true
		case f.Action == detect.Warn:
			of(f.File).warnings++
		}
	}
	o.countSmall(byLanguage, report.Verdict)
	for l, t := range byLanguage {
		for _, key := range []string{l, "all"} {
			at(o.totals, key).add(t)
		}
	}
	return nil
}

func (t *tally) add(o *tally) {
	t.pairs += o.pairs
	t.changed += o.changed
	t.alarms += o.alarms
	t.warnings += o.warnings
	t.touched += o.touched
	t.lines += o.lines
	t.slowest = max(t.slowest, o.slowest)
}

func language(file string) string {
	if l := syntax.LanguageOf(file); l != nil {
		return l.Name
	}
	return ""
}

// changedLines counts the lines that only one of two versions has.
func changedLines(a, b string) int {
	count := make(map[string]int)
	for line := range strings.Lines(a) {
		count[line]++
	}
	n := 0
	for line := range strings.Lines(b) {
		if count[line]--; count[line] < 0 {
			n++
		}
	}
	for _, left := range count {
		n += max(left, 0)
	}
	return n
}

func printTallies(out io.Writer, totals map[string]*tally) error {
	const titles = "pairs\tfiles changed\tlines changed\talarms\tfiles with an alarm\tof files\talarms/1000 lines\t" +
		"warnings\tslowest pair"
	return table(out, titles, totals, func(t *tally) string {
		return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%s\t%.2f\t%d\t%v", t.pairs, t.changed, t.lines, t.alarms, t.touched,
			percent(t.touched, t.changed), 1000*float64(t.alarms)/float64(max(t.lines, 1)), t.warnings,
			t.slowest.Round(time.Millisecond))
	})
}

// fetch gets a version with the package's client, once.
func fetch(ctx context.Context, cache, client, name, version string) (string, error) {
	switch client {
	case "go":
		return fetchModule(ctx, name, version)
	case "npm":
		return fetchNPM(ctx, cache, name, version)
	}
	return "", fmt.Errorf("there is no client %q; go, npm and apt are", client)
}

func fetchModule(ctx context.Context, name, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", name+"@"+version)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	text, err := cmd.Output()
	var found struct{ Dir, Error string }
	if e := json.Unmarshal(text, &found); e != nil || found.Dir == "" {
		return "", errors.Join(err, fmt.Errorf("download %s@%s: %s", name, version, found.Error))
	}
	return found.Dir, nil
}

func fetchNPM(ctx context.Context, cache, name, version string) (string, error) {
	dir := filepath.Join(cache, strings.NewReplacer("/", "_", "@", "_").Replace(name+"-"+version))
	if _, err := os.Stat(filepath.Join(dir, "package")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file, err := run(ctx, dir, "npm", "pack", "--silent", "--ignore-scripts", name+"@"+version)
	if err != nil {
		return "", fmt.Errorf("fetch %s@%s: %w", name, version, err)
	}
	lines := strings.Fields(file)
	if len(lines) == 0 {
		return "", fmt.Errorf("fetch %s@%s: npm named no file", name, version)
	}
	if _, err := run(ctx, dir, "tar", "-xzf", lines[len(lines)-1], "--no-same-owner"); err != nil {
		return "", fmt.Errorf("unpack %s@%s: %w", name, version, err)
	}
	return dir, nil
}

// built reports whether JavaScript was made from TypeScript: its declarations are
// next to it, and it names its source.
func built(path string, text []byte) bool {
	if !bytes.Contains(text, []byte("sourceMappingURL")) && !bytes.Contains(text, []byte("__esModule")) {
		return false
	}
	for from, to := range map[string]string{".js": ".d.ts", ".mjs": ".d.mts", ".cjs": ".d.cts"} {
		if stem, ok := strings.CutSuffix(path, from); ok {
			if _, err := os.Stat(stem + to); err == nil {
				return true
			}
		}
	}
	return false
}

// readFolder reads the files of a version that are code, scripts or fixtures.
// Folders of what was built are no source.
func readFolder(dir string) (map[string]string, error) {
	const most = 4 << 20
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case "dist", "lib-esm", "esm", "cjs", "umd", "build", "commonjs", "module", "node_modules", "vendor", "bundles":
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > most || strings.HasSuffix(path, ".map") ||
			strings.HasSuffix(path, ".tgz") {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || built(path, text) {
			return err
		}
		files[filepath.ToSlash(rel)] = string(text)
		return nil
	})
	return files, err
}
