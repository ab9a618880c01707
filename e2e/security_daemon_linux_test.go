package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSecurityDaemonOfAgents: a program that a loop has started cannot have the daemon start
// programs, which would not end with it, nor send the daemon's key to another endpoint. What
// the daemon's settings name, and runs that need neither, it gets.
func TestSecurityDaemonOfAgents(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(endpoint.Close)
	w := newLoopPlace(t)
	w.env = append(w.env, "OPENAI_API_KEY=sk-daemon", "PERDURE_MODEL=exec:cat "+w.beside("named"))
	for name, text := range map[string]string{"named": "what the settings name",
		"refuses": "replies:\n- {status: 400, message: refuses, repeat: -1}\n"} {
		if err := os.WriteFile(w.beside(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.serve()
	canary, said := w.beside("canary"), w.beside("said")
	out, errs, status := w.try("exec perdure run Later --model mock:" + w.beside("refuses"))
	wantSaid(t, out+errs, status, 1, "refuses")
	tree := regexp.MustCompile(`tree-[0-9a-f]{8}`).FindString(out + errs)
	w.agent("exec > " + said + ` 2>&1
perdure run Escape --model 'exec:touch ` + canary + `'; echo program=$?
perdure run Escape --model builtin:extract --context check.sh --sub-model 'exec:touch ` + canary + `'; echo sub=$?
perdure run Escape --model openai:m --base-url ` + endpoint.URL + `; echo endpoint=$?
perdure resume ` + tree + ` --model 'exec:touch ` + canary + `'; echo resumed=$?
perdure loop run Escape --until true --agent 'exec:touch ` + canary + `'; echo loop=$?
perdure run 'What is checked?' --model builtin:extract --context check.sh; echo plain=$?
perdure run Use --model 'exec:cat ` + w.beside("named") + `'; echo named=$?
`)
	w.try("exec perdure loop run Try --until 'test -e done' --max-iterations 1 --unattended --agent 'exec:sh " +
		w.agentFile() + "'")
	raw, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"program=5", "sub=5", "resumed=5", "endpoint=5", "loop=5", "plain=0", "named=0",
		"the daemon executes no model exec:touch", "the daemon executes no requests to base URL",
		"the daemon executes no loops", "what the settings name"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is missing in:\n%s", want, raw)
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the daemon started a program for the agent")
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("the endpoint got %d requests", n)
	}
}
