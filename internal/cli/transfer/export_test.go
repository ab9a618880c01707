package transfer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// line holds the fields of a line of an export that the tests read.
type line struct {
	Type   string         `json:"type"`
	Tree   string         `json:"tree_id"`
	Text   *string        `json:"text"`
	Counts map[string]int `json:"counts"`
	SHA256 string         `json:"sha256"`
}

func lines(t *testing.T, text string) []line {
	t.Helper()
	var all []line
	for part := range strings.Lines(text) {
		var l line
		if err := json.Unmarshal([]byte(part), &l); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		all = append(all, l)
	}
	return all
}

// The last line contains the number of the others and the hash of the bytes before it.
func TestExport(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	made := p.lived(p.store())
	text := p.must("export", string(made.ID))
	all := lines(t, text)
	first, last := all[0], all[len(all)-1]
	if first.Type != "manifest" || first.Tree != string(made.ID) || last.Type != "end" {
		t.Fatalf("from %+v to %+v", first, last)
	}
	counts := make(map[string]int)
	content := 0
	for _, l := range all[:len(all)-1] {
		counts[l.Type]++
		if l.Text != nil && *l.Text == "text of the context" {
			content++
		}
	}
	for _, kind := range []string{"tree", "context", "task", "event"} {
		if last.Counts[kind] != counts[kind] || counts[kind] == 0 {
			t.Errorf("%d lines of type %s, the last line says %d", counts[kind], kind, last.Counts[kind])
		}
	}
	if counts["task"] != 2 || content != 1 {
		t.Errorf("%d tasks, %d texts", counts["task"], content)
	}
	before := text[:strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1]
	if sum := sha256.Sum256([]byte(before)); hex.EncodeToString(sum[:]) != last.SHA256 {
		t.Error("the hash is not that of the lines before")
	}
}

// A file and standard output receive the same bytes.
func TestExportToFile(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	made := p.lived(p.store())
	want := p.must("export", string(made.ID))
	if out := p.must("export", string(made.ID), "-o", "tree.jsonl"); out != "" {
		t.Errorf("with a file, standard output has %q", out)
	}
	got, err := os.ReadFile(filepath.Join(p.dir, "tree.jsonl"))
	p.ok(err)
	if string(got) != want {
		t.Error("the file differs from standard output")
	}
	if out := p.must("export", string(made.ID), "--output", "-"); out != want {
		t.Error("--output - differs from no --output")
	}
}

func TestExportWithoutContext(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	made := p.lived(p.store())
	if out := p.must("export", string(made.ID), "--without-context"); strings.Contains(out, "text of the context") ||
		!strings.Contains(out, `"a.txt"`) {
		t.Errorf("the export has the text of a file, or lacks its name:\n%s", out)
	}
}

func TestExportState(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	made := p.lived(p.store())
	for _, args := range [][]string{
		{"--tree", string(made.ID)}, {"--scope", "tree", "--tree", string(made.ID)},
		{"--task", made.Root.String()}, {"--tree", string(made.ID), "--task", made.Root.String()},
	} {
		var state struct {
			Variables map[string]struct{ Value json.RawMessage }
		}
		p.ok(json.Unmarshal([]byte(p.must(append([]string{"export", "--state"}, args...)...)), &state))
		var plan struct{ Steps []int }
		p.ok(json.Unmarshal(state.Variables["plan"].Value, &plan))
		if len(state.Variables) != 3 || len(plan.Steps) != 2 {
			t.Errorf("%q: %+v", args, state)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	s := p.store()
	made, other := p.lived(s), p.lived(s)
	id := string(made.ID)
	for _, test := range []struct {
		args   string
		status int
	}{
		{id + " " + id, env.StatusUsage},
		{"no-tree", env.StatusUsage},
		{"tree-00000000", env.StatusNotFound},
		{"tree-00000000 -o out", env.StatusNotFound},
		{id + " --layout tar", env.StatusUsage},
		{"--layout aiwg", env.StatusUsage},
		{"--layout aiwg out --state", env.StatusUsage},
		{"--layout aiwg out -o file", env.StatusUsage},
		{"--layout aiwg out --tree " + id, env.StatusUsage},
		{"--layout aiwg out no-tree", env.StatusUsage},
		{"--layout aiwg out tree-00000000", env.StatusNotFound},
		{id + " --scope global", env.StatusUsage},
		{id + " --state --tree " + id, env.StatusUsage},
		{"--state --scope world", env.StatusUsage},
		{"--state --scope tree", env.StatusUsage},
		{"--state --scope temporary", env.StatusUsage},
		{"--state --scope global --name x", env.StatusUsage},
		{"--state --tree no-tree", env.StatusUsage},
		{"--state --task no-task", env.StatusUsage},
		{"--state --tree " + id + " --session s", env.StatusUsage},
		{"--state --tree tree-00000000", env.StatusNotFound},
		{"--state --task task-9999", env.StatusNotFound},
		{"--state --tree " + id + " --task " + other.Root.String(), env.StatusNotFound},
		{"--state --scope global", env.StatusNotFound},
		{"--state --name none", env.StatusNotFound},
	} {
		out, notes, status := p.run(append([]string{"export"}, strings.Fields(test.args)...)...)
		if status != test.status || out != "" || !strings.HasPrefix(notes, "perdure: error: ") {
			t.Errorf("export %s ended with status %d, want %d: %s%s", test.args, status, test.status, out, notes)
		}
	}
	entries, err := os.ReadDir(p.dir)
	p.ok(err)
	if len(entries) != 1 {
		t.Errorf("refused exports left files behind: %v", entries)
	}
}

// Without a store, export fails and creates none.
func TestExportWithoutStore(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	for _, args := range []string{"tree-1a2b3c4d", "--layout aiwg out", "--state --scope global"} {
		if _, notes, status := p.run(append([]string{"export"}, strings.Fields(args)...)...); status != env.StatusNotFound {
			t.Errorf("export %s ended with status %d: %s", args, status, notes)
		}
	}
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
