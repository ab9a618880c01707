package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// environmentPrinter writes the variables of the program that runs it, of its guard, and of
// perdure as far as they can be read, to files with this prefix.
const environmentPrinter = `env > "$OUT.own"
G=$PPID
until [ "$(tr '\0' ' ' < /proc/$G/cmdline)" = "perdure-guard " ]; do G=$(cut -d ' ' -f 4 /proc/$G/stat); done
cat /proc/$G/environ > "$OUT.guard" 2> "$OUT.guard-error"
P=$(cut -d ' ' -f 4 /proc/$G/stat)
rm -f "$OUT.perdure" "$OUT.perdure-error"
for of in environ maps; do
  cat /proc/$P/$of >> "$OUT.perdure" 2>> "$OUT.perdure-error"
done
[ -e "$OUT.guard-error" ] && [ -e "$OUT.perdure-error" ] && echo done > "$OUT.end"
`

// plantedSecrets are secrets under usual names.
func plantedSecrets() (env []string) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN",
		"GH_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN", "CARGO_REGISTRY_TOKEN", "DATABASE_URL", "PGPASSWORD", "REDIS_URL",
		"STRIPE_SECRET_KEY", "SLACK_BOT_TOKEN", "AZURE_CLIENT_SECRET", "HF_TOKEN", "VAULT_TOKEN", "SSH_AUTH_SOCK",
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "SECRET_KEY_BASE", "KUBECONFIG"} {
		env = append(env, name+"=planted-"+name)
	}
	return env
}

// TestSecurityEnvironment: secrets of the user's environment reach neither the agent nor the
// check, also not through the guard or perdure. Names in loop.env do.
func TestSecurityEnvironment(t *testing.T) {
	t.Parallel()
	unprivileged := "" // with the capabilities of root every process can be read
	if os.Getuid() == 0 {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("root without setpriv cannot drop its capabilities")
		}
		unprivileged = "setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all "
	}
	w := newLoopPlace(t)
	w.write("check.sh", `OUT="$CHECK_OUT"`+"\n"+environmentPrinter+loopCheck)
	env := append(plantedSecrets(), "OUT="+w.beside("agent-env"), "CHECK_OUT="+w.beside("check-env"), "MY_OWN=mine",
		"PERDURE_LOOP_ENV=")
	w.agent(environmentPrinter + "echo pass > tests/b")
	out, said, status := w.try(unprivileged+"perdure loop run x --until 'sh check.sh' --sealed off --no-wait "+
		"--env OUT,CHECK_OUT,MY_* --agent 'exec:sh "+w.agentFile()+"'", env...)
	wantSaid(t, out+said, status, 0, "not passed to agents and checks, among them ", "GITHUB_TOKEN")
	for _, of := range []string{"agent-env", "check-env"} {
		for _, part := range []string{".own", ".guard", ".perdure"} {
			raw, err := os.ReadFile(w.beside(of) + part)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(raw); strings.Contains(got, "planted-") {
				t.Errorf("%s%s holds a secret:\n%s", of, part, got)
			}
			if mine := strings.Contains(string(raw), "MY_OWN=mine"); mine != (part == ".own") {
				t.Errorf("%s%s holds MY_OWN: %v", of, part, mine)
			}
		}
		raw, err := os.ReadFile(w.beside(of) + ".perdure-error")
		if err != nil || strings.Count(string(raw), "/proc/") != 2 {
			t.Errorf("%s: files of perdure can be read: %s %v", of, raw, err)
		}
		if _, err := os.Stat(w.beside(of) + ".end"); err != nil {
			t.Errorf("%s did not come to its end: %v", of, err)
		}
	}
	w.namesOnly("DATABASE_URL")
}

// namesOnly checks that the report and the document of the loop name a variable that was not
// passed, and that nothing on disk contains the value of one.
func (w *workplace) namesOnly(name string) {
	w.t.Helper()
	var doc struct {
		Withheld []string `json:"withheld_variables"`
	}
	if err := json.Unmarshal([]byte(w.sh("perdure loop status --json")), &doc); err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(strings.Join(doc.Withheld, " "), name) {
		w.t.Errorf("withheld variables: %q", doc.Withheld)
	}
	wantSaid(w.t, w.sh("perdure loop report"), 0, 0, "Variables not passed", strings.ReplaceAll(name, "_", `\_`))
	if found, errs, _ := w.try("grep -rl planted- .perdure"); found != "" || errs != "" {
		w.t.Errorf("values of the environment are in %s%s", found, errs)
	}
}

// TestSecurityEnvironmentNames: loop.env takes names, from a trusted folder only, and a
// resumed loop takes no further ones from a file that the agent can have written.
func TestSecurityEnvironmentNames(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	said, status := w.loopWith("exit 1", "--env GITHUB_TOKEN=hunter2")
	wantSaid(t, said, status, 2, "name only")
	if strings.Contains(said, "hunter2") {
		t.Errorf("the value is printed:\n%s", said)
	}
	_, said, status = w.try("perdure config", "PERDURE_LOOP_ENV=A,GITHUB_TOKEN=hunter2")
	wantSaid(t, said, status, 2, "name only")
	if strings.Contains(said, "hunter2") {
		t.Errorf("the value is printed:\n%s", said)
	}

	w.write(".perdure/config.yaml", "loop:\n  env: OUT,GITHUB_TOKEN\n")
	out := w.beside("env")
	env := []string{"OUT=" + out, "GITHUB_TOKEN=planted", "PERDURE_LOOP_ENV=", "PERDURE_TRUST="}
	said, status = w.loopWith(`env > "$OUT"`, "--max-iterations 1", env...)
	wantSaid(t, said, status, 2, "loop.env", "perdure trust")
	if _, err := os.Stat(out); err == nil {
		t.Error("the agent was started")
	}

	w.write(".perdure/config.yaml", "loop:\n  env: OUT\n")
	said, _ = w.loopWith(`env > "$OUT"; echo x >> work; printf 'loop: {env: "OUT,GITHUB_TOKEN"}' > .perdure/config.yaml`,
		"--max-iterations 1 --keep-last", env[:3]...)
	if raw, err := os.ReadFile(out); err != nil || strings.Contains(string(raw), "planted") {
		t.Fatalf("%s %v\n%s", raw, err, said)
	}
	_, said, _ = w.try("perdure loop resume --max-iterations 2 --no-wait", env[:3]...)
	if !strings.Contains(said, "not applied, because they weaken the supervision: env ") {
		t.Errorf("loop resume: %s", said)
	}
	if raw, err := os.ReadFile(out); err != nil || strings.Contains(string(raw), "planted") {
		t.Errorf("%s %v", raw, err)
	}
}
