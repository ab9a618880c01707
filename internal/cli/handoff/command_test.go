package handoff_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/handoff"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	os.Exit(m.Run())
}

// project is a folder in which the commands are run.
type project struct {
	*testing.T
	dir   string
	stdin string
	env   []string
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{T: t, dir: t.TempDir()}
	testdb.Open(t, perdure.Config{Dir: filepath.Join(p.dir, ".perdure")})
	return p
}

func (p *project) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *project) put(name, text string) {
	p.Helper()
	p.ok(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
}

func (p *project) run(args ...string) (stdout, stderr string, status int) {
	p.Helper()
	var out, notes bytes.Buffer
	e := env.New(env.Process{Stdin: strings.NewReader(p.stdin), Stdout: &out, Stderr: &notes, Cwd: p.dir, Environ: p.env})
	cmd := handoff.Command(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(p.Context())
	if err != nil {
		e.PrintError(err)
	}
	return out.String(), notes.String(), env.StatusOf(err)
}

// must executes a command that ends with a status.
func (p *project) must(status int, args ...string) string {
	p.Helper()
	out, notes, got := p.run(args...)
	if got != status {
		p.Fatalf("handoff %q ended with status %d, want %d:\n%s%s", args, got, status, out, notes)
	}
	return out
}

// checkpoint holds the fields of a checkpoint that the tests read.
type checkpoint struct {
	Phase       string
	NextAction  string `json:"nextAction"`
	CurrentStep *struct {
		Description, PartialWork string
	} `json:"currentStep"`
	CompletedSteps []struct {
		Step          string
		FilesCreated  []string `json:"filesCreated"`
		FilesModified []string `json:"filesModified"`
	} `json:"completedSteps"`
	PendingSteps []string                     `json:"pendingSteps"`
	Blockers     []string                     `json:"blockers"`
	NotAllowed   []string                     `json:"notAllowed"`
	Decisions    []struct{ Decision string }  `json:"decisions"`
	Failed       []struct{ What, Why string } `json:"failedApproaches"`
	Metadata     struct{ CreatedBy string }   `json:"metadata"`
}

func (p *project) show(args ...string) checkpoint {
	p.Helper()
	var c checkpoint
	p.ok(json.Unmarshal([]byte(p.must(env.StatusDone, append([]string{"show", "--json"}, args...)...)), &c))
	return c
}

func (p *project) entries() (kinds []string) {
	p.Helper()
	for line := range strings.Lines(p.must(env.StatusDone, "log", "--json")) {
		var e struct{ Kind string }
		p.ok(json.Unmarshal([]byte(line), &e))
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Each command records its operation, which show and log print.
func TestRecord(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("a.go", "package a\n")
	p.put("b.go", "package b\n")
	for _, args := range [][]string{
		{"start", "Dark", "mode", "--pending", "one", "--pending", "two", "--pending", "three", "--agent", "me"},
		{"phase", "implementation"},
		{"current", "one", "--partial", "half"},
		{"step", "did one", "--created", "a.go", "--modified", "b.go", "--pending", "1"},
		{"decide", "use variables", "--because", "it is simple"},
		{"tried", "the other way", "--outcome", "slow", "--because", "too many calls"},
		{"forbid", "touch c.go"},
		{"block", "no key"},
		{"block", "no time"},
		{"unblock", "1"},
		{"pending", "--remove", "three"},
		{"pending", "four", "five"},
		{"next", "write two in b.go"},
		{"context", "--used", "50%"},
		{"save", "--partial", "nearly"},
	} {
		p.must(env.StatusDone, args...)
	}
	c := p.show()
	if c.Phase != "implementation" || c.NextAction != "write two in b.go" || c.Metadata.CreatedBy != "me" {
		t.Errorf("%+v", c)
	}
	if len(c.CompletedSteps) != 1 || c.CompletedSteps[0].Step != "did one" ||
		!slices.Equal(c.CompletedSteps[0].FilesCreated, []string{"a.go"}) ||
		!slices.Equal(c.CompletedSteps[0].FilesModified, []string{"b.go"}) {
		t.Errorf("completed: %+v", c.CompletedSteps)
	}
	for name, lists := range map[string][2][]string{
		"pending": {c.PendingSteps, {"two", "four", "five"}}, "blockers": {c.Blockers, {"no time"}},
		"not allowed": {c.NotAllowed, {"touch c.go"}},
	} {
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%s: %q, want %q", name, lists[0], lists[1])
		}
	}
	if len(c.Decisions) != 1 || len(c.Failed) != 1 || c.Failed[0].Why != "too many calls" {
		t.Errorf("decisions %+v, failed %+v", c.Decisions, c.Failed)
	}
	want := []string{"start", "phase", "current", "step", "decide", "tried", "forbid", "block", "block", "unblock",
		"pending", "pending", "next", "context", "save"}
	if got := p.entries(); !slices.Equal(got, want) {
		t.Errorf("log: %q, want %q", got, want)
	}
	p.must(env.StatusDone, "done")
	p.must(env.StatusNotFound, "show")
	if got := p.entries(); !slices.Equal(got, append(want, "done")) {
		t.Errorf("log behind done: %q", got)
	}
}

// A batch is recorded completely or not at all.
func TestBatch(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.must(env.StatusDone, "start", "Work")
	p.stdin = `{"op": "step", "text": "did it"}` + "\n\n" + `{"op": "decide", "text": "so", "because": "why"}` + "\n"
	p.must(env.StatusDone, "--batch", "-")
	p.put("ops", `{"op": "block", "text": "wall"}`)
	var r struct {
		Version    int64
		Done       bool
		Bytes      int         `json:"checkpoint_bytes"`
		Checkpoint *checkpoint `json:"checkpoint"`
	}
	p.ok(json.Unmarshal([]byte(p.must(env.StatusDone, "--batch", "ops", "--json")), &r))
	if r.Done || r.Version != 4 || r.Bytes == 0 || r.Bytes > 2048 || r.Checkpoint == nil ||
		!slices.Equal(r.Checkpoint.Blockers, []string{"wall"}) {
		t.Errorf("%+v", r)
	}
	before := p.entries()
	for name, test := range map[string]struct {
		text   string
		status int
	}{
		"empty":               {"\n\n", env.StatusUsage},
		"no JSON":             {"step", env.StatusUsage},
		"no object":           {"[]", env.StatusUsage},
		"unknown":             {`{"op": "fly"}`, env.StatusUsage},
		"unknown field":       {`{"op": "step", "text": "x", "texts": "y"}`, env.StatusUsage},
		"own field":           {`{"op": "step", "text": "x", "ran_by": "engine"}`, env.StatusUsage},
		"second is bad":       {`{"op": "step", "text": "x"}` + "\n" + `{"op": "step"}`, env.StatusUsage},
		"second does not fit": {`{"op": "step", "text": "x"}` + "\n" + `{"op": "unblock", "text": "9"}`, env.StatusNotFound},
		"many":                {strings.Repeat(`{"op": "step", "text": "x"}`+"\n", ledger.MaxBatch), env.StatusUsage},
	} {
		p.stdin = test.text
		if out, notes, status := p.run("--batch", "-"); status != test.status || out != "" {
			t.Errorf("%s: status %d, want %d: %s%s", name, status, test.status, out, notes)
		}
	}
	p.must(env.StatusNotFound, "--batch", "nothing")
	p.must(env.StatusUsage, "--batch", ".")
	if after := p.entries(); !slices.Equal(before, after) {
		t.Errorf("refused batches left %q", after[len(before):])
	}
}

// Bad input is refused with its code and changes nothing.
func TestRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.must(env.StatusDone, "start", "Work", "--pending", "one")
	file := filepath.Join(p.dir, "builder-state.json")
	want, err := os.ReadFile(file)
	p.ok(err)
	for _, test := range []struct {
		args   string
		status int
	}{
		{"fly", env.StatusUsage},
		{"step", env.StatusUsage},
		{"decide", env.StatusUsage},
		{"phase", env.StatusUsage},
		{"phase flying", env.StatusUsage},
		{"phase planning again", env.StatusUsage},
		{"pending", env.StatusUsage},
		{"pending --remove 9", env.StatusNotFound},
		{"pending --remove nothing", env.StatusNotFound},
		{"unblock 1", env.StatusNotFound},
		{"forbid --remove 1", env.StatusNotFound},
		{"context", env.StatusUsage},
		{"context --used 101%", env.StatusUsage},
		{"context --used -1%", env.StatusUsage},
		{"context --used 78", env.StatusUsage},
		{"context --used NaN", env.StatusUsage},
		{"context --used much", env.StatusUsage},
		{"context --used 50% --source guessed", env.StatusUsage},
		{"save --reason because", env.StatusUsage},
		{"rate-limit --until soon", env.StatusUsage},
		{"fail", env.StatusUsage},
		{"verify", env.StatusNotFound},
		{"verify unit-test", env.StatusUsage},
		{"verify unit-test perhaps", env.StatusUsage},
		{"resume --ttl 0s", env.StatusUsage},
		{"resume --ttl 10000h", env.StatusUsage},
		{"resume --template nothing", env.StatusNotFound},
		{"reassign", env.StatusUsage},
		{"reassign --to tester --template nothing", env.StatusNotFound},
		{"reassign --to tester --template bad.tmpl", env.StatusUsage},
		{"resume --no-claim --template bad.tmpl", env.StatusUsage},
		{"show --task nowhere", env.StatusUsage},
		{"show --task adhoc:none", env.StatusNotFound},
		{"show --file none.json", env.StatusNotFound},
		{"step x --file bad.json", env.StatusUsage},
		{"step x --token none", env.StatusConflict},
		{"start Other", env.StatusConflict},
	} {
		p.put("bad.tmpl", "{{.Nothing")
		p.put("bad.json", "{")
		out, notes, status := p.run(strings.Fields(test.args)...)
		if status != test.status || out != "" || !strings.Contains(notes, "perdure: error: ") {
			t.Errorf("handoff %s ended with status %d, want %d: %s%s", test.args, status, test.status, out, notes)
		}
	}
	if _, _, status := p.run("step", "x", "--agent", "a\nb"); status != env.StatusUsage {
		t.Errorf("an agent's name of two lines: status %d", status)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file changed from\n%s\nto\n%s, %v", want, got, err)
	}
	if got := p.entries(); !slices.Equal(got, []string{"start"}) {
		t.Errorf("recorded: %q", got)
	}
}

// A refused start creates no file.
func TestRefusedStartMakesNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"start", "Work", "--agent", "a\nb"}, {"start", "Work", "--phase", "flying"}, {"start", "Work", "--task", "nowhere"},
		{"start", "Work", "--pending", ""}, {"show"}, {"step", "x"}, {"resume"}, {"log"}, {"stale"},
	} {
		p := &project{T: t, dir: t.TempDir()}
		if _, notes, status := p.run(args...); status != env.StatusUsage && status != env.StatusNotFound {
			t.Errorf("%q ended with status %d: %s", args, status, notes)
		}
		if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 0 {
			t.Errorf("%q left behind %v, %v", args, entries, err)
		}
	}
}

