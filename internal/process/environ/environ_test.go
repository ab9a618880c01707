package environ

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBase(t *testing.T) {
	t.Parallel()
	env := []string{"PATH=/bin", "HOME=/home/u", "LC_TIME=C", "XDG_DATA_HOME=/d", "https_proxy=http://u:p@h", "SECRET=a",
		"AWS_SECRET_ACCESS_KEY=b", "AWS_CA_BUNDLE=/c", "CARGO_HOME=/cargo", "CARGO_REGISTRY_TOKEN=c", "LD_PRELOAD=/x.so",
		"PERDURE_DIR=/p", "PERDURE_STORE=postgres://u:p@h/d", "MY_ONE=1", "MY_TWO=2=3", "MYTHREE=3", "NOVALUE", `=C:=C:\x`}
	got := Base(env, []string{"MY_*", "SECRET"})
	want := []string{"PATH=/bin", "HOME=/home/u", "LC_TIME=C", "XDG_DATA_HOME=/d", "https_proxy=http://u:p@h", "SECRET=a",
		"AWS_CA_BUNDLE=/c", "CARGO_HOME=/cargo", "PERDURE_DIR=/p", "MY_ONE=1", "MY_TWO=2=3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Base (-want +got):\n%s", diff)
	}
	names := Withheld(env, []string{"MY_*", "SECRET"})
	want = []string{"AWS_SECRET_ACCESS_KEY", "CARGO_REGISTRY_TOKEN", "LD_PRELOAD", "MYTHREE", "NOVALUE", "PERDURE_STORE"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("Withheld (-want +got):\n%s", diff)
	}
	if env[5] != "SECRET=a" || len(env) != 18 {
		t.Errorf("Base changed its argument: %q", env)
	}
}

// A pattern "*" from a configuration that was not checked passes nothing.
func TestBaseOfEverything(t *testing.T) {
	t.Parallel()
	if got := Base([]string{"SECRET=a"}, []string{"*", ""}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

// No name of the allow-list looks like the name of a secret, with the exceptions that are
// locations.
func TestAllowedNames(t *testing.T) {
	t.Parallel()
	locations := []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "PIP_CERT", "AWS_CA_BUNDLE", "DENO_CERT",
		"PWD", "OLDPWD"}
	for _, group := range allowed() {
		for _, name := range having(group, secretWords()) {
			if !slices.Contains(locations, name) {
				t.Errorf("%s is in the allow-list and looks like the name of a secret", name)
			}
		}
	}
}

// On Windows names match in any case.
func TestCase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Path", "path", "ProgramFiles(x86)", "Pathext", "my_Own", "lc_all"} {
		if !newList(true, []string{"MY_own"}).contains(name) {
			t.Errorf("%s is not passed on Windows", name)
		}
		if newList(false, []string{"MY_own"}).contains(name) {
			t.Errorf("%s is passed on Unix", name)
		}
	}
}

// Windows keeps the folder of each drive in a variable whose name begins with "=".
func TestNameOf(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{"A=b=c": "A", "=C:=C:\\x": "=C:", "A": "A", "": "", "=": "="} {
		if got := nameOf(v); got != want {
			t.Errorf("nameOf(%q) = %q, want %q", v, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"A", "AWS_*", "npm_config_registry", "ProgramFiles(x86)"} {
		if err := Check(good); err != nil {
			t.Errorf("Check(%q): %s", good, err)
		}
	}
	for pattern, want := range map[string]string{"": "empty", "*": "all variables", "A*B": "not at its end",
		"A B": "space", "KEY=hunter2": "name only", "A\x00": "control", "A**": "not at its end"} {
		err := Check(pattern)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Check(%q) = %v, want %q", pattern, err, want)
		}
	}
}

func TestLikelyNeeded(t *testing.T) {
	t.Parallel()
	names := []string{"DEBUGINFOD_URLS", "DOCKER_HOST", "GITHUB_TOKEN", "LS_COLORS", "NPM_AUTH", "PGPASSWORD",
		"PYTHONPATH", "SHLVL"}
	want := []string{"GITHUB_TOKEN", "NPM_AUTH", "PGPASSWORD", "DOCKER_HOST", "PYTHONPATH"}
	if diff := cmp.Diff(want, LikelyNeeded(names, 10)); diff != "" {
		t.Errorf("LikelyNeeded (-want +got):\n%s", diff)
	}
	if got := LikelyNeeded(names, 2); len(got) != 2 {
		t.Errorf("LikelyNeeded with a limit of 2 = %q", got)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	got := Secrets([]string{"AWS_SECRET_ACCESS_KEY", "SERVICE_HOST", "DATABASE_URL", "GITHUB_TOKEN", "PYTHONPATH"})
	if want := []string{"AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "GITHUB_TOKEN"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnset: patterns that match no variable are returned.
func TestUnset(t *testing.T) {
	t.Parallel()
	got := Unset([]string{"A_B=1", "EMPTY="}, []string{"A_*", "EMPTY", "A", "C_*", "A_B"})
	if want := []string{"A", "C_*"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNamed: a name counts where it is a word of an output.
func TestNamed(t *testing.T) {
	t.Parallel()
	names := []string{"DB", "DATABASE_URL", "URL", "TOKEN", "KEY_ID", "HOST"}
	got := Named(names, "MY_TOKEN TOKENS: $DATABASE_URL is not set; DB", "HOSTS\nHOST", "xKEY_ID, KEY_ID_2")
	if want := []string{"DATABASE_URL", "HOST"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
