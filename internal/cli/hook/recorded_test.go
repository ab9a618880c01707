package hook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recorded is a file of exchanges between a real client and the hook, which `make test/agents`
// records with PERDURE_TEST_RECORD.
type recorded struct {
	Client    string
	Mode      string
	Exchanges []struct {
		Verdict, Command string
		Sent             json.RawMessage
		Env              []string
		Answered         string
		Status           int
		Made, Asked      bool
		Heard            string
	}
}

// unhooked are the cells of the matrix in which a client runs no hook, with the reason.
func unhooked() map[string]string {
	return map[string]string{"gemini-acp": "Gemini CLI runs no BeforeTool hook over the Agent Client Protocol; it asks " +
		"its client before writes and commands, in a loop the loop: see TestRealDenial of agent/acp"}
}

// TestRecordedExchanges: for each client, mode and verdict, the hook answers what the client
// sent as it did when the exchange was recorded, and the client then did what the verdict says.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude-code", "codex", "gemini", "opencode"} {
		for _, mode := range []string{"headless", "interactive", "acp"} {
			cell := agent + "-" + mode
			name := filepath.Join("testdata", "exchanges", cell+".json")
			text, err := os.ReadFile(name)
			if reason := unhooked()[cell]; reason != "" {
				if err == nil {
					t.Errorf("%s is recorded, although %s", cell, reason)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s is not recorded: %v", cell, err)
				continue
			}
			var r recorded
			if err := json.Unmarshal(text, &r); err != nil || r.Mode != mode || !regexp.MustCompile(`\d+\.\d+\.\d+`).
				MatchString(r.Client) || len(r.Exchanges) != 4 {
				t.Errorf("%s: %v, client %q, mode %q, %d exchanges", name, err, r.Client, r.Mode, len(r.Exchanges))
			}
			for i, verdict := range []string{"allow", "warn", "block", "gate"}[:len(r.Exchanges)] {
				x := &r.Exchanges[i]
				if x.Verdict != verdict || x.Made != (verdict == "allow" || verdict == "warn") || x.Status != 0 {
					t.Errorf("%s %s: %+v", cell, verdict, x)
				}
				if (x.Heard == "") != (verdict == "allow" || x.Asked) || x.Asked && (verdict != "gate" ||
					cell != "claude-code-interactive") {
					t.Errorf("%s %s: the model heard %q, asked %v", cell, verdict, x.Heard, x.Asked)
				}
				if got := replay(t, agent, string(x.Sent), x.Env); got != anonymous(x.Answered) {
					t.Errorf("%s %s: the answer is %s, recorded %s", cell, verdict, got, x.Answered)
				}
			}
		}
	}
}

// replay returns the answer of the hook to what a client sent.
func replay(t *testing.T, agent, sent string, environ []string) string {
	t.Helper()
	dir := project(t, "loop: {risks: {delete_files: gate}}")
	given := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		given[name] = value
	}
	out, err := call{stdin: strings.NewReader(strings.ReplaceAll(sent, "/DIR", dir)), args: []string{agent}, env: given}.
		run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return anonymous(strings.ReplaceAll(out, dir, "/DIR"))
}

// anonymous replaces the ID of a call, which depends on the folder.
func anonymous(answer string) string {
	return regexp.MustCompile("hook allow [0-9a-f]{12}").ReplaceAllString(answer, "hook allow ID")
}

// TestRecordedVersions: the exchanges were recorded with the versions that `make test/agents`
// installs, which the table in docs/loops.md names.
func TestRecordedVersions(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "loops.md"))
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string][]string{
		"@anthropic-ai/claude-code":             {"claude-code-headless", "claude-code-interactive"},
		"@agentclientprotocol/claude-agent-acp": {"claude-code-acp"},
		"@openai/codex":                         {"codex-headless", "codex-interactive"},
		"@agentclientprotocol/codex-acp":        {"codex-acp"},
		"@google/gemini-cli":                    {"gemini-headless", "gemini-interactive"},
		"opencode-ai":                           {"opencode-headless", "opencode-interactive", "opencode-acp"},
	}
	for client, files := range cells {
		found := regexp.MustCompile(`[ \t]` + regexp.QuoteMeta(client) + `@([0-9.]+)`).FindSubmatch(makefile)
		if found == nil {
			t.Errorf("the Makefile installs no %s", client)
			continue
		}
		version := string(found[1])
		if !strings.Contains(string(docs), version) {
			t.Errorf("docs/loops.md does not name %s %s", client, version)
		}
		for _, cell := range files {
			text, err := os.ReadFile(filepath.Join("testdata", "exchanges", cell+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var r recorded
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(" "+r.Client+" ", " "+version+" ") {
				t.Errorf("%s was recorded with %q, the Makefile installs %s: `make test/agents "+
					"PERDURE_TEST_RECORD=FOLDER` records again", cell, r.Client, version)
			}
		}
	}
}
