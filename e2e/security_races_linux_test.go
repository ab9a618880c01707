package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/testing/testdb"
)

// exchanging exchanges two paths without a pause until the returned function is called.
func exchanging(t *testing.T, a, b string) (stop func()) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Skipf("paths cannot be exchanged here: %v", err)
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// TestSecuritySettingsSwapped: while commands run, another process exchanges the trusted settings
// for others, or .perdure for a folder with others. The program that only the others name never
// starts. (A link instead of the folder is refused before its settings are read.)
func TestSecuritySettingsSwapped(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]bool{"settings": false, "folder": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			home, mark, used := t.TempDir(), filepath.Join(t.TempDir(), "hostile"), filepath.Join(t.TempDir(), "used")
			p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home}
			settings := func(file string) string {
				p.write(filepath.Base(file)+".sh", "touch '"+file+"'; echo answer\n")
				return "model: exec:sh " + filepath.Base(file) + ".sh\ncall_retries: 0\nmax_attempts: 1\n"
			}
			p.write(".git/HEAD", "ref: refs/heads/main\n")
			p.write(".perdure/config.yaml", settings(used))
			p.write("theirs/config.yaml", settings(mark))
			p.good("trust")
			p.good("run", "x")
			if err := os.Remove(used); err != nil {
				t.Fatal(err)
			}
			a, b := filepath.Join(p.dir, ".perdure", "config.yaml"), filepath.Join(p.dir, "theirs", "config.yaml")
			if folder {
				a, b = filepath.Dir(a), filepath.Dir(b)
			}
			stop := exchanging(t, a, b)
			started := 0 // a run whose store is exchanged too can start its program, and then ends with status 7
			for i := 0; i < number(t, "PERDURE_SWAPS", 30, 500) || started == 0; i++ {
				p.run("run", "x")
				if os.Remove(used) == nil {
					started++
				}
				p.run("status")
			}
			stop()
			t.Logf("%d runs started the trusted program", started)
			if _, err := os.Lstat(mark); err == nil {
				t.Error("the program of settings that are not trusted was started")
			}
		})
	}
}

// TestSecurityClock: settings that changed after the user trusted them are not trusted, whatever
// the clock said when the file or the record was written.
func TestSecurityClock(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	home, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home}
	p.write(".git/HEAD", "ref: refs/heads/main\n")
	p.write(".perdure/config.yaml", "model: exec:echo answer\n")
	p.good("trust")
	p.good("run", "x")
	records, err := filepath.Glob(filepath.Join(home, "perdure", "trust", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, %v", records, err)
	}
	text, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`"trusted_at": "[^"]*"`)
	p.write(".perdure/config.yaml", "model: exec:touch '"+mark+"'\n")
	for _, clock := range []time.Time{time.Unix(0, 0), time.Now(), time.Now().AddDate(100, 0, 0)} {
		changed := at.ReplaceAll(text, []byte(`"trusted_at": "`+clock.UTC().Format(time.RFC3339)+`"`))
		err := errors.Join(os.WriteFile(records[0], changed, 0o600),
			os.Chtimes(filepath.Join(p.dir, ".perdure", "config.yaml"), clock, clock), os.Chtimes(records[0], clock, clock))
		if err != nil {
			t.Fatal(err)
		}
		if status, _, errs := p.run("run", "x"); status != 2 || !strings.Contains(errs, "not trusted") {
			t.Errorf("%v: status %d\n%s", clock, status, errs)
		}
		if _, err := os.Lstat(mark); err == nil {
			t.Fatalf("%v: the program was started", clock)
		}
	}
}

// preloaded is a library with which grep, that the check calls, always succeeds.
const preloaded = `#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
	char name[256] = "";
	ssize_t n = readlink("/proc/self/exe", name, sizeof name - 1);
	if (n > 4 && !strcmp(name + n - 4, "grep")) _exit(0);
}
`

// TestSecurityPreload: a library that the agent names in the files that shells read, or that is
// in the environment of perdure, has no effect on the clean-copy check.
func TestSecurityPreload(t *testing.T) {
	t.Parallel()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		testdb.Missing(t, "gcc", err.Error()+"; install gcc and libc6-dev")
	}
	build := t.TempDir()
	source, library := filepath.Join(build, "p.c"), filepath.Join(build, "p.so")
	if err := os.WriteFile(source, []byte(preloaded), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), gcc, "-shared", "-fPIC", "-o", library, source).
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(build, 0o755); err != nil { //nolint:gosec // all may load it
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ agent, env, flags string }{
		"environment of perdure":   {"true", "LD_PRELOAD=" + library, ""},
		"files of the home folder": {homeFiles, "LIBRARY=" + library, "--env LIBRARY"},
		"named by the user":        {"true", "LD_PRELOAD=" + library, "--env LD_PRELOAD"}, // shows that it works
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newToolPlace(t)
			w.agent("echo more >> log\n" + c.agent)
			script := "perdure loop run 'Make the tests pass' --until runner --agent 'exec:sh " + w.agentFile() +
				"' --no-wait --max-iterations 1 --even-if-green " + c.flags
			said, errs, status := w.try(script, c.env)
			works := name == "named by the user"
			if said += errs; works != (status == 0) || works != strings.Contains(said, "completed:") {
				t.Errorf("status %d:\n%s", status, said)
			}
		})
	}
}

// homeFiles writes the library's name to the files that shells read when they start.
const homeFiles = `for f in .profile .bashrc .bash_profile .shrc .pam_environment; do
	echo "export LD_PRELOAD=$LIBRARY" >> ~/$f
done
echo "LD_PRELOAD=$LIBRARY" > ~/.pam_environment
mkdir -p ~/.config/environment.d && echo "LD_PRELOAD=$LIBRARY" > ~/.config/environment.d/a.conf`
