package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	looprecord "github.com/perdure/perdure/loop/record"
)

const (
	turnEnded     = "end_turn"
	turnCancelled = "cancelled"
	acpLoop       = `loop --until "sh check.sh" --agent "exec:sh agent.sh" `
)

// A prompt is answered over the folder, or over what is attached.
func TestACPRun(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("lease.txt", "The lease is renewed every ten seconds.\n")
	e := w.edits("")
	s := e.session()
	if got := e.prompt(s, "How often is the lease renewed?"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	e.says("lease.txt:1-1")
	attached := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"What color is the sky in "},`+
		`{"type":"resource","resource":{"uri":"file://%s/sky.md","text":"the sky is green"}},`+
		`{"type":"resource_link","name":"app","uri":"file://%s/src/App.tsx"}]}`, s, w.dir, w.dir)
	before := len(e.seen)
	if got := e.ends(e.send("session/prompt", attached)); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	if said := e.said(before); !strings.Contains(said, "sky.md:1-1") || strings.Contains(said, "lease.txt") {
		t.Errorf("the answer over the attached files is %q", said)
	}
	e.prompt(s, "/status")
	e.says("1 of 1 tasks done")
	if status := e.closes(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// The iterations of a loop are a plan, and the turns and checks are tool calls.
func TestACPLoop(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	e := w.edits(acpLoop + "--unattended")
	s := e.session()
	if got := e.prompt(s, "Make the tests pass"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	w.loopEnds()
	last, calls := update{}, map[string]string{}
	for i := range e.seen {
		switch u := e.seen[i]; u.Kind {
		case "plan":
			last = u
		case "tool_call", "tool_call_update":
			_, name, _ := strings.Cut(u.ID, "/")
			calls[name] = u.Status
		}
	}
	if len(last.Entries) != 4 || !strings.HasPrefix(last.Entries[3].Content, "Iteration 4: check passes") ||
		last.Entries[3].Status != "completed" {
		t.Errorf("the last plan is %+v", last.Entries)
	}
	if calls["turn-1"] != "completed" || calls["check-1"] != "failed" || calls["turn-2"] != "failed" ||
		calls["check-4"] != "completed" {
		t.Errorf("the tool calls are %v", calls)
	}
}

// Loops are the mode of the session, and need a check and an agent.
func TestACPModes(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", "cat > /dev/null; echo pass > tests/b\n")
	e := w.edits("")
	s := e.session()
	e.must("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"loop"}`, s))
	if got := e.prompt(s, "Make the tests pass"); !strings.Contains(got, "-32602 --until and --agent required") ||
		!strings.Contains(got, "/until COMMAND") {
		t.Errorf("without a check: %s", got)
	}
	e.prompt(s, "/until sh check.sh")
	e.prompt(s, "/agent exec:sh agent.sh")
	if got := e.prompt(s, "Make the tests pass"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	w.completedLoop(1)
	if got := e.prompt(s, "/run Which file has a toggle?"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	e.says("src/toggle.tsx")
}

// gatedAgent deletes a test in its first turn, which opens a gate.
const gatedAgent = `prompt=$(cat)
test -e done || { touch done; rm tests/a; exit; }
echo pass > tests/b
`

// A gate is a permission request, and its answer counts as that of the user at a terminal.
func TestACPGates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, kept string }{{"approve", ""}, {"reject", "pass\n"}} {
		t.Run(c.answer, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			w.write("agent.sh", gatedAgent)
			w.write(".gitignore", "done\n")
			w.env = append(w.env, "PERDURE_LOOP_APPROVER=terminal")
			e := w.edits(acpLoop)
			e.choose = func(permission) string { return c.answer }
			if got := e.prompt(e.session(), "Make the tests pass"); got != turnEnded {
				t.Fatalf("the turn ended with %s: %s", got, e.said(0))
			}
			if len(e.asked) == 0 || !strings.Contains(e.asked[0].ToolCall.Title, "1 test removed") {
				t.Fatalf("asked %+v", e.asked)
			}
			kept, _ := os.ReadFile(filepath.Join(w.dir, "tests/a"))
			if string(kept) != c.kept {
				t.Errorf("tests/a is %q, want %q", kept, c.kept)
			}
			store, l, _ := w.completedLoop(2)
			gates, err := store.Gates(t.Context(), l.Tree)
			if err != nil || gates[0].Answer != c.answer || gates[0].AnsweredBy == "" {
				t.Errorf("gates %+v, %v", gates, err)
			}
		})
	}
}

