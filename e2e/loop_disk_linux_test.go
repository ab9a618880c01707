package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// loopDisk begins a script: a workspace on a small disk, with an agent whose commands, %s,
// depend on the number of the turn. "left N" fills the disk up to N KiB.
const loopDisk = `
mount -o remount,size=8m none "$PWD" || exit 77
export XDG_STATE_HOME="$PWD/state" PERDURE_DIR="$PWD/p/.perdure"; mkdir p; cd p
mkdir tests; echo pass > tests/a; echo fail > tests/b
cat > check.sh <<'CHECK'
cat noise
` + loopCheck + `CHECK
: > noise; head -c 1500000 /dev/urandom > keep
cat > agent.sh <<'AGENT'
cat > /dev/null; echo turn >> "$OUT/turns"
left() {
	n=$(($(df -k . | tail -n 1 | awk '{print $4}') - $1))
	dd if=/dev/zero bs=1024 count=$n of=.perdure/filler 2> /dev/null || true
}
case $(wc -l < "$OUT/turns") in
%s
esac
AGENT
t run loop run "Make the tests pass" --until "sh check.sh" --agent "exec:sh agent.sh" --no-wait
`

// TestLoopOnFullDisk: a full disk pauses a loop in any of its steps with a hint, and the
// loop can be resumed after space was freed. No recorded data is lost, and the files are
// complete.
func TestLoopOnFullDisk(t *testing.T) {
	t.Parallel()
	const full = "(disk is full|no space left on device)"
	for name, c := range map[string]struct {
		agent, script string
		check         func(t *testing.T, dir string)
	}{
		"in the store": {agent: "1) rm tests/a; left 0;; *) echo pass > tests/b;;", check: func(t *testing.T, dir string) {
			said(t, dir, "run", 7, full)
			said(t, dir, "again", 7, full)
		}},
		"in the snapshot": {agent: "1) left 2000; head -c 1500000 /dev/urandom > big;; *) echo pass > tests/b;;",
			check: func(t *testing.T, dir string) {
				stopped(t, dir, "run", "paused: read file \"big\"", full, "free disk space")
				stopped(t, dir, "again", full)
			}},
		"in the check": {agent: "1) left 2000; head -c 700000 /dev/zero | tr '\\0' '\\n' > noise;; *) echo pass > tests/b;;",
			check: func(t *testing.T, dir string) {
				stopped(t, dir, "run", "paused: ", full)
				stopped(t, dir, "again", full)
			}},
		"in the way back": {agent: "1) rm keep tests/a; left 1800;; *) test -e keep && echo pass > tests/b;;", script: `
t answer loop answer reject
`, check: func(t *testing.T, dir string) {
			said(t, dir, "answer", 0, "")
			stopped(t, dir, "again", "paused: ", full, "free disk space")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := own(t, 0, strings.Replace(loopDisk, "%s", c.agent, 1)+c.script+`
t status loop status
t again loop resume --no-wait
rm -f .perdure/filler big; : > noise
t resume loop resume --no-wait
t whole doctor
cat tests/a > "$OUT/a"
`)
			c.check(t, dir)
			said(t, dir, "status", 0, "make-the-tests-pass")
			said(t, dir, "resume", 0, "completed: the check passes")
			if whole, err := os.ReadFile(filepath.Join(dir, "whole.out")); err != nil ||
				!strings.Contains(string(whole), "sound, sqlite") {
				t.Errorf("doctor: %v\n%s", err, whole)
			}
			if a, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(a) != "pass\n" {
				t.Errorf("tests/a holds %q, %v", a, err)
			}
		})
	}
}

// stopped checks that a command of a script left its loop paused, with output that
// matches.
func stopped(t *testing.T, dir, name string, patterns ...string) {
	t.Helper()
	var text [3]string
	for i, kind := range []string{"status", "out", "err"} {
		raw, err := os.ReadFile(filepath.Join(dir, name+"."+kind))
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(raw)
	}
	if text[0] != "3\n" {
		t.Errorf("%s: status %s", name, text[0])
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(text[1]) {
			t.Errorf("%s does not say %q:\n%s%s", name, pattern, text[1], text[2])
		}
	}
}