// A claim excludes other agents until it is taken over; its token gives access.
func TestResume(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("a.go", "package a\n")
	p.must(env.StatusDone, "start", "Work", "--pending", "one")
	p.must(env.StatusDone, "step", "made a", "--created", "a.go")
	resume := func(args ...string) (r struct{ Token, Prompt, Verdict string }) {
		p.ok(json.Unmarshal([]byte(p.must(env.StatusDone, append([]string{"resume", "--json"}, args...)...)), &r))
		return r
	}
	if r := resume("--no-claim"); r.Token != "" || r.Verdict != "fresh" || !strings.Contains(r.Prompt, "made a") {
		t.Errorf("no claim: %+v", r)
	}
	first := resume("--agent", "first")
	if first.Token == "" || !strings.Contains(first.Prompt, first.Token) {
		t.Errorf("claim: %+v", first)
	}
	p.must(env.StatusConflict, "resume", "--agent", "second")
	p.must(env.StatusConflict, "step", "without the token")
	p.must(env.StatusDone, "step", "with it", "--token", first.Token)
	p.env = []string{"PERDURE_HANDOFF_TOKEN=" + first.Token}
	p.must(env.StatusDone, "step", "from the environment")
	p.env = nil
	second := resume("--agent", "second", "--take-over")
	if second.Token == "" || second.Token == first.Token {
		t.Errorf("take over: %+v", second)
	}
	p.must(env.StatusConflict, "step", "with the old token", "--token", first.Token)

	p.must(env.StatusDone, "stale", "--check")
	p.put("a.go", "package changed\n")
	p.must(env.StatusIncomplete, "stale", "--check")
	p.must(env.StatusDone, "stale")
	p.must(env.StatusConflict, "resume", "--strict", "--no-claim")
	if r := resume("--no-claim"); r.Verdict != "stale" {
		t.Errorf("changed file: %+v", r)
	}
	p.must(env.StatusDone, "reassign", "--to", "third", "--token", second.Token)
	if third := resume("--agent", "third"); third.Token == "" {
		t.Errorf("after reassign: %+v", third)
	}
}