// A gate that needs more than the user of the editor is shown with the commands that answer it.
func TestACPGateOfToken(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", gatedAgent)
	w.env = append(w.env, "PERDURE_LOOP_APPROVER=token", "PERDURE_LOOP_NOTIFY_COMMAND=cat > /dev/null")
	e := w.edits(acpLoop)
	s := e.session()
	id := e.begin(s, "Make the tests pass")
	e.until(func(u *update) bool {
		return strings.Contains(u.text(), "perdure loop answer abort") && strings.Contains(u.text(), "--token")
	})
	e.cancel(s)
	if got := e.ends(id); got != turnCancelled || len(e.asked) > 0 {
		t.Errorf("the turn ended with %s, asked %+v", got, e.asked)
	}
}

// The answer with a token is that of the process that created the loop, also after a pause. In another
// one, which any program can start, a gate is shown only.
func TestACPGateOfAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", gatedAgent)
	w.env = append(w.env, "PERDURE_LOOP_APPROVER=terminal")
	e := w.edits(acpLoop)
	s := e.session()
	e.choose = nil
	id := e.begin(s, "Make the tests pass")
	for len(e.asked) == 0 {
		if _, ok := e.receive(); !ok {
			t.Fatalf("the process ended; its updates: %+v", e.seen)
		}
	}
	e.cancel(s)
	if got := e.ends(id); got != turnCancelled {
		t.Fatalf("the turn ended with %s", got)
	}
	other := w.edits(acpLoop)
	if err := other.load(s); err != nil {
		t.Fatal(err)
	}
	id = other.begin(s, "/resume")
	other.until(func(u *update) bool { return strings.Contains(u.text(), "perdure loop answer abort") })
	other.cancel(s)
	if got := other.ends(id); got != turnCancelled || len(other.asked) > 0 {
		t.Errorf("in another process: %s, asked %+v", got, other.asked)
	}
	e.choose = func(permission) string { return "abort" }
	if got := e.prompt(s, "/resume"); got != turnEnded {
		t.Errorf("in the same process: %s", got)
	}
	e.says("aborted: gate 1 was answered with abort")
}

// A session that two processes have loaded keeps the prompts of both, and starts a loop for each.
func TestACPSessionOfTwoProcesses(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", "cat > /dev/null; echo x >> notes\n")
	e := w.edits(acpLoop + "--max-iterations 1")
	s := e.session()
	e.prompt(s, "first")
	other := w.edits(acpLoop + "--max-iterations 1")
	if err := other.load(s); err != nil {
		t.Fatal(err)
	}
	e.prompt(s, "/loop second")
	other.prompt(s, "/loop third")
	third := w.edits(acpLoop)
	if err := third.load(s); err != nil {
		t.Fatal(err)
	}
	var prompts []string
	for i := range third.seen {
		if third.seen[i].Kind == "user_message_chunk" {
			prompts = append(prompts, third.seen[i].text())
		}
	}
	if got := strings.Join(prompts, ", "); got != "first, /loop second, /loop third" {
		t.Errorf("the session has the prompts %s", got)
	}
	if list := w.sh("perdure loop list --json"); strings.Count(list, `"third"`) != 1 {
		t.Errorf("the loops are %s", list)
	}
}

// An answer from elsewhere continues the turn, and the question is withdrawn.
func TestACPGateAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", gatedAgent)
	e := w.edits(acpLoop)
	e.choose = nil // the user does not answer
	id := e.begin(e.session(), "Make the tests pass")
	for len(e.asked) == 0 {
		if _, ok := e.receive(); !ok {
			t.Fatalf("the process ended; its updates: %+v", e.seen)
		}
	}
	w.sh("perdure loop answer abort")
	if got := e.ends(id); got != turnEnded || !e.withdrawn {
		t.Errorf("the turn ended with %s, the question was withdrawn: %v", got, e.withdrawn)
	}
	e.says("aborted: gate 1 was answered with abort")
}

