package cleancheck_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/verify/cleancheck"
)

// TestBaselineShowsNothing: a check that fails in a copy, and of which nothing passes for the
// baseline, is not confirmed: it is not repeated with the network and files outside.
func TestBaselineShowsNothing(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]string{
		"exit status": "exit $bad",
		"tests":       "[ $bad = 0 ] && echo 'ok 1 - a' || echo 'not ok 1 - a'; echo 1..1; exit $bad",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, home := user(t, "false", map[string]string{})
			if !b.sandboxed() {
				t.Skip("no sandbox here")
			}
			b.check = "sh own.sh"
			b.put(map[string]string{"own.sh": "echo x > '" + home + "/made' && grep -q good work; bad=$?; " + result})
			b.begin()
			b.put(map[string]string{"work": "good"})
			v := b.seal()
			b.want(v, cleancheck.Impossible, "", "it passes there only with access to the network and to files outside",
				"does not show whether it needs more")
			if !v.Unconfirmed || v.Isolation.Why != "" || strings.Contains(v.Why, "own result") {
				t.Errorf("%+v %+v", v, v.Isolation)
			}
			// What passes in the sandbox is confirmed.
			b.put(map[string]string{"own.sh": "grep -q good work; bad=$?; " + result})
			b.want(b.seal(), cleancheck.Passed, "")
		})
	}
}

// TestDifferences: a check that fails only in a copy says what is different there, and what it
// printed.
func TestDifferences(t *testing.T) {
	t.Parallel()
	b, home := user(t, `echo "# it needs a mark"; [ -e ~/mark ]`, map[string]string{".gitignore": "left\n"})
	b.ok(os.WriteFile(filepath.Join(home, "mark"), nil, 0o600))
	b.env, b.pass = append(b.env, "GOCACHE="+home), nil
	b.put(map[string]string{"work": "good"})
	b.begin()
	b.put(map[string]string{"work": "bad", "left": "x"})
	v := b.seal()
	b.want(v, cleancheck.Failed, "test_failure")
	if v.Differs == nil {
		t.Fatalf("%+v", v)
	}
	text := strings.Join(append(v.Differs.Lines(), v.Differs.Output), "\n")
	for _, has := range []string{"home folder", "GOCACHE", "left", "it needs a mark"} {
		if !strings.Contains(text, has) {
			t.Errorf("no %q in:\n%s", has, text)
		}
	}
	if b.sandboxed() && !strings.Contains(text, "With both, the check fails, too") {
		t.Error(text)
	}
	if confined := strings.Contains(text, "no network"); confined != b.sandboxed() || v.Differs.Opens ||
		strings.Contains(text, home) {
		t.Errorf("%+v\n%s", v.Differs, text)
	}
}

// goSettings returns the file with the settings of Go in a home folder.
func goSettings(home string) string {
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "go", "env")
	}
	return filepath.Join(home, ".config", "go", "env")
}

// TestGoSettings: a check that fails in a copy after the settings of Go were changed names
// their file, whether the baseline shows something or not. They do not count where it passes.
func TestGoSettings(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]string{"proven": "good", "nothing": "bad"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, home := user(t, `[ -s "$SETTINGS" ]`, map[string]string{})
			file := goSettings(home)
			b.check = `SETTINGS="$HOME` + strings.TrimPrefix(file, home) + `" sh check.sh`
			b.put(map[string]string{"work": work})
			b.begin()
			b.put(map[string]string{"work": "bad"})
			b.ok(errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("GOFLAGS=-x\n"), 0o600)))
			v := b.seal()
			b.want(v, cleancheck.Failed, "validation_bypass", "settings of Go", file)
			if !v.Machine {
				t.Errorf("an approval does not record them: %+v", v)
			}
			b.put(map[string]string{"work": "good"})
			b.want(b.seal(), cleancheck.Passed, "", file, "clean copies do not use them")
		})
	}
}

// TestCompareMachine: where no copy is possible, replaced programs and excluded files are
// found nevertheless.
func TestCompareMachine(t *testing.T) {
	t.Parallel()
	b, home := user(t, "false", map[string]string{})
	tool := filepath.Join(home, "bin", "tool")
	b.ok(errors.Join(os.MkdirAll(filepath.Dir(tool), 0o700),
		os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o700))) //nolint:gosec // a program
	b.check = "tool && sh check.sh"
	b.begin()
	compare := func() *cleancheck.Verdict {
		v, err := cleancheck.CompareMachine(t.Context(), cleancheck.Config{Files: b.files, Env: b.environ(),
			Machine: b.machine}, &cleancheck.Candidate{}, "no copy here")
		b.ok(err)
		return v
	}
	b.want(compare(), cleancheck.Impossible, "", "no copy here")
	settings := goSettings(home)
	b.ok(errors.Join(os.MkdirAll(filepath.Dir(settings), 0o700), os.WriteFile(settings, nil, 0o600)))
	b.want(compare(), cleancheck.Failed, "validation_bypass", settings)
	b.ok(os.WriteFile(tool, []byte("#!/bin/sh\n# another"), 0o700)) //nolint:gosec // a program
	b.want(compare(), cleancheck.Failed, "validation_bypass", "programs of the check were replaced", "tool")
}
