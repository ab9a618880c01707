package reinforce_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/loop/hook"
)

func TestLevels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg   reinforce.Config
		facts reinforce.Facts
		want  hook.Level
	}{
		"first":          {facts: reinforce.Facts{Iteration: 1}, want: hook.LevelMinimal},
		"second":         {facts: reinforce.Facts{Iteration: 2}, want: hook.LevelMinimal},
		"third":          {facts: reinforce.Facts{Iteration: 3}, want: hook.LevelStandard},
		"fourth":         {facts: reinforce.Facts{Iteration: 4}, want: hook.LevelStandard},
		"fifth":          {facts: reinforce.Facts{Iteration: 5}, want: hook.LevelAggressive},
		"regression":     {facts: reinforce.Facts{Iteration: 2, Regressed: true}, want: hook.LevelAggressive},
		"rejected":       {facts: reinforce.Facts{Iteration: 2, Rejected: true}, want: hook.LevelAggressive},
		"repeated error": {facts: reinforce.Facts{Iteration: 2, Repeated: 2}, want: hook.LevelAggressive},
		"plateau": {facts: reinforce.Facts{Iteration: 4, Qualities: []int{70, 71, 70, 72}},
			want: hook.LevelAggressive},
		"off": {cfg: reinforce.Config{Default: hook.LevelOff},
			facts: reinforce.Facts{Iteration: 9, Regressed: true}, want: hook.LevelOff},
		"least": {cfg: reinforce.Config{Default: hook.LevelStandard}, facts: reinforce.Facts{Iteration: 1},
			want: hook.LevelStandard},
		"adaptive": {cfg: reinforce.Config{Default: hook.LevelAdaptive}, facts: reinforce.Facts{Iteration: 9},
			want: hook.LevelMinimal},
		"adaptive, tests": {cfg: reinforce.Config{Default: hook.LevelAdaptive},
			facts: reinforce.Facts{Iteration: 9, TestsTouched: true}, want: hook.LevelStandard},
		"adaptive, worse": {cfg: reinforce.Config{Default: hook.LevelAdaptive},
			facts: reinforce.Facts{Iteration: 1, Regressed: true}, want: hook.LevelAggressive},
		"a handler": {facts: reinforce.Facts{Iteration: 9, Asked: hook.LevelMinimal}, want: hook.LevelMinimal},
		"thresholds": {cfg: reinforce.Config{StandardFrom: 7, AggressiveFrom: -1},
			facts: reinforce.Facts{Iteration: 50}, want: hook.LevelStandard},
		"before thresholds": {cfg: reinforce.Config{StandardFrom: 7, AggressiveFrom: -1},
			facts: reinforce.Facts{Iteration: 6}, want: hook.LevelMinimal},
	} {
		if got, why := c.cfg.Level(&c.facts); got != c.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", name, got, why, c.want)
		}
	}
}

func TestTrend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		qualities          []int
		plateau, declining bool
	}{
		"too few":      {[]int{70, 70, 70}, false, false},
		"still":        {[]int{70, 70, 70, 70}, true, false},
		"small steps":  {[]int{100, 95, 99, 95}, true, false},
		"rising":       {[]int{50, 60, 60, 60}, false, false},
		"falling":      {[]int{85, 83, 70, 70}, false, true},
		"the last 3":   {[]int{10, 90, 90, 90, 90}, true, false},
		"up and down":  {[]int{50, 60, 50, 60}, false, false},
		"from nothing": {[]int{0, 0, 0, 0}, true, false},
	} {
		if plateau, declining := reinforce.Trend(c.qualities, 0); plateau != c.plateau || declining != c.declining {
			t.Errorf("%s: plateau %v, declining %v", name, plateau, declining)
		}
	}
}