// The exit status of verify is that of the contract.
func TestVerify(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("contract.json", `{"US-1": {"good": {"type": "verifiable", "criteria": [
		{"activity": "unit-test", "command": "true"}]},
		"bad": {"type": "verifiable", "criteria": [{"activity": "unit-test", "command": "true"},
		{"activity": "lint", "command": "exit 3"}]},
		"open": {"type": "verifiable", "criteria": [{"activity": "unit-test", "command": "true"},
		{"activity": "review", "description": "by a person"}]},
		"late": {"type": "verifiable", "criteria": [{"activity": "unit-test", "command": "true"},
		{"activity": "e2e", "command": "exit 3", "timing": "deferred"}]},
		"latest": {"type": "verifiable", "criteria": [{"activity": "e2e", "command": "true", "timing": "deferred"}]},
		"slow": {"type": "verifiable", "criteria": [{"activity": "unit-test", "command": ["tail", "-f", "contract.json"]}]}}}`)
	p.must(env.StatusDone, "start", "Work")
	for name, status := range map[string]int{"good": env.StatusDone, "bad": env.StatusFailed, "open": env.StatusIncomplete,
		"none": env.StatusNotFound} {
		out, notes, got := p.run("verify", "--contract", "US-1."+name, "--contract-file", "contract.json", "--json")
		if got != status {
			t.Errorf("%s: status %d, want %d: %s%s", name, got, status, out, notes)
		}
	}
	p.must(env.StatusDone, "verify", "unit-test", "passed")
	// Deferred criteria are run on request, and a contract of which none was run has not passed.
	p.must(env.StatusDone, "verify", "--contract", "US-1.late", "--contract-file", "contract.json")
	p.must(env.StatusFailed, "verify", "--deferred")
	p.must(env.StatusIncomplete, "verify", "--contract", "US-1.latest", "--contract-file", "contract.json")
	p.must(env.StatusDone, "verify", "--deferred")
	p.must(env.StatusFailed, "verify", "--contract", "US-1.slow", "--contract-file", "contract.json", "--timeout", "50ms")
}