// Stop pauses a loop: the turn of the agent is undone, and a prompt continues it under its number.
func TestACPCancelLoop(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	release := filepath.Join(t.TempDir(), "release")
	w.write("agent.sh", "cat > /dev/null; echo line >> log\ntest -e "+release+" || exec tail -f /dev/null\n"+
		"echo pass > tests/b\n")
	e := w.edits(acpLoop)
	s := e.session()
	id := e.begin(s, "Make the tests pass")
	e.until(func(u *update) bool { return strings.HasSuffix(u.ID, "/turn-1") && u.Status == "in_progress" })
	if got := e.prompt(s, "/status"); !strings.Contains(got, "-32600") { // one at a time
		t.Errorf("a second prompt: %s", got)
	}
	e.cancel(s)
	if got := e.ends(id); got != turnCancelled {
		t.Fatalf("the turn ended with %s", got)
	}
	e.says("is paused; `/resume` continues it")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := e.prompt(s, "go on"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	w.completedLoop(1)
	if log := w.read("log"); log != "line\n" {
		t.Errorf("the agent's log is %q", log)
	}
}

// Stop cancels a run.
func TestACPCancelRun(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	e := w.edits(`run --model "exec:tail -f /dev/null"`)
	s := e.session()
	id := e.begin(s, "What is this?")
	e.until(func(u *update) bool { return u.Kind == "tool_call" && u.Status == "in_progress" })
	e.cancel(s)
	if got := e.ends(id); got != turnCancelled {
		t.Fatalf("the turn ended with %s", got)
	}
	e.says("is cancelled")
	if out, _, _ := w.try("perdure status"); !strings.Contains(out, "cancelled") {
		t.Errorf("the status is %q", out)
	}
}

// After kill -9 the session is loaded and continues with nothing repeated.
func TestACPKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"acp.prompt_stored", "acp.tree_created", "loop.act.done:1", "loop.act:2",
		"loop.judge:3"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			e := w.edits(acpLoop+"--unattended", "PERDURE_FAILPOINT="+point)
			s := e.session()
			e.begin(s, "Make the tests pass")
			if status := e.exits(); status != -1 {
				t.Fatalf("exit status %d, want that of SIGKILL", status)
			}
			again := w.edits(acpLoop + "--unattended")
			if err := again.load(s); err != nil {
				t.Fatal(err)
			}
			if first := again.seen[0]; first.Kind != "user_message_chunk" || first.text() != "Make the tests pass" {
				t.Errorf("the first replayed update is %+v", first)
			}
			again.says("`/resume`")
			if got := again.prompt(s, "/resume"); got != turnEnded {
				t.Fatalf("the turn ended with %s: %s", got, again.said(0))
			}
			w.loopEnds()
		})
	}
}

// heldRun is a run of nine calls whose model counts them and can be held.
type heldRun struct {
	*workplace
	calls, held string // files
	args        string
}

func newHeldRun(t *testing.T) *heldRun {
	t.Helper()
	w := newWorkplace(t)
	for _, name := range []string{"1", "2", "3", "4"} {
		w.write("parts/"+name+".txt", strings.Repeat("word ", 500))
	}
	dir := t.TempDir()
	r := &heldRun{workplace: w, calls: filepath.Join(dir, "calls"), held: filepath.Join(dir, "held")}
	w.write("model.sh", "cat > /dev/null; echo call >> "+r.calls+"\n"+
		`while [ -e `+r.held+` ] && [ $(wc -l < `+r.calls+`) -gt $(wc -l < `+r.held+`) ]; do sleep 0.05; done`+"\necho fine\n")
	r.args = `run --context parts --merge merge --chunk-tokens 400 --context-window 1000 --concurrency 1 --max-output-tokens 100 ` +
		`--model "exec:sh model.sh"`
	return r
}