// TestTextsKeepTheirLimits: a reminder is never longer than its level and the session
// allow, and always ends with the honest exit.
func TestTextsKeepTheirLimits(t *testing.T) {
	t.Parallel()
	texts, err := reinforce.LoadTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom([]hook.Level{hook.LevelOff, hook.LevelMinimal, hook.LevelStandard,
			hook.LevelAggressive}).Draw(t, "level")
		left := rapid.IntRange(0, 600).Draw(t, "left")
		text := rapid.StringN(0, 500, -1)
		about := &reinforce.About{Iteration: rapid.IntRange(1, 99).Draw(t, "iteration"), Error: text.Draw(t, "error"),
			ErrorKind: text.Draw(t, "kind"),
			Place:     text.Draw(t, "place"), Repeated: rapid.IntRange(0, 9).Draw(t, "repeated"),
			Plateau: rapid.Bool().Draw(t, "plateau"),
			Worse:   rapid.SliceOfN(text, 0, 20).Draw(t, "worse")}
		for _, name := range rapid.SliceOfN(text, 0, 20).Draw(t, "failing") {
			about.Failing = append(about.Failing, reinforce.Failing{Name: name, File: text.Draw(t, "file")})
		}
		got, err := texts.Text(t.Context(), level, about, left)
		if err != nil {
			t.Fatal(err)
		}
		if n := reinforce.Tokens(got); n > reinforce.Most(level) || n > left {
			t.Fatalf("%d tokens at level %s with %d left:\n%s", n, level, left, got)
		}
		if got != "" && !strings.Contains(got, "HONEST EXIT") {
			t.Fatalf("no way out:\n%s", got)
		}
		if level != hook.LevelOff && left >= reinforce.MaxMinimal && got == "" {
			t.Fatal("nothing is said")
		}
	})
}

// TestTextsNameWhatFails: a reminder names the failing test and its file.
func TestTextsNameWhatFails(t *testing.T) {
	t.Parallel()
	texts, err := reinforce.LoadTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	about := &reinforce.About{Failing: []reinforce.Failing{{"TestLogin", "auth/login_test.go"}},
		Worse: []string{"1 test removed"}}
	for _, level := range []hook.Level{hook.LevelMinimal, hook.LevelStandard, hook.LevelAggressive} {
		got, err := texts.Text(t.Context(), level, about, reinforce.MaxSession)
		if err != nil || !strings.Contains(got, "TestLogin") || !strings.Contains(got, "auth/login_test.go") {
			t.Errorf("%s: %v\n%s", level, err, got)
		}
	}
}

func TestOwnTexts(t *testing.T) {
	t.Parallel()
	if _, err := reinforce.LoadTemplates(t.Context(),
		fstest.MapFS{"minimal.md.tmpl": {Data: []byte("Mind {{(index .Failing 0).Name}}!")}}); err == nil {
		t.Error("a template that fails without failing tests is taken")
	}
	texts, err := reinforce.LoadTemplates(t.Context(), fstest.MapFS{
		"minimal.md.tmpl": {Data: []byte("Mind iteration {{.Iteration}}!")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := texts.Text(t.Context(), hook.LevelMinimal, &reinforce.About{Iteration: 7}, 500); !strings.HasPrefix(got,
		"Mind iteration 7!") {
		t.Errorf("%s", got)
	}
	for _, bad := range []string{"{{", "{{.Nothing}}", "{{range .Failing}}{{.Nothing}}{{end}}",
		strings.Repeat("long ", 100)} {
		own := fstest.MapFS{"exit.md.tmpl": {Data: []byte(bad)}}
		if _, err := reinforce.LoadTemplates(t.Context(), own); err == nil ||
			!strings.Contains(err.Error(), "exit.md.tmpl") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestOwnTextsOfNowhere: a missing folder, or one with other file names, is an error; the
// built-in templates do not replace it silently.
func TestOwnTextsOfNowhere(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]fs.FS{
		"no folder":   os.DirFS(filepath.Join(t.TempDir(), "none")),
		"other names": fstest.MapFS{"minimal.tmpl": {Data: []byte("Mind!")}},
	} {
		_, err := reinforce.LoadTemplates(t.Context(), dir)
		if err == nil || !strings.Contains(err.Error(), "minimal.md.tmpl") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHearing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"HONEST EXIT: 2+2 is 4":               "2+2 is 4",
		"done.\n\n**Honest exit:** a\nb":      "a\nb",
		"> honest exit: quoted, and said":     "quoted, and said",
		"I will not write HONEST EXIT: never": "",
		"":                                    "",
	} {
		if got := reinforce.Honest(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{"Which one?": true, "Which one? **": true, "It is done.": false,
		"Why? Because.": false, "": false} {
		if reinforce.Asks(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