// A full context has an exit status of its own, also in a batch.
func TestFullContext(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.must(env.StatusDone, "start", "Title")
	p.must(env.StatusDone, "context", "--used", "89%")
	p.must(env.StatusNewSession, "context", "--used", "90%")
	p.must(env.StatusDone, "block", "later commands end as usual")
	p.stdin = `{"op": "context", "used": 0.95}` + "\n" + `{"op": "block", "text": "no key"}` + "\n"
	p.must(env.StatusNewSession, "--batch", "-")
}

// A contract in a file of its own reaches later prompts, with the file's path or without.
func TestContractFile(t *testing.T) {
	t.Parallel()
	const contract = `{"US-1": {"verificationContract": {"type": "verifiable", "criteria": [
		{"activity": "unit-test", "description": "The toggle works"}]}}}`
	const criterion = "unit-test: The toggle works"
	p := newProject(t)
	p.put("contract.json", contract)
	p.must(env.StatusDone, "start", "Title", "--contract", "US-1.verificationContract")
	if text := p.must(env.StatusDone, "resume", "--no-claim"); strings.Contains(text, criterion) {
		t.Errorf("the contract was found without its file:\n%s", text)
	}
	if text := p.must(env.StatusDone, "reassign", "--to", "b", "--contract-file", "contract.json"); !strings.Contains(text,
		criterion) {
		t.Errorf("not in the prompt of reassign:\n%s", text)
	}
	p.env = []string{"PERDURE_AGENT=b"}
	p.must(env.StatusNotFound, "verify", "--contract-file", "nothing.json")
	p.must(env.StatusIncomplete, "verify", "--contract-file", "contract.json")
	for _, args := range [][]string{{"resume", "--no-claim"}, {"reassign", "--to", "c"}} {
		if text := p.must(env.StatusDone, args...); !strings.Contains(text, criterion) {
			t.Errorf("not in the prompt of %s:\n%s", args[0], text)
		}
	}
	p.ok(os.Remove(filepath.Join(p.dir, "contract.json")))
	if text := p.must(env.StatusDone, "resume", "--no-claim"); !strings.Contains(text, "is missing") {
		t.Errorf("a contract whose file is gone is not missing:\n%s", text)
	}
	other := newProject(t)
	other.put("contract.json", contract)
	other.must(env.StatusDone, "start", "Title", "--contract", "US-1.verificationContract", "--contract-file",
		"contract.json")
	if text := other.must(env.StatusDone, "resume", "--no-claim"); !strings.Contains(text, criterion) {
		t.Errorf("not in the prompt after start:\n%s", text)
	}
}