// count returns how many calls were made.
func (r *heldRun) count() int {
	r.t.Helper()
	raw, err := os.ReadFile(r.calls)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// hold lets the model answer so many calls in all until release.
func (r *heldRun) hold(calls int) {
	r.t.Helper()
	if err := os.WriteFile(r.held, []byte(strings.Repeat("\n", calls)), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *heldRun) release() {
	r.t.Helper()
	if err := os.Remove(r.held); err != nil {
		r.t.Fatal(err)
	}
}

// begun starts a run and returns when a call is done and the model is held.
func (r *heldRun) begun(done int) (e *acpEditor, session, id string) {
	r.t.Helper()
	r.hold(done)
	e = r.edits(r.args)
	session = e.session()
	id = e.begin(session, "What is this?")
	e.until(func(u *update) bool { return u.Kind == "tool_call_update" && !strings.Contains(u.Title, ": 0 of ") })
	return e, session, id
}

// A run that was killed continues with the finished calls.
func TestACPRunKilled(t *testing.T) {
	t.Parallel()
	r := newHeldRun(t)
	whole := r.edits(r.args)
	if got := whole.prompt(whole.session(), "What is this?"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	want := r.count()
	e, s, id := r.begun(want + 3)
	if err := e.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = e.wait(id) // it was killed
	r.release()
	again := r.edits(r.args)
	if err := again.load(s); err != nil {
		t.Fatal(err)
	}
	if got := again.prompt(s, "continue"); got != turnEnded {
		t.Fatalf("the turn ended with %s: %s", got, again.said(0))
	}
	again.says("it continues")
	again.says("fine")
	if got := r.count() - want; got < want || got > want+1 { // the call that was interrupted
		t.Errorf("%d calls of the killed run, %d of the other", got, want)
	}
}

// A run that another process executes is followed, and taken over when that process is killed.
func TestACPRunTakenOver(t *testing.T) {
	t.Parallel()
	r := newHeldRun(t)
	e, s, _ := r.begun(3)
	again := r.edits(r.args)
	if err := again.load(s); err != nil {
		t.Fatal(err)
	}
	id := again.begin(s, "continue")
	again.until(func(u *update) bool { return strings.Contains(u.text(), "Another process executes") })
	if err := e.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.release()
	if got := again.ends(id); got != turnEnded {
		t.Fatalf("the turn ended with %s: %s", got, again.said(0))
	}
	again.says("fine")
}

// The ID of a loop that a terminal started can be loaded, and one that does not exist cannot.
func TestACPLoadTree(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", "cat > /dev/null; echo pass > tests/b\n")
	_, errs, _ := w.try(loopRun)
	loopID, _, _ := strings.Cut(errs, "\n")
	e := w.edits("")
	if err := e.load(loopID); err != nil {
		t.Fatal(err)
	}
	if e.seen[0].text() != "Make the tests pass" {
		t.Errorf("the first replayed update is %+v", e.seen[0])
	}
	e.says("completed: the check passes after iteration 1")
	if got := e.prompt(loopID, "/run Which file has a toggle?"); got != turnEnded {
		t.Fatalf("the turn ended with %s", got)
	}
	another := "another-name" + loopID[strings.LastIndexByte(loopID, '-'):]
	for _, id := range []string{"acp-1234", "tree-00000001", another} {
		if err := e.load(id); err == nil || !strings.Contains(err.Error(), "-32002") {
			t.Errorf("load %s: %v", id, err)
		}
	}
}

// Settings of a folder that is not trusted act only after the user agreed to exactly these.
func TestACPTrust(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	ran, script := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "model.sh")
	if err := os.WriteFile(script, []byte("cat > /dev/null; echo ran >> "+ran+"; echo fine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PERDURE_TRUST=")
	settings := func(more string) {
		w.write(".perdure/config.yaml", "model: \"exec:sh "+script+more+"\"\n")
	}
	settings("")
	e := w.edits("")
	s := e.session()
	for i, c := range []struct{ answer, want string }{{"no", "is not trusted"}, {"", "is not trusted"},
		{"trust_session", turnEnded}, {"unasked", turnEnded}} {
		e.choose = func(p permission) string {
			if !strings.Contains(string(p.ToolCall.Content), "exec:sh ") || c.answer == "unasked" {
				t.Errorf("asked %+v before prompt %d", p, i)
			}
			return c.answer
		}
		if got := e.prompt(s, "What is this?"); !strings.Contains(got, c.want) {
			t.Errorf("prompt %d: %s, want %s", i, got, c.want)
		}
		if _, err := os.Stat(ran); (err == nil) != (c.want == turnEnded) {
			t.Errorf("after prompt %d: the program of the settings ran: %v", i, err == nil)
		}
	}
	settings(" again")
	asked := len(e.asked)
	e.choose = func(permission) string { return "trust" }
	if got := e.prompt(s, "What is this?"); got != turnEnded || len(e.asked) != asked+1 {
		t.Errorf("after a change: %s, asked %d times", got, len(e.asked)-asked)
	}
	w.sh("perdure run 'What is this?' --context . > /dev/null") // recorded as trusted
}

// An agent of a loop cannot be an editor, which would answer the gates.
func TestACPRefusedToAgents(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", "cat > /dev/null; perdure acp < /dev/null 2> refused; echo $? >> refused\n"+
		"echo pass > tests/b\n")
	w.sh(loopRun + " 2> /dev/null")
	if got := w.read("refused"); !strings.Contains(got, "is not allowed to do this") || !strings.HasSuffix(got, "\n5\n") {
		t.Errorf("perdure acp in an agent: %q", got)
	}
}

// When the editor is gone, a loop is paused and its unfinished turn undone.
func TestACPEditorGone(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", "cat > /dev/null; echo line >> log\nexec tail -f /dev/null\n")
	e := w.edits(acpLoop)
	e.begin(e.session(), "Make the tests pass")
	e.until(func(u *update) bool { return strings.HasSuffix(u.ID, "/turn-1") && u.Status == "in_progress" })
	if status := e.closes(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure"), Heads: headsFolder()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	loops, err := looprecord.New(store).Loops(t.Context(), 10)
	if err != nil || len(loops) != 1 || loops[0].Control != looprecord.Pause && loops[0].Status != looprecord.Paused {
		t.Errorf("loops %+v, %v", loops, err)
	}
}

// Malformed input is refused with the codes of JSON-RPC, and the connection continues.
func TestACPMalformed(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	e := w.edits("")
	for _, c := range []struct {
		line string
		code int
		id   string
	}{
		{`{"jsonrpc":"2.0","id":90,"method":`, -32700, "null"},
		{"hello", -32700, "null"},
		{`[{"jsonrpc":"2.0","id":90,"method":"initialize"}]`, -32600, "null"},
		{`{"jsonrpc":"1.0","id":90,"method":"initialize"}`, -32600, "90"},
		{`{"jsonrpc":"2.0","id":"a","method":7}`, -32600, `"a"`},
		{`{"jsonrpc":"2.0","id":90,"method":"session/fly","params":{}}`, -32601, "90"},
		{`{"jsonrpc":"2.0","id":90,"method":"session/new"}`, -32602, "90"},
		{`{"jsonrpc":"2.0","id":90,"method":"session/new","params":{"cwd":"relative"}}`, -32602, "90"},
		{`{"jsonrpc":"2.0","id":90,"method":"session/new","params":{"cwd":7}}`, -32602, "90"},
		{`{"jsonrpc":"2.0","id":90,"method":"session/prompt","params":{"sessionId":"none","prompt":[]}}`, -32002, "90"},
		{`{"jsonrpc":"2.0","id":90,"method":"session/new","params":{"cwd":"` + strings.Repeat("x", 33<<20) + `"}}`,
			-32600, "90"},
	} {
		e.say(c.line)
		m, _ := e.receive()
		if m.Error == nil || m.Error.Code != c.code || string(m.ID) != c.id {
			t.Errorf("%.80s: answered %+v with ID %s, want %d with ID %s", c.line, m.Error, m.ID, c.code, c.id)
		}
	}
	e.session()
	if status := e.closes(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