// Work starts in a file without a story.
func TestStartWithoutAStory(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("builder-state.json", `{"x": 1, "activePrd": null, "y": 2}`)
	p.must(env.StatusNotFound, "show")
	p.must(env.StatusDone, "start", "Title")
	p.must(env.StatusDone, "show")
	text, err := os.ReadFile(filepath.Join(p.dir, "builder-state.json"))
	if err != nil || !strings.HasPrefix(string(text), `{"x": 1, "activePrd": {"id": "prd", `) ||
		!strings.HasSuffix(string(text), `}}, "y": 2}`) && !strings.HasSuffix(string(text), `}, "y": 2}`) {
		t.Errorf("%s, %v", text, err)
	}
	// A start that is refused leaves the unfinished work, and a place for resume to show it at.
	p.put("builder-state.json", `{"activePrd": null}`)
	p.must(env.StatusConflict, "start", "Another title")
	if prompt := p.must(env.StatusDone, "resume", "--no-claim"); !strings.Contains(prompt, "Title") ||
		strings.Contains(prompt, "Another") {
		t.Errorf("the prompt after a refused start:\n%s", prompt)
	}
}

// On a terminal, show styles the reasons itself, and neither style nor control of what was
// recorded reaches it.
func TestShowOnATerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.run("start", "Dark mode", "--pending", "one")
	p.run("decide", "Use CSS\x1b[2J", "--because", "no cost\n\x1b[2Jat all")
	var out bytes.Buffer
	e := env.New(env.Process{Stdout: &out, Stderr: &out, Cwd: p.dir, Environ: p.env})
	e.Out.Terminal, e.Out.Color = true, true
	cmd := handoff.Command(e)
	cmd.SetArgs([]string{"show"})
	p.ok(cmd.ExecuteContext(t.Context()))
	want := "\nDecided\n  1. Use CSS␛[2J\x1b[2m — no cost ␛[2Jat all\x1b[m\n"
	if !strings.Contains(out.String(), want) || !strings.HasPrefix(out.String(), "\x1b[1mprd\x1b[m") {
		t.Errorf("got %q, want %q in it", out.String(), want)
	}
}

// The refusal to start names writer and time of the unfinished work only if the file has them.
func TestStartOverWorkOfAnUnknownWriter(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.put("builder-state.json", `{"activePrd": {"checkpoint": {"phase": "planning", "completedSteps": ["a"]}}}`)
	_, notes, status := p.run("start", "Dark mode")
	if status != env.StatusConflict || !strings.Contains(notes, `unfinished work on "prd" (completed steps: 1)`) {
		t.Errorf("status %d: %s", status, notes)
	}
}
